/* SPDX-License-Identifier: BSD-2-Clause */
/* What views share: which tensors they are for, and numbers in names. */
#ifndef VIEWS_NAME_H
#define VIEWS_NAME_H

#include "views/view.h"

/* Numbers in names: as wide as the largest, at least this. */
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
/* Each element is a sample, with a size of its own. */
static inline bool view_is_sized(const struct tensor *t)
{
	return view_is_ragged(t) || view_is_blob(t);
}

unsigned view_width(uint64_t largest);
/* Exactly `width` digits at *s (or more without a leading zero: never made, so
 * never found); moves *s behind them.  -ENOENT. */
int view_take_number(const char **s, unsigned width, uint64_t *out);
/*
 * Numbers below n without leading zeros, in the order of their names as text: 0, 1, 10,
 * 11, 2.  The place of `number` in that order, and the number at a place; both below n.
 */
uint64_t view_decimal_place(uint64_t number, uint64_t n);
uint64_t view_decimal_at(uint64_t place, uint64_t n);
/* All of the tensor, whatever the entry. */
void view_whole_box(const struct view *v, const uint64_t *at, struct box *out);

#endif
