/* SPDX-License-Identifier: BSD-2-Clause */
/* Values written one after another, and where each sample's bytes are. */
#ifndef TENSOR_LINES_H
#define TENSOR_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "tensor/dtype.h"

/* How a sequence is written: as a .npy of shape (n, the element's own axes). */
struct sequence {
	const struct dtype_field *of; /* its elements */
	char *descr;                  /* where they are structures */
	uint64_t bytes;               /* of one element */
};
/* -ENOTSUP: there is no .npy of these elements. */
int sequence_init(struct sequence *s, const struct dtype *ragged,
		  struct error *err);
void sequence_free(struct sequence *s);
/* Bytes of the file that holds n elements; false when that overflows. */
bool sequence_size(const struct sequence *s, uint64_t n, uint64_t *size);

enum lines_style {
	LINES_TEXT, /* a line each; backslash and newline escaped */
	LINES_JSON, /* a line each, as it is */
	LINES_NPY,  /* a sequence each */
	LINES_BLOB  /* as it is, nothing added */
};

/*
 * Values as they come from the source, `per_sample` of them in each sample.  A
 * sample with a value that could not be had is marked: it holds the reason.
 */
struct lines {
	enum lines_style style;
	const struct sequence *sequence; /* LINES_NPY */
	unsigned char *data;
	size_t used, room;
	uint64_t *offset; /* [samples + 1] */
	uint64_t samples, per_sample, values, failed;
	struct error why; /* code != 0: the present sample has failed */
	int code;         /* nothing more fits, and the error says why */
	struct error *err;
};
/* -ENOMEM. */
int lines_init(struct lines *l, enum lines_style style, uint64_t samples,
	       uint64_t per_sample, struct error *err);
void lines_free(struct lines *l);
/* Append a value; l->code says whether that went well. */
void lines_put(struct lines *l, const char *s, size_t len);
/* Append n values that are not there: empty, JSON's null, no elements. */
void lines_put_empty(struct lines *l, uint64_t n);
/* Append n values that failed. */
void lines_put_failed(struct lines *l, uint64_t n, const struct error *why);

/* Forget the values after a mark. */
struct lines_mark {
	size_t used;
	uint64_t values, failed;
	struct error why;
};
void lines_mark(const struct lines *l, struct lines_mark *mark);
void lines_rewind(struct lines *l, const struct lines_mark *mark);

/*
 * The finished buffer: u64 samples | u64 failed | u64 offset[samples + 1] | data.
 * -EIO when values are missing, -ENOMEM.
 */
int lines_pack(struct lines *l, _Atomic uint64_t *gauge, struct buf **out,
	       struct error *err);
static inline size_t lines_head(uint64_t samples)
{
	return ((size_t)samples + 3) * sizeof(uint64_t);
}
/* Where sample n is in the buffer; a negative errno: it failed, and this is the
 * sentence.  -EIO with *len 0: there is none. */
int lines_slice(const struct buf *b, uint64_t n, size_t *off, size_t *len);
/* The same, as an error. */
int lines_slice_error(const struct buf *b, int code, size_t off, size_t len,
		      struct error *err);
/* The error of the first sample that failed, 0 when none has. */
int lines_first_error(const struct buf *b, struct error *err);

#endif
