/* SPDX-License-Identifier: BSD-2-Clause */
/* Values that are no NumPy array: lines of text, sequences, or blobs. */
#ifndef TENSOR_TEXT_H
#define TENSOR_TEXT_H

#include "tensor/tensor.h"

/* Values, and their bytes (as far as known), of one row at most; wider string
 * tensors are listed, not shown. */
#define TEXT_ROW_MAX (UINT64_C(1) << 20)
#define TEXT_ROW_BYTES (UINT64_C(64) << 20)

/*
 * The values of a tensor of kind STRING or TEXT, a line each; RAGGED: each a
 * whole .npy file of one axis; BLOB: each a file as it is.  Values are asked for (tensor_ops.values) and
 * cached in segments; a sample is a slice of one.
 */
struct text;
/* `axes`: leading axes that a sample fixes (at most the rank; RAGGED and
 * BLOB: all of them).  No I/O. */
int text_new(struct text **out, struct tensor *t, unsigned axes,
	     struct error *err);
void text_free(struct text *x);

/* Bytes of array.txt: loads every segment once, then remembers.  Blocks. */
int text_size(struct text *x, struct pinner *p, uint64_t *size,
	      struct error *err);
/* Bytes of one sample's text or file.  Blocks when that is not in the cache;
 * for RAGGED, and where the source knows, only the length is read. */
int text_sample_size(struct text *x, uint64_t sample, struct pinner *p,
		     uint64_t *size, struct error *err);
/* Extents of array.txt from `off` on; pure, after text_size. */
int text_map(const struct text *x, uint64_t off, struct plan *plan,
	     struct error *err);
/* Extents of one sample; the plan wants no more than the sample has. */
int text_map_sample(const struct text *x, uint64_t sample, uint64_t off,
		    struct plan *plan);
/* The lines of rows [first, last) as one value: what they all are, "mixed", or
 * "" when there are none; without the newline.  Blocks. */
int text_common(struct text *x, uint64_t first, uint64_t last, struct pinner *p,
		char *buf, size_t n, struct error *err);
/* Every line in turn, its newline included.  Not 0: the end.  Blocks. */
int text_each(struct text *x, struct pinner *p,
	      int (*put)(void *ctx, const unsigned char *line, size_t len,
			 struct error *err),
	      void *ctx, struct error *err);
/* The bytes of every sample in turn, as text_sample_size.  Not 0: the end.  Blocks. */
int text_each_size(struct text *x, struct pinner *p,
		   int (*put)(void *ctx, uint64_t size, struct error *err),
		   void *ctx, struct error *err);

#endif
