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

/* How a sequence is written: as a .npy file of shape (n, axes of an element). */
struct sequence {
	const struct dtype_field *of; /* an element of the sequence */
	/* of elements that are structures; owned */
	char *descr;
	uint64_t bytes; /* bytes of one element */
};
/* Set up `s` for a type of kind RAGGED.  Return 0; -ENOTSUP if these elements cannot be
 * in a .npy file; -ENOMEM. */
int sequence_init(struct sequence *s, const struct dtype *ragged,
		  struct error *err);
void sequence_free(struct sequence *s);
/* Set *size to the bytes of the file that holds `n` elements.  Return false on
 * overflow. */
bool sequence_size(const struct sequence *s, uint64_t n, uint64_t *size);

enum lines_style {
	LINES_TEXT, /* a line each; backslash and newline escaped */
	LINES_JSON, /* a line each, newlines as spaces */
	LINES_NPY,  /* a .npy file for each sequence */
	LINES_BLOB  /* the bytes of each value, unchanged */
};

/*
 * Values as they come from the source, `per_sample` of them in each sample.  A sample
 * with a value that could not be read is marked as failed and holds the reason.
 */
struct lines {
	enum lines_style style;
	const struct sequence *sequence; /* for LINES_NPY */
	unsigned char *data;
	size_t used, room;
	uint64_t *offset; /* [samples + 1] */
	uint64_t samples, per_sample, values, failed;
	struct error why; /* code != 0: the current sample has failed */
	int code;         /* -errno once adding failed; *err says why */
	struct error *err;
};
/* Start with no values.  `err` must outlive `l`.  Return 0 or -ENOMEM; call lines_free. */
int lines_init(struct lines *l, enum lines_style style, uint64_t samples,
	       uint64_t per_sample, struct error *err);
void lines_free(struct lines *l);
/* Append a value.  Sets l->code on errors. */
void lines_put(struct lines *l, const char *s, size_t len);
/* Append `n` missing values: empty lines, JSON's null, sequences without elements. */
void lines_put_empty(struct lines *l, uint64_t n);
/* Append `n` values that failed for the reason `why`. */
void lines_put_failed(struct lines *l, uint64_t n, const struct error *why);

/* Remember a position, and forget the values after it. */
struct lines_mark {
	size_t used;
	uint64_t values, failed;
	struct error why;
};
void lines_mark(const struct lines *l, struct lines_mark *mark);
void lines_rewind(struct lines *l, const struct lines_mark *mark);

/*
 * Make the finished buffer: u64 samples | u64 failed | u64 offset[samples + 1] | data.
 * The caller owns the reference *out.  Return 0; -EIO when values are missing; -ENOMEM.
 */
int lines_pack(struct lines *l, _Atomic uint64_t *gauge, struct buf **out,
	       struct error *err);
static inline size_t lines_head(uint64_t samples)
{
	return ((size_t)samples + 3) * sizeof(uint64_t);
}
/* Set *off and *len to the bytes of sample `n` in the buffer.  Return 0; a negative
 * errno if the sample failed (the bytes are then the sentence); -EIO with *len 0 if
 * there is no such sample. */
int lines_slice(const struct buf *b, uint64_t n, size_t *off, size_t *len);
/* Set the error of a failed sample from what lines_slice returned; return `code`. */
int lines_slice_error(const struct buf *b, int code, size_t off, size_t len,
		      struct error *err);
/* Return the error of the first sample that failed, or 0 if none has. */
int lines_first_error(const struct buf *b, struct error *err);

#endif
