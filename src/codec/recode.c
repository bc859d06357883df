/* SPDX-License-Identifier: BSD-2-Clause */
/* Turn elements as they are stored into elements as they are served. */
#include "codec/recode.h"

#include <string.h>

#include "base/number.h"
#include "codec/convert.h"
#include "codec/pipeline.h"

/* Taking fields and swapping bytes are copies; numbers are converted in blocks. */

/* ---- what is valid ------------------------------------------------------- */

bool recode_is_identity(const struct recode *r)
{
	return !r->of && !r->nswaps && !r->naxes && !r->offset &&
	       r->width == r->from && r->to == r->from;
}

/* Return true if all pieces lie in the element. */
static bool pieces_are_valid(const struct recode *r)
{
	uint64_t pieces = 1, span = 0, reach;

	if (r->naxes > RECODE_AXES_MAX || !r->width)
		return false;
	for (uint32_t i = 0; i < r->naxes; i++) {
		const struct recode_axis *a = &r->axis[i];

		if (!a->count || mul_overflows(pieces, a->count, &pieces) ||
		    mul_overflows(a->count - 1, a->stride, &reach) ||
		    add_overflows(span, reach, &span))
			return false;
	}
	return pieces <= r->width && r->width % pieces == 0 &&
	       !add_overflows(span, r->width / pieces + r->offset, &span) &&
	       span <= r->from;
}

static bool swaps_are_valid(const struct recode *r)
{
	uint64_t end = 0;

	if (r->nswaps > RECODE_SWAPS_MAX)
		return false;
	for (uint32_t i = 0; i < r->nswaps; i++) {
		const struct recode_swap *s = &r->swap[i];

		if (s->width != 2 && s->width != 4 && s->width != 8 &&
		    s->width != 16 && !recode_is_string(s))
			return false;
		if (!recode_swap_width(s))
			return false;
		if (!s->count || s->offset < end)
			return false;
		end = s->offset + (uint64_t)recode_swap_width(s) * s->count;
		if (end > r->width)
			return false;
	}
	return true;
}

bool recode_is_valid(const struct recode *r)
{
	if (!r->to || !pieces_are_valid(r) || !swaps_are_valid(r))
		return false;
	/* (In place, elements that keep their size do not move.) */
	if (r->naxes && (r->of || r->into || r->width >= r->from))
		return false;
	if (!r->of && !r->into)
		return r->to == r->width;
	if (!r->of || !r->into || r->of == r->into)
		return false;
	return r->width == convert_width(r->of) &&
	       r->to == convert_width(r->into) &&
	       (!r->nswaps || r->swap[0].width == r->width);
}

/* ---- applying a recode --------------------------------------------------- */

/* Copy `n` pieces of `width` bytes, which are `stride` bytes apart, side by side.  The
 * compiler knows the widths of numbers. */
static void gather_pieces(const unsigned char *in, size_t stride, size_t width,
			  unsigned char *out, size_t n)
{
#define TAKE(w)                                                      \
	case w:                                                      \
		for (size_t i = 0; i < n; i++)                       \
			memcpy(out + i * (w), in + i * stride, (w)); \
		break
	if (width == stride) {
		memcpy(out, in, n * width);
		return;
	}
	switch (width) {
		TAKE(1);
		TAKE(2);
		TAKE(4);
		TAKE(8);
		TAKE(16);
	default:
		for (size_t i = 0; i < n; i++)
			memcpy(out + i * width, in + i * stride, width);
	}
}

/* Do step 1 (recode.h) along axes. */
static void gather_along_axes(const struct recode *r, const unsigned char *in,
			      unsigned char *out, size_t n)
{
	const struct recode_axis *inner = &r->axis[0];
	size_t runs = 1, piece;

	for (uint32_t i = 1; i < r->naxes; i++)
		runs *= r->axis[i].count;
	piece = r->width / runs / inner->count;
	for (in += r->offset; n; n--, in += r->from)
		for (size_t k = 0; k < runs; k++) {
			const unsigned char *at = in;
			size_t left = k;

			for (uint32_t i = 1; i < r->naxes; i++) {
				const struct recode_axis *a = &r->axis[i];

				at += left % a->count * a->stride;
				left /= a->count;
			}
			gather_pieces(at, inner->stride, piece, out,
				      inner->count);
			out += piece * inner->count;
		}
}

/* Fill the ends of `count` strings, which are side by side, with NULs. */
static void clean_strings(unsigned char *p, const struct recode_swap *s)
{
	size_t width = recode_swap_width(s);

	for (uint32_t k = 0; k < s->count; k++, p += width) {
		unsigned char *end = p + width;

		if (s->width & RECODE_AFTER_NUL) {
			end = memchr(p, 0, width);
			if (end)
				memset(end, 0, (size_t)(p + width - end));
			continue;
		}
		while (end > p && end[-1] == ' ')
			*--end = 0;
	}
}

/* Reverse one entry's numbers in each of `n` elements, which are `stride` bytes apart. */
static void swap_entry(unsigned char *p, size_t stride, size_t n,
		       const struct recode_swap *s)
{
#define SWAP(type, reverse)                             \
	do {                                            \
		type v;                                 \
                                                        \
		memcpy(&v, p + k * sizeof v, sizeof v); \
		v = reverse(v);                         \
		memcpy(p + k * sizeof v, &v, sizeof v); \
	} while (0)
#define SWAP_ALL(type, reverse)                       \
	for (; n; n--, p += stride)                   \
		for (size_t k = 0; k < s->count; k++) \
	SWAP(type, reverse)
	p += s->offset;
	if (recode_is_string(s)) {
		for (; n; n--, p += stride)
			clean_strings(p, s);
		return;
	}
	switch (s->width) {
	case 2:
		SWAP_ALL(uint16_t, __builtin_bswap16);
		break;
	case 4:
		SWAP_ALL(uint32_t, __builtin_bswap32);
		break;
	case 8:
		SWAP_ALL(uint64_t, __builtin_bswap64);
		break;
	default:
		for (; n; n--, p += stride)
			swap_bytes(p, (size_t)s->count * s->width, s->width);
	}
}

/* Do step 2 in elements of r->width bytes. */
static void swap_elements(const struct recode *r, unsigned char *p, size_t n)
{
	size_t block = r->width < 16384 ? 16384 / r->width : 1;

	if (r->nswaps == 1 && !recode_is_string(&r->swap[0]) &&
	    (uint64_t)r->swap[0].count * r->swap[0].width == r->width) {
		swap_bytes(p, n * r->width, r->swap[0].width);
		return;
	}
	while (r->nswaps && n) {
		size_t now = n < block ? n : block;

		for (uint32_t i = 0; i < r->nswaps; i++)
			swap_entry(p, r->width, now, &r->swap[i]);
		p += now * r->width;
		n -= now;
	}
}

/* Do all steps for at most CONVERT_MAX elements; `in` may be `out`. */
static void convert_block(const struct recode *r, const unsigned char *in,
			  unsigned char *out, size_t n)
{
	unsigned char taken[CONVERT_MAX * 8];

	if (r->width != r->from || r->nswaps) {
		gather_pieces(in + r->offset, r->from, r->width, taken, n);
		swap_elements(r, taken, n);
		in = taken;
	}
	convert_run(r->of, r->into, r->nswaps > 0, in, out, n);
}

/* Return true if step 3 changes no bytes: there is none, or the numbers get another type
 * but by bits stay the same. */
static bool keeps_bits(const struct recode *r)
{
	return !r->of || (r->nswaps && r->width == r->to &&
			  r->of < RECODE_F16 && r->into < RECODE_F16);
}

void recode_run(const struct recode *r, const void *in, void *out, size_t n)
{
	const unsigned char *from = in;
	unsigned char *to = out;

	if (keeps_bits(r)) {
		if (r->naxes)
			gather_along_axes(r, from, to, n);
		else if (in != out)
			gather_pieces(from + r->offset, r->from, r->width, to,
				      n);
		swap_elements(r, to, n);
		return;
	}
	while (n) {
		size_t now = n < CONVERT_MAX ? n : CONVERT_MAX;

		convert_block(r, from, to, now);
		from += now * r->from;
		to += now * r->to;
		n -= now;
	}
}
