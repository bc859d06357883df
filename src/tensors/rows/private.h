/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files that write a part share. */
#ifndef TENSORS_ROWS_PRIVATE_H
#define TENSORS_ROWS_PRIVATE_H

#include "formats/hdf5/dataset/description.h"
#include "tensors/rows/hdf5_write.h"

/* ---- the lock, and the copy that becomes the part (tensors/rows/copy.c) ------ */

struct write_copy {
	char *path;   /* path of the part, symbolic links resolved */
	char *fresh;  /* path of the copy; NULL: there is none */
	char *second; /* where a second copy may be made; NULL: nowhere */
	int dir;      /* directory of the part and the copy */
	int locked;   /* the part; the locks are released when it is closed */
	int fd;       /* the copy */
};
#define WRITE_COPY_INIT                      \
	{                                    \
		NULL, NULL, NULL, -1, -1, -1 \
	}
/* Open and lock the part, waiting for other writers. */
int write_copy_lock(struct write_copy *c, const char *path, bool no_lock,
		    const _Atomic int *stop, struct error *err);
/* Make a copy in the same directory, with the part's mode and owner. */
int write_copy_make(struct write_copy *c, bool no_lock, const _Atomic int *stop,
		    struct error *err);
/* Replace the copy with the file at `second`. */
int write_copy_second(struct write_copy *c, struct error *err);
/* Sync the copy and rename it over the part. */
int write_copy_publish(struct write_copy *c, struct error *err);
/* Remove a copy that was not published, and unlock. */
void write_copy_free(struct write_copy *c);

/* ---- what is in it ----------------------------------------------------------- */

struct writer {
	const struct write_rows *rows;
	const struct write_options *o;
	struct write_input *in;
	struct write_copy copy;
	struct hdf5_source source; /* the part, to read old chunks from */
	struct hdf5_place at;
	struct hdf5_description d;
	struct grid grid;
	uint64_t row_bytes;
	/* Bytes of numbers whose byte order is to be reversed; 0: none. */
	unsigned swap;
	hid_t file; /* the copy, open for writing */
};
/* tensors/rows/data.c: write the rows of the input to the copy.  The library's lock is
 * not held in write_data and write_data_plain. */
int write_data(struct writer *w, struct error *err);
/* tensors/rows/plain.c: as write_data, with H5Dwrite, for datasets without chunks or with
 * filters that only libhdf5 has. */
int write_data_plain(struct writer *w, hid_t dset, struct error *err);
/* tensors/rows/flags.c: write the flags. */
int write_flags(struct writer *w, struct error *err);
/* tensors/rows/compact.c: replace the copy with one without gaps, if that pays. */
int write_compact(struct writer *w, struct error *err);
/* Open a dataset that is in the copy itself.  The library's lock is held. */
int write_open_dataset(const struct writer *w, const char *path, hid_t *out,
		       struct error *err);
/* Set `err` to "cannot write WHAT of ...: " and the reason of the library or the system.
 * The library's lock is held. */
int write_failed(const struct writer *w, const char *what, struct error *err);
/* Read rows of the input, in the file's byte order. */
int write_read_rows(struct writer *w, uint64_t first, uint64_t rows, void *buf,
		    struct error *err);

#endif
