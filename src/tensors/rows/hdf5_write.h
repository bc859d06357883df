/* SPDX-License-Identifier: BSD-2-Clause */
/* Write rows of one part of a tensor: all of them or none. */
#ifndef TENSORS_ROWS_HDF5_WRITE_H
#define TENSORS_ROWS_HDF5_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "tensor/npy_read.h"

/* ---- where rows come from (tensors/rows/input.c) ----------------------------- */

struct write_input {
	const char *name; /* for sentences */
	int fd;           /* -1: no data, only flags are set */
	bool stream;      /* can only be read once, in order */
	/* Has a .npy header; otherwise plain bytes as in the tensor. */
	bool npy;
	struct npy_file head;
	uint64_t pos;  /* unless a stream: position of the first element */
	uint64_t size; /* unless a stream: bytes of elements in the file */
	uint64_t rows; /* rows to come, as set by write_input_check */
	/* The first bytes of a raw stream, which were read to look for a header. */
	unsigned char early[16];
	unsigned n_early;
};
/* Open `path`; "-" is standard input, whose first bytes are waited for.  Return 0;
 * -ENOENT; -EBADMSG if it is not a .npy file; -EINTR if *stop was set; or another
 * error. */
int write_input_open(struct write_input *in, const char *path,
		     const _Atomic int *stop, struct error *err);
/* Check that the input has `rows` rows of the tensor, in either byte order.  Return 0, or
 * -EINVAL with what it has and what is wanted in the sentence. */
int write_input_check(struct write_input *in, const struct dtype *wanted,
		      unsigned rank, const uint64_t *shape, uint64_t rows,
		      struct error *err);
/* Read bytes [at, at + n) of the elements; of a stream the next `n` (`at` is ignored).
 * Return -EBADMSG if there are fewer, -EINTR if *stop was set. */
int write_input_read(struct write_input *in, uint64_t at, void *buf, size_t n,
		     const _Atomic int *stop, struct error *err);
/* Check that a stream ends here.  Return -EBADMSG if it does not. */
int write_input_end(struct write_input *in, const _Atomic int *stop,
		    struct error *err);
/* Close the input, unless it is standard input. */
void write_input_close(struct write_input *in);

/* ---- a part ------------------------------------------------------------------ */

/* Rows of one dataset of one file, and their flags.  Strings are borrowed. */
struct write_rows {
	const char *path;     /* path of the file */
	const char *data;     /* paths in the file */
	const char *flags;    /* NULL: the file has no flags */
	uint64_t first, rows; /* in `data` */
	uint64_t flags_first; /* in `flags` */
	/* Number of the input's row that goes to `first`. */
	uint64_t input;
	bool last; /* a stream must end after these rows */
};
struct write_options {
	unsigned rank;             /* rank of the tensor, */
	const uint64_t *shape;     /* its shape; a row has axes [1, rank) */
	const struct dtype *dtype; /* and its type as served */
	const char *flag;          /* NULL: keep the flags */
	bool no_lock;
	unsigned threads; /* >= 1 */
	uint64_t memory;
	const _Atomic int *stop;
	/* Counts the bytes of input that were written. */
	_Atomic uint64_t *done;
};
/*
 * Write rows of a part, which is replaced and never changed: see hdf5_write.c.  Waits for
 * other writers of the part.  Calls libhdf5, which may crash on a damaged part, and
 * starts threads: call it in a process that may die.  Return 0; -EINVAL if the part
 * differs from the tensor; -EBADMSG if it is damaged; -ENODATA if it does not exist;
 * -ENOLCK if there are no locks; -EAGAIN if another program has it open for writing;
 * -ENOMEM if `memory` is not enough; or another error.  After an error nothing has
 * changed.
 */
int hdf5_write_rows(const struct write_rows *rows,
		    const struct write_options *o, struct write_input *in,
		    struct error *err);
/* Remove files that a killed writer of this part has left, unless another process writes
 * it. */
void hdf5_write_sweep(const char *path);
/* As hdf5_write_sweep, for all parts in the directory of `path`. */
void hdf5_write_sweep_beside(const char *path);

#endif
