/* SPDX-License-Identifier: BSD-2-Clause */
/* What inflate.c and inflate_header.c share. */
#ifndef STREAM_INFLATE_PRIVATE_H
#define STREAM_INFLATE_PRIVATE_H

#include "stream/inflate.h"

/* Entries of the tables, as inflate.c draws them. */
#define LIT_BITS 11
#define DIST_BITS 8
#define LITERAL (UINT32_C(1) << 31)
#define SPECIAL (UINT32_C(1) << 15)
#define SUBTABLE (UINT32_C(1) << 14)
#define END (UINT32_C(1) << 13)

/* Take input so that x->bits has 56 to 63 bits, or all that there are. */
static inline void inflate_fill(struct inflate *x)
{
	while (x->n_bits < 56 && x->in < x->end) {
		x->bits |= (uint64_t)*x->in++ << x->n_bits;
		x->n_bits += 8;
	}
}

/* Take and return the next n bits, at most 32; x->bits must have them. */
static inline uint32_t inflate_take(struct inflate *x, unsigned n)
{
	uint32_t v = (uint32_t)(x->bits & ((UINT64_C(1) << n) - 1));

	x->bits >>= n;
	x->n_bits -= n;
	return v;
}

static inline enum inflate_end inflate_bad(struct inflate *x, const char *fault)
{
	x->fault = fault;
	return INFLATE_BAD;
}

/* Read the header of a block.  Return INFLATE_OUTPUT if its data follow, or
 * INFLATE_CUT or INFLATE_BAD. */
enum inflate_end inflate_read_header(struct inflate *x);

#endif
