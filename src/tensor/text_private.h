/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of a text, for text*.c only. */
#ifndef TENSOR_TEXT_PRIVATE_H
#define TENSOR_TEXT_PRIVATE_H

#include "base/vec.h"
#include "tensor/lines.h"
#include "tensor/text.h"

/* Neighbouring samples that share a part, or a gap. */
struct piece {
	/* number of the first sample, and of the first segment */
	uint64_t sample, segment;
};

struct text {
	struct chunk_set set;
	struct tensor *t;
	enum lines_style style;
	struct sequence sequence; /* RAGGED */
	uint64_t samples, sample_values;
	uint64_t row_samples; /* samples in one index of the first axis */
	uint64_t segment_samples, segments;
	vec(struct piece) pieces; /* empty: all samples are one piece */
	/* Set once array.txt was asked for: the bytes of each segment (UINT64_MAX: not
	 * known yet), and their running sums when all are known. */
	_Atomic(_Atomic uint64_t *) bytes;
	_Atomic(uint64_t *) start;
};

static inline struct text *text_of(const struct chunk_set *s)
{
	return (struct text *)s;
}

/* Set *first to the first sample of a segment, and *n to the number of its samples. */
void text_segment_range(const struct text *x, uint64_t segment, uint64_t *first,
			uint64_t *n);
/* Set *b to the whole tensor. */
void text_whole_box(const struct tensor *t, struct box *b);

/* Pin a whole segment.  Blocks; the caller unpins it. */
int text_pin(struct text *x, uint64_t segment, struct pinner *p,
	     struct span *span, struct error *err);

/* Load the values of a segment, as chunk_set_ops.fetch; in text_fill.c. */
int text_fill(struct chunk_set *s, uint64_t segment, _Atomic uint64_t *gauge,
	      struct buf **out, struct error *err);

/* Functions for sequences, in text_sequence.c.  Set *size to the bytes of a sample's
 * file; only its length in the index is read. */
int text_sequence_size(struct text *x, uint64_t sample, struct pinner *p,
		       uint64_t *size, struct error *err);
/* Set *size to the bytes of a sample's file, if the source knows its length without
 * reading it.  Return 1 if so, 0 if the sample has to be read, -errno on errors. */
int text_known_size(struct text *x, uint64_t sample, uint64_t *size,
		    struct error *err);
/* One of index and heap says that a sequence has `n` elements.  Return true if the
 * other said something else before, and set *before to that. */
bool text_counts_differ(const struct text *x, uint64_t sample, uint64_t n,
			uint64_t *before);
int text_counts_error(const struct text *x, uint64_t sample, uint64_t heap,
		      uint64_t index, struct error *err);

#endif
