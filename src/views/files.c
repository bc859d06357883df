/* SPDX-License-Identifier: BSD-2-Clause */
/* Decide which views a tensor has, and make its directory. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "tensor/text.h"
#include "views/classes.h"
#include "views/node.h"
#include "views/state.h"

unsigned view_sample_axes(const struct view_options *o, const struct tensor *t)
{
	unsigned axes = !o->sample_axes_given && t->sample_axes
				? t->sample_axes
				: o->sample_axes;

	if (t->dtype.kind == DTYPE_RAGGED || t->dtype.kind == DTYPE_BLOB ||
	    axes > t->rank)
		axes = t->rank;
	return axes;
}

struct tensor *tensor_of_files(const struct files *f)
{
	return f && f->ops == &tensor_files_ops ? tensor_files_of(f)->tensor
						: NULL;
}

bool view_add_note(struct tensor *t, const char *top, const char *why)
{
	cleanup_free char *before = t->note;

	t->note = NULL;
	if (asprintf(&t->note, "%s%s%s/ is left out: %s", before ? before : "",
		     before ? "; " : "", top, why) >= 0)
		return true;
	t->note = NULL;
	return false;
}

/* Does row `a` come before row `b` in the directory? */
static bool comes_before(unsigned a, unsigned b, uint64_t listed)
{
	bool first = listed >> a & 1, second = listed >> b & 1;

	return first != second
		       ? first
		       : strcmp(view_table[a]->top, view_table[b]->top) < 0;
}

/* Insert a row in the order of the directory; return its place. */
static unsigned files_insert(struct tensor_files *f, unsigned row,
			     uint64_t listed)
{
	unsigned k = f->n++;

	for (; k && comes_before(row, f->row[k - 1], listed); k--)
		f->row[k] = f->row[k - 1];
	f->row[k] = (uint8_t)row;
	return k;
}

/* Return the rows that no option can leave out. */
static uint64_t view_always(void)
{
	uint64_t rows = 0;

	for (unsigned i = 0; view_table[i]; i++)
		rows |= view_table[i]->name ? 0 : UINT64_C(1) << i;
	return rows;
}

/* Add a view if it fits and there are node numbers left for it.  Return false without
 * memory. */
static bool files_add(struct tensor_files *f, unsigned row, uint64_t views,
		      uint64_t *numbers)
{
	const struct view_ops *ops = view_table[row];
	struct view v;
	unsigned k;
	uint64_t n;

	if (!ops->fits(f->tensor, f->sample_axes))
		return true;
	k = files_insert(f, row, views);
	view_make(f, k, 0, &v);
	n = view_numbers(&v);
	if (n < FILES_NODE_MAX && *numbers + n < FILES_NODE_MAX) {
		*numbers += n;
		f->listed = (uint8_t)(f->listed + (views >> row & 1));
		return true;
	}
	memmove(f->row + k, f->row + k + 1, --f->n - k);
	return !(views >> row & 1) ||
	       view_add_note(
		       f->tensor, ops->top,
		       "it would have more files than there are node numbers");
}

static int files_text(struct tensor *t, unsigned axes, struct error *err)
{
	if (t->why_not || dtype_is_binary(&t->dtype) ||
	    t->dtype.kind == DTYPE_OTHER)
		return 0;
	return text_new(&t->text, t, axes, err);
}

/* Add all views that fit.  Listed views come first, in case there are not enough node
 * numbers for all.  Return false without memory. */
static bool files_add_all(struct tensor_files *f, uint64_t views)
{
	uint64_t numbers = VIEWS_MAX + 1;
	bool ok = true;

	for (unsigned pass = 0; pass < 2; pass++)
		for (unsigned row = 0; ok && view_table[row]; row++)
			if ((views >> row & 1) != pass)
				ok = files_add(f, row, views, &numbers);
	return ok;
}

int tensor_files_new(struct files **out, struct tensor *t,
		     const struct view_options *o, struct error *err)
{
	unsigned axes = view_sample_axes(o, t);
	struct tensor_files *f, *fit;
	int r = files_text(t, axes, err);

	f = r < 0 ? NULL : malloc(sizeof *f + VIEWS_MAX);
	if (!f || !view_state_new(t)) {
		free(f);
		tensor_free(t);
		return r < 0 ? r
			     : error_no_memory(err,
					       "the directory of a dataset");
	}
	classes_offer(o->classes, t, axes);
	f->files.ops = &tensor_files_ops;
	f->tensor = t;
	t->shards = shards_cut_default(&o->shards);
	f->sample_axes = (uint8_t)axes;
	f->n = f->listed = 0;
	if (!files_add_all(f, o->views | view_always())) {
		tensor_files_ops.free(&f->files);
		return error_no_memory(err, "the directory of a dataset");
	}
	fit = realloc(f, offsetof(struct tensor_files, row) + f->n);
	*out = fit ? &fit->files : &f->files;
	return 0;
}
