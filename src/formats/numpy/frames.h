/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames at equal distances in files: raw records, and the formats of cameras. */
#ifndef FORMATS_NUMPY_FRAMES_H
#define FORMATS_NUMPY_FRAMES_H

#include "formats/arrays.h"

/* Frames of one file. */
struct frames_part {
	uint32_t file;   /* number in handles */
	uint64_t pos;    /* of the first element of the first frame, bytes */
	uint64_t stride; /* bytes from frame to frame; at least a frame */
	uint64_t n;      /* frames, > 0 */
};
struct frames {
	const char *name;
	struct dtype dtype;  /* as stored */
	unsigned rank, lead; /* the first `lead` axes number frames */
	uint64_t shape[RANK_MAX];
	bool fortran;     /* within a frame */
	const char *note; /* or NULL */
	unsigned nparts; /* several: side by side along axis 0, and lead is 1 */
	const struct frames_part *parts;
};
/* Bytes of a frame; false: that is too much for anything, or 0. */
bool frames_bytes(const struct frames *f, uint64_t *out);
/* All frames of parts[0] and so on lie in their files: the caller has seen to that.
 * As array_new. */
int frames_array(struct arrays *s, const struct frames *f, struct array **out,
		 struct error *err);
/*
 * How many whole records of `record` bytes (> 0) follow `at` in a file of `size`.
 * -EBADMSG: not one; or bytes are left over, and `cut` is false.
 */
int frames_count(uint64_t size, uint64_t at, uint64_t record, bool cut,
		 uint64_t *n, struct error *err);

#endif
