/* SPDX-License-Identifier: BSD-2-Clause */
/* What a text is made of; for text*.c only. */
#ifndef TENSOR_TEXT_PRIVATE_H
#define TENSOR_TEXT_PRIVATE_H

#include "base/vec.h"
#include "tensor/lines.h"
#include "tensor/text.h"

/* Samples that share a part, or a gap, and are neighbours. */
struct piece {
	uint64_t sample, segment; /* the first ones */
};

struct text {
	struct chunk_set set;
	struct tensor *t;
	enum lines_style style;
	struct sequence sequence; /* RAGGED */
	uint64_t samples, sample_values;
	uint64_t row_samples; /* in an index of the first axis */
	uint64_t segment_samples, segments;
	vec(struct piece) pieces; /* none: all samples are one */
	/* Once asked for: bytes of each segment, UINT64_MAX: not known; and
	 * their sums, when all are. */
	_Atomic(_Atomic uint64_t *) bytes;
	_Atomic(uint64_t *) start;
};

static inline struct text *text_of(const struct chunk_set *s)
{
	return (struct text *)s;
}

/* Samples of a segment: the first one, and how many. */
void text_segment_range(const struct text *x, uint64_t segment, uint64_t *first,
			uint64_t *n);
/* All of a tensor. */
void text_whole_box(const struct tensor *t, struct box *b);

/* Pin a segment, all of it. */
int text_pin(struct text *x, uint64_t segment, struct pinner *p,
	     struct span *span, struct error *err);

/* chunk_set_ops.fetch: ask for the values of a segment; text_fill.c. */
int text_fill(struct chunk_set *s, uint64_t segment, _Atomic uint64_t *gauge,
	      struct buf **out, struct error *err);

/* Sequences; text_sequence.c.  Bytes of a sample's file, by its length in the
 * index alone. */
int text_sequence_size(struct text *x, uint64_t sample, struct pinner *p,
		       uint64_t *size, struct error *err);
/* Bytes of a sample's file, by the length that the source knows without it; 1: known,
 * 0: it has to be read. */
int text_known_size(struct text *x, uint64_t sample, uint64_t *size,
		    struct error *err);
/* A sequence has n elements, as one of index and heap says: does that
 * contradict what was last said of it?  *before is then that. */
bool text_counts_differ(const struct text *x, uint64_t sample, uint64_t n,
			uint64_t *before);
int text_counts_error(const struct text *x, uint64_t sample, uint64_t heap,
		      uint64_t index, struct error *err);

#endif
