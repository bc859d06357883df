/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that cameras of electron microscopes write: a header, and frames. */
#ifndef FORMATS_NUMPY_CAMERA_H
#define FORMATS_NUMPY_CAMERA_H

#include "formats/source.h"
#include "tensor/dtype.h"

extern const struct source_ops source_blo, source_tvips, source_mib, source_seq;

enum camera_format { CAMERA_BLO, CAMERA_TVIPS, CAMERA_MIB, CAMERA_SEQ };
/* Bytes of a file's beginning that say it all. */
#define CAMERA_HEAD 1024
struct camera_header {
	struct dtype dtype;
	uint64_t scan[2];       /* positions (rows, columns); 0: not known */
	uint64_t height, width; /* of a frame, > 0 */
	uint64_t first;         /* where the first record begins, bytes */
	uint64_t skip;          /* from there to its pixels */
	uint64_t record;        /* from record to record; holds a frame */
	uint64_t frames;        /* that there should be; 0: it does not say */
	const char *mark;       /* what records begin with, or NULL */
};
/* From the first `n` bytes.  -EBADMSG: impossible numbers, or too few bytes; -ENOTSUP:
 * a variant that is not read.  The sentence names no file. */
int camera_read(enum camera_format f, const unsigned char *head, size_t n,
		struct camera_header *out, struct error *err);
/* 0 to 100; `path` counts where a format has no magic number. */
int camera_probe(enum camera_format f, const unsigned char *head, size_t n,
		 const char *path);

#endif
