/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames at equal distances in files: raw records, and the formats of cameras. */
#ifndef FORMATS_NUMPY_FRAMES_H
#define FORMATS_NUMPY_FRAMES_H

#include "formats/arrays.h"

/* The frames of one file. */
struct frames_part {
	uint32_t file;   /* number in handles */
	uint64_t pos;    /* of the first element of the first frame, in bytes */
	uint64_t stride; /* from frame to frame, in bytes; at least a frame */
	uint64_t n;      /* number of frames, > 0 */
};
struct frames {
	const char *name;
	struct dtype dtype;  /* as stored */
	unsigned rank, lead; /* the first `lead` axes number the frames */
	uint64_t shape[RANK_MAX];
	bool fortran;     /* order within a frame */
	const char *note; /* or NULL */
	/* Several parts are joined along axis 0, and `lead` is 1. */
	unsigned nparts;
	const struct frames_part *parts;
};
/* Set *out to the bytes of a frame.  Return false if that is 0 or too large for any
 * file. */
bool frames_bytes(const struct frames *f, uint64_t *out);
/* Make the array of all frames.  The caller has checked that all frames of all
 * parts lie in their files.  Return as array_new. */
int frames_array(struct arrays *s, const struct frames *f, struct array **out,
		 struct error *err);
/*
 * Set *n to the number of whole records of `record` bytes (> 0) that follow
 * position `at` in a file of `size` bytes.  Return 0, or -EBADMSG if there is none,
 * or if bytes are left over and `cut` is false.
 */
int frames_count(uint64_t size, uint64_t at, uint64_t record, bool cut,
		 uint64_t *n, struct error *err);

#endif
