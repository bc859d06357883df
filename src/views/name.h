/* SPDX-License-Identifier: BSD-2-Clause */
/* What views share: kinds of tensors, and numbers in names of files. */
#ifndef VIEWS_NAME_H
#define VIEWS_NAME_H

#include "views/view.h"

/* Numbers in names are padded to the width of the largest, and at least to this. */
#define VIEW_WIDTH_MIN 6

static inline bool view_is_numeric(const struct tensor *t)
{
	return !t->why_not && dtype_is_binary(&t->dtype);
}
static inline bool view_is_text(const struct tensor *t)
{
	return t->text && t->dtype.kind < DTYPE_RAGGED;
}
static inline bool view_is_ragged(const struct tensor *t)
{
	return t->text && t->dtype.kind == DTYPE_RAGGED;
}
static inline bool view_is_blob(const struct tensor *t)
{
	return t->text && t->dtype.kind == DTYPE_BLOB;
}
/* Is each element a sample with a size of its own? */
static inline bool view_is_sized(const struct tensor *t)
{
	return view_is_ragged(t) || view_is_blob(t);
}

/* Return the width of numbers in names up to `largest`, in digits. */
unsigned view_width(uint64_t largest);
/* Read exactly `width` digits at *s and move *s behind them.  Return 0 or -ENOENT.
 * Numbers of more digits are never made, so they are never found. */
int view_read_number(const char **s, unsigned width, uint64_t *out);
/*
 * Numbers below `n` without leading zeros, sorted as text: 0, 1, 10, 11, 2.  Return the
 * place of `number` in that order, and the number at a place; both are below `n`.
 */
uint64_t view_decimal_place(uint64_t number, uint64_t n);
uint64_t view_decimal_at(uint64_t place, uint64_t n);
/* Set *out to the whole tensor, whatever the entry (view_ops.box_of). */
void view_whole_box(const struct view *v, const uint64_t *at, struct box *out);

#endif
