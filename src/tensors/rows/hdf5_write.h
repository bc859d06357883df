/* SPDX-License-Identifier: BSD-2-Clause */
/* Fill rows of one part of a tensor, so that all of it happens or nothing. */
#ifndef TENSORS_ROWS_HDF5_WRITE_H
#define TENSORS_ROWS_HDF5_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "tensor/npy_read.h"

/* ---- where rows come from (tensors/rows/input.c) ----------------------------- */

struct write_input {
	const char *name; /* for sentences */
	int fd;           /* -1: there is no data, only flags are set */
	bool stream;      /* can only be read once, in order */
	bool npy;         /* has a header; else bytes as the tensor has them */
	struct npy_file head;
	uint64_t pos;  /* not a stream: of the first element in the file */
	uint64_t size; /* not a stream: bytes of elements that are there */
	uint64_t rows; /* that are to come, as checked */
	/* Bytes of a raw stream that were read to see what it is. */
	unsigned char early[16];
	unsigned n_early;
};
/* `path` "-": standard input, of which the beginning is waited for.  -ENOENT, -EBADMSG: no
 * .npy; -EINTR: *stop; ... */
int write_input_open(struct write_input *in, const char *path,
		     const _Atomic int *stop, struct error *err);
/* Are these rows what the tensor wants?  -EINVAL with both sides in the sentence.  The
 * other byte order is right. */
int write_input_check(struct write_input *in, const struct dtype *wanted,
		      unsigned rank, const uint64_t *shape, uint64_t rows,
		      struct error *err);
/* Bytes [at, at + n) of the elements; of a stream the next n (`at` is not used).  -EBADMSG:
 * there are fewer; -EINTR: *stop. */
int write_input_read(struct write_input *in, uint64_t at, void *buf, size_t n,
		     const _Atomic int *stop, struct error *err);
/* A stream ends here.  -EBADMSG: it does not. */
int write_input_end(struct write_input *in, const _Atomic int *stop,
		    struct error *err);
void write_input_close(struct write_input *in);

/* ---- a part ------------------------------------------------------------------ */

/* Rows of one dataset of one file, and the flags beside them.  Strings are borrowed. */
struct write_rows {
	const char *path;     /* of the file */
	const char *data;     /* paths in it */
	const char *flags;    /* NULL: it has none */
	uint64_t first, rows; /* in `data` */
	uint64_t flags_first; /* in `flags` */
	uint64_t input;       /* the row of the input that is the first */
	bool last;            /* nothing of a stream may follow */
};
struct write_options {
	unsigned rank;             /* of the tensor, */
	const uint64_t *shape;     /* its shape, of which rows are [1, rank) */
	const struct dtype *dtype; /* and its type as served */
	const char *flag;          /* NULL: flags stay */
	bool no_lock;
	unsigned threads; /* >= 1 */
	uint64_t memory;
	const _Atomic int *stop;
	_Atomic uint64_t *done; /* bytes of input that were taken care of */
};
/*
 * A part is replaced, never changed: see hdf5_write.c.  Waits for others who write it.
 * Calls libhdf5, which may crash on a damaged part, and starts threads: call it in a
 * process that may die.  -EINVAL: the part is another than the tensor says; -EBADMSG: it
 * is damaged; -ENODATA: it is not there; -ENOLCK: no locks here; -EAGAIN: another
 * program has it open for writing; -ENOMEM: more than `memory`; what the system says.
 * Nothing has changed then.
 */
int hdf5_write_rows(const struct write_rows *rows,
		    const struct write_options *o, struct write_input *in,
		    struct error *err);
/* Remove what a killed writer of this part has left, unless somebody writes it. */
void hdf5_write_sweep(const char *path);
/* The same for all parts in the directory of `path`. */
void hdf5_write_sweep_beside(const char *path);

#endif
