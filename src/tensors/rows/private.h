/* SPDX-License-Identifier: BSD-2-Clause */
/* A part that is being written: what its lock, its chunks and its flags share. */
#ifndef TENSORS_ROWS_PRIVATE_H
#define TENSORS_ROWS_PRIVATE_H

#include "formats/hdf5/dataset/description.h"
#include "tensors/rows/hdf5_write.h"

/* ---- the lock, and the copy that becomes the part (tensors/rows/copy.c) ------ */

struct write_copy {
	char *path;  /* of the part, symlinks resolved */
	char *fresh; /* of the copy; NULL: there is none */
	char *second; /* where another one can be made meanwhile; NULL: nowhere */
	int dir;      /* of both */
	int locked;   /* the part; the lock goes with it */
	int fd;       /* the copy */
};
#define WRITE_COPY_INIT                      \
	{                                    \
		NULL, NULL, NULL, -1, -1, -1 \
	}
/* Wait for the lock. */
int write_copy_lock(struct write_copy *c, const char *path, bool no_lock,
		    const _Atomic int *stop, struct error *err);
/* A copy beside it, with its mode and owner. */
int write_copy_make(struct write_copy *c, bool no_lock, const _Atomic int *stop,
		    struct error *err);
/* What was made at `second` is the copy now. */
int write_copy_second(struct write_copy *c, struct error *err);
/* Sync it and let it take the part's place. */
int write_copy_publish(struct write_copy *c, struct error *err);
/* Remove what was not published, and unlock. */
void write_copy_free(struct write_copy *c);

/* ---- what is in it ----------------------------------------------------------- */

struct writer {
	const struct write_rows *rows;
	const struct write_options *o;
	struct write_input *in;
	struct write_copy copy;
	struct hdf5_source
		source; /* the part as it is, to read old chunks of */
	struct hdf5_place at;
	struct hdf5_description d;
	struct grid grid;
	uint64_t row_bytes;
	unsigned swap; /* bytes of the numbers that are to be reversed; 0 */
	hid_t file;    /* the copy, open for writing */
};
/* tensors/rows/data.c: the rows of the input to the copy.  The lock of the library is
 * not held, in these two. */
int write_data(struct writer *w, struct error *err);
/* tensors/rows/plain.c: the same by H5Dwrite, for what has no chunks or filters of ours. */
int write_data_plain(struct writer *w, hid_t dset, struct error *err);
/* tensors/rows/flags.c */
int write_flags(struct writer *w, struct error *err);
/* tensors/rows/compact.c: the copy once more without its gaps, if it is worth that. */
int write_compact(struct writer *w, struct error *err);
/* A dataset of the copy, in that very file.  The lock is held. */
int write_open_dataset(const struct writer *w, const char *path, hid_t *out,
		       struct error *err);
/* "cannot write ...: " and what the library, or the system, says.  Lock held. */
int write_failed(const struct writer *w, const char *what, struct error *err);
/* The next rows of the input, in the order of bytes that the file has. */
int write_read_rows(struct writer *w, uint64_t first, uint64_t rows, void *buf,
		    struct error *err);

#endif
