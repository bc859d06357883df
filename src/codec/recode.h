/* SPDX-License-Identifier: BSD-2-Clause */
/* Turn elements as they are stored into elements as they are served. */
#ifndef CODEC_RECODE_H
#define CODEC_RECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers that can be converted into each other. */
enum recode_number {
	RECODE_NONE, /* bytes are not converted */
	RECODE_I8,
	RECODE_I16,
	RECODE_I32,
	RECODE_I64,
	RECODE_U8,
	RECODE_U16,
	RECODE_U32,
	RECODE_U64,
	RECODE_F16,
	RECODE_F32,
	RECODE_F64
};

/* The bytes of `count` numbers of `width` bytes (2, 4, 8, 16), from byte `offset` of the
 * element on, are reversed.  Or, if `width` is a length with one of these flags, they are
 * strings, whose ends become NULs. */
#define RECODE_AFTER_NUL \
	UINT32_C(0x80000000) /* the first NUL ends the string */
#define RECODE_SPACES UINT32_C(0x40000000)
struct recode_swap {
	uint32_t offset, width, count;
};
static inline bool recode_is_string(const struct recode_swap *s)
{
	return s->width & (RECODE_AFTER_NUL | RECODE_SPACES);
}
static inline uint32_t recode_swap_width(const struct recode_swap *s)
{
	return s->width & ~(RECODE_AFTER_NUL | RECODE_SPACES);
}
#define RECODE_SWAPS_MAX 64

/* The pieces taken along an axis: `count` pieces, `stride` bytes apart. */
struct recode_axis {
	uint32_t count, stride;
};
#define RECODE_AXES_MAX 4

/*
 * One element of `from` stored bytes becomes one of `to` served bytes:
 *
 *	1. take `width` bytes from `offset` on (a field of a structure, or all), side by
 *	   side, or in equal pieces along axes, the innermost axis first (a field of an
 *	   array of structures, or of arrays of these),
 *	2. reverse the numbers that `swap` lists, and clean the strings (offsets count
 *	   from step 1's first byte),
 *	3. convert one number of type `of` to one of type `into`, both native.
 *
 * Without step 3 `to` == `width`; with it there are no axes.  This is plain data,
 * compared and copied as bytes: clear it before filling it in.
 */
struct recode {
	uint32_t from, to;
	uint32_t offset, width;
	uint32_t of, into; /* enum recode_number */
	uint32_t nswaps;
	struct recode_swap swap[RECODE_SWAPS_MAX];
	uint32_t naxes;
	struct recode_axis axis[RECODE_AXES_MAX];
};
/* Return true if nothing is to be done: stored bytes are served bytes. */
bool recode_is_identity(const struct recode *r);
/* Return true if all numbers are in range, pieces and swaps lie in the element, and
 * widths fit: for recodes from untrusted places. */
bool recode_is_valid(const struct recode *r);
/*
 * Recode n elements.  `in` and `out` may be the same place if from == to; else they must
 * not overlap.  Conversions are those of H5Tconvert, corner cases included (out of range,
 * NaN, halves); convert.c lists these.
 */
void recode_run(const struct recode *r, const void *in, void *out, size_t n);

#endif
