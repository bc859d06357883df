/* SPDX-License-Identifier: BSD-2-Clause */
/* How elements of one type become those of another, as a recode. */
#include "tensor/dtype.h"

#include <string.h>

#include "base/number.h"

#define HOST_IS_BIG (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

/* ---- orders of bytes ----------------------------------------------------- */

static uint64_t swap_end(const struct recode_swap *s)
{
	return s->offset + (uint64_t)recode_swap_width(s) * s->count;
}

/* Add `count` numbers of `width` bytes to swap, prolonging the last entry where
 * possible.  Return false if there are too many entries. */
static bool swap_add(struct recode *r, uint64_t offset, uint32_t width,
		     uint64_t count)
{
	struct recode_swap *s = r->nswaps ? &r->swap[r->nswaps - 1] : NULL;

	if (s && s->width == width && swap_end(s) == offset) {
		s->count += (uint32_t)count;
		return true;
	}
	if (r->nswaps == RECODE_SWAPS_MAX)
		return false;
	r->swap[r->nswaps++] =
		(struct recode_swap){(uint32_t)offset, width, (uint32_t)count};
	return true;
}

static bool swap_collect(const struct dtype *a, const struct dtype *b,
			 uint64_t at, uint64_t count, struct recode *r);

static bool swap_fields(const struct dtype *a, const struct dtype *b,
			uint64_t at, struct recode *r)
{
	uint64_t count, size;

	for (uint32_t i = 0; i < a->nfields; i++) {
		const struct dtype_field *f = &a->fields[i];

		if (!dtype_same_place(f, &b->fields[i]) ||
		    !dtype_field_size(f, &count, &size) || size > a->size ||
		    f->offset > a->size - size ||
		    !swap_collect(&f->type, &b->fields[i].type, at + f->offset,
				  count, r))
			return false;
	}
	return true;
}

/*
 * Collect the swaps of `count` structures side by side.  Subarrays may be long, but
 * entries are few: elements without a swap are all alike, elements that are one run of
 * numbers prolong one entry, and any others use up entries.
 */
static bool swap_structs(const struct dtype *a, const struct dtype *b,
			 uint64_t at, uint64_t count, struct recode *r)
{
	if (a->nfields != b->nfields)
		return false;
	for (; count; count--, at += a->size) {
		uint32_t n = r->nswaps, c = n ? r->swap[n - 1].count : 0;
		const struct recode_swap *s;

		if (!swap_fields(a, b, at, r))
			return false;
		if (r->nswaps == n && (!n || r->swap[n - 1].count == c))
			return true;
		s = &r->swap[r->nswaps - 1];
		if (s->offset <= at && swap_end(s) == at + a->size)
			return swap_add(r, at + a->size, s->width,
					(count - 1) * a->size /
						recode_swap_width(s));
	}
	return true;
}

/* Collect the swaps that turn `count` elements of type `a` at `at` into type `b`.
 * Return false if there are too many, or if swaps are not enough.  The elements lie
 * inside r->width. */
static bool swap_collect(const struct dtype *a, const struct dtype *b,
			 uint64_t at, uint64_t count, struct recode *r)
{
	uint32_t width = a->size;

	if (a->kind != b->kind || a->size != b->size)
		return false;
	if (a->kind == DTYPE_STRUCT)
		return swap_structs(a, b, at, count, r);
	if (!dtype_is_binary(a))
		return dtype_equal(a, b);
	if (a->kind == DTYPE_BYTES && a->padding != b->padding)
		return !b->padding && a->size < RECODE_SPACES &&
		       swap_add(r, at,
				width | (a->padding == PADDED_SPACES
						 ? RECODE_SPACES
						 : RECODE_AFTER_NUL),
				count);
	if (a->kind == DTYPE_COMPLEX) {
		width /= 2;
		count *= 2;
	}
	if (a->kind > DTYPE_COMPLEX || width < 2 || !count ||
	    a->big_endian == b->big_endian)
		return true;
	return swap_add(r, at, width, count);
}

/* ---- numbers ------------------------------------------------------------- */

static enum recode_number recode_number_of(const struct dtype *d)
{
	bool i = d->kind == DTYPE_INT, u = d->kind == DTYPE_UINT;

	if (d->kind == DTYPE_BOOL)
		return RECODE_I8;
	if (!i && !u && d->kind != DTYPE_FLOAT)
		return RECODE_NONE;
	switch (d->size) {
	case 1:
		return i ? RECODE_I8 : u ? RECODE_U8 : RECODE_NONE;
	case 2:
		return i ? RECODE_I16 : u ? RECODE_U16 : RECODE_F16;
	case 4:
		return i ? RECODE_I32 : u ? RECODE_U32 : RECODE_F32;
	case 8:
		return i ? RECODE_I64 : u ? RECODE_U64 : RECODE_F64;
	default:
		return RECODE_NONE;
	}
}

/* Describe the conversion of one type of number into another.  HDF5 converts no number
 * into an enum, which is how it stores a bool. */
static bool recode_convert(const struct dtype *a, const struct dtype *b,
			   struct recode *r)
{
	enum recode_number of = recode_number_of(a), into = recode_number_of(b);

	if (!of || !into || b->kind == DTYPE_BOOL || r->width != a->size)
		return false;
	if (of == into)
		return true;
	if (b->size > 1 && b->big_endian != HOST_IS_BIG)
		return false;
	r->of = of;
	r->into = into;
	return a->size == 1 || a->big_endian == HOST_IS_BIG ||
	       swap_add(r, 0, a->size, 1);
}

/* ---- fields -------------------------------------------------------------- */

/* Add an axis around the existing ones.  Return false if there are too many. */
static bool axis_add(struct recode *r, uint64_t count, uint64_t stride)
{
	struct recode_axis *a = r->naxes ? &r->axis[r->naxes - 1] : NULL;

	if (a && (uint64_t)a->count * a->stride == stride) {
		/* the counts divide r->width, so they fit */
		a->count *= (uint32_t)count;
		return true;
	}
	if (r->naxes == RECODE_AXES_MAX || stride > UINT32_MAX)
		return false;
	r->axis[r->naxes++] =
		(struct recode_axis){(uint32_t)count, (uint32_t)stride};
	return true;
}

bool dtype_take_field(const struct dtype *stored,
		      const struct dtype_field *field, struct recode *out)
{
	uint64_t count, width, piece = field->type.size;

	memset(out, 0, sizeof *out);
	if (!dtype_field_size(field, &count, &width) || !width ||
	    width > stored->size)
		return false;
	out->from = stored->size;
	out->offset = field->offset;
	out->width = out->to = (uint32_t)width;
	for (uint32_t i = field->strides ? field->rank : 0; i-- > 0;) {
		uint64_t n = field->dims[i], stride = field->strides[i];

		if (!out->naxes && stride == piece)
			piece *= n; /* elements side by side are one piece */
		else if (n > 1 && !axis_add(out, n, stride))
			return false;
	}
	return recode_is_valid(out);
}

bool dtype_recode(const struct dtype *stored, const struct dtype *served,
		  const struct dtype_field *field, struct recode *out)
{
	const struct dtype_field whole = {.type = *stored};
	const struct dtype *a = field ? &field->type : stored;
	uint64_t count, to;

	if (!dtype_take_field(stored, field ? field : &whole, out))
		return false;
	count = out->width / a->size;
	if (mul_overflows(served->size, count, &to) || to > UINT32_MAX)
		return false;
	out->to = (uint32_t)to;
	if (a->kind == served->kind && a->size == served->size)
		return swap_collect(a, served, 0, count, out) &&
		       recode_is_valid(out);
	return recode_convert(a, served, out) && recode_is_valid(out);
}
