/* SPDX-License-Identifier: BSD-2-Clause */
/* Values that NumPy has no array for: lines of text, sequences, or blobs. */
#ifndef TENSOR_TEXT_H
#define TENSOR_TEXT_H

#include "tensor/tensor.h"

/* The maximum number of values in one row, and of their bytes (as far as known).  Wider string
 * tensors are listed, but not shown. */
#define TEXT_ROW_MAX (UINT64_C(1) << 20)
#define TEXT_ROW_BYTES (UINT64_C(64) << 20)

/*
 * The values of a tensor: of kind STRING or TEXT, a line each; RAGGED, each a whole
 * .npy file of one axis; BLOB, each a file with its bytes.  Values are read through
 * tensor_ops.values and cached in segments; a sample is a slice of a segment.
 */
struct text;
/* Make the text of a tensor, which must outlive it.  `axes` is the number of leading
 * axes that a sample fixes (at most the rank; RAGGED and BLOB: all of them).  No I/O. */
int text_new(struct text **out, struct tensor *t, unsigned axes,
	     struct error *err);
void text_free(struct text *x);

/* Set *size to the bytes of array.txt.  The first call loads every segment.  Blocks. */
int text_size(struct text *x, struct pinner *p, uint64_t *size,
	      struct error *err);
/* Set *size to the bytes of one sample's text or file.  Blocks when that is not in the
 * cache; for RAGGED, and where the source knows it, only the length is read. */
int text_sample_size(struct text *x, uint64_t sample, struct pinner *p,
		     uint64_t *size, struct error *err);
/* Append the extents of array.txt from `off` on.  Call text_size first; does not block. */
int text_map(const struct text *x, uint64_t off, struct plan *plan,
	     struct error *err);
/* Append the extents of one sample from `off` on; the plan must not want more bytes
 * than the sample has. */
int text_map_sample(const struct text *x, uint64_t sample, uint64_t off,
		    struct plan *plan);
/* Write the lines of rows [first, last) as one value, without the newline: the line
 * that all have, "mixed", or "" when there are no rows.  Blocks. */
int text_common(struct text *x, uint64_t first, uint64_t last, struct pinner *p,
		char *buf, size_t n, struct error *err);
/* Call `put` for every line in turn, with its newline.  Stops when `put` returns
 * something else than 0, and returns that.  Blocks. */
int text_each(struct text *x, struct pinner *p,
	      int (*put)(void *ctx, const unsigned char *line, size_t len,
			 struct error *err),
	      void *ctx, struct error *err);
/* Call `put` with the bytes of every sample in turn, as text_sample_size finds them.
 * Stops as text_each does.  Blocks. */
int text_each_size(struct text *x, struct pinner *p,
		   int (*put)(void *ctx, uint64_t size, struct error *err),
		   void *ctx, struct error *err);

#endif
