/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that cameras of electron microscopes write: a header, and frames. */
#ifndef FORMATS_NUMPY_CAMERA_H
#define FORMATS_NUMPY_CAMERA_H

#include "formats/source.h"
#include "tensor/dtype.h"

extern const struct source_ops source_blo, source_tvips, source_mib, source_seq;

enum camera_format { CAMERA_BLO, CAMERA_TVIPS, CAMERA_MIB, CAMERA_SEQ };
/* Bytes of a file's beginning that hold all of its header that is needed. */
#define CAMERA_HEAD 1024
struct camera_header {
	struct dtype dtype;
	uint64_t scan[2];       /* positions (rows, columns); 0: not known */
	uint64_t height, width; /* of a frame in pixels, > 0 */
	uint64_t first;         /* where the first record begins, in bytes */
	/* From the beginning of a record to its pixels, in bytes. */
	uint64_t skip;
	/* From record to record, in bytes; at least a frame. */
	uint64_t record;
	/* Number of frames that the header says; 0: it does not say. */
	uint64_t frames;
	const char *mark; /* what each record begins with, or NULL */
};
/* Parse the first `n` bytes of a file.  Return 0, -EBADMSG if numbers are
 * impossible or bytes are missing, or -ENOTSUP for a variant that cannot be read.
 * The sentence names no file. */
int camera_read(enum camera_format f, const unsigned char *head, size_t n,
		struct camera_header *out, struct error *err);
/* Return how certain the format is, from 0 to 100.  `path` counts if a format has
 * no magic number. */
int camera_probe(enum camera_format f, const unsigned char *head, size_t n,
		 const char *path);

#endif
