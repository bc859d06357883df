/* SPDX-License-Identifier: BSD-2-Clause */
/* blocks/000000-000100.npy: a file for each stored block. */
#include "views/name.h"
#include "views/node.h"
#include "views/table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Is a file name long enough for a range of each divided axis? */
static bool blocks_have_names(const struct tensor *t)
{
	size_t n = strlen(".npy") - 1;

	for (unsigned i = 0; i < t->rank; i++)
		if (tensor_divides(t, i))
			n += 2 * view_width(t->shape[i]) + strlen("-_");
	return n <= FILES_NAME_MAX;
}

static bool blocks_fits(struct tensor *t, unsigned axes)
{
	(void)axes;
	/* There is no blocks/ if some tile is not a box.  The blocks/ of an empty
	 * tensor is empty. */
	if (!view_is_numeric(t) || !t->rank ||
	    (t->elements && !tensor_blocks(t)))
		return false;
	if (blocks_have_names(t))
		return true;
	view_add_note(t, "blocks", "the names would be too long");
	return false;
}

static uint64_t blocks_count(const struct view *v, unsigned level)
{
	(void)level;
	return tensor_blocks(v->tensor);
}

static void blocks_box(const struct view *v, const uint64_t *at,
		       struct box *out)
{
	tensor_block_box(v->tensor, at[0], out);
}

static void blocks_name(const struct view *v, unsigned level,
			const uint64_t *at, char *buf, size_t n)
{
	const struct tensor *t = v->tensor;
	size_t used = 0;
	struct box b;

	(void)level;
	tensor_block_box(t, at[0], &b);
	for (unsigned i = 0; i < t->rank && used < n; i++) {
		int width = (int)view_width(t->shape[i]);

		if (!tensor_divides(t, i))
			continue;
		used += (size_t)snprintf(buf + used, n - used,
					 "%s%0*" PRIu64 "-%0*" PRIu64,
					 used ? "_" : "", width, b.start[i],
					 width, b.start[i] + b.count[i]);
	}
	if (used < n)
		snprintf(buf + used, n - used, ".npy");
}

/* Read BEGIN-END of one axis. */
static int blocks_read_range(const char **s, unsigned width, uint64_t *begin,
			     uint64_t *count)
{
	uint64_t end;

	if (view_read_number(s, width, begin) < 0 || *(*s)++ != '-' ||
	    view_read_number(s, width, &end) < 0 || end <= *begin)
		return -ENOENT;
	*count = end - *begin;
	return 0;
}

static int blocks_find(const struct view *v, unsigned level, const uint64_t *at,
		       const char *name, uint64_t *index)
{
	const struct tensor *t = v->tensor;
	const char *s = name;
	struct box b;

	(void)level;
	view_whole_box(v, at, &b);
	for (unsigned i = 0; i < t->rank; i++) {
		if (!tensor_divides(t, i))
			continue;
		if ((s != name && *s++ != '_') ||
		    blocks_read_range(&s, view_width(t->shape[i]), &b.start[i],
				      &b.count[i]) < 0)
			return -ENOENT;
	}
	return strcmp(s, ".npy") ? -ENOENT : tensor_block_find(t, &b, index);
}

const struct view_ops view_blocks = {
	.name = "blocks",
	.summary = "blocks/BEGIN-END.npy, a file per stored block",
	.top = "blocks",
	.levels = 1,
	.fits = blocks_fits,
	.count = blocks_count,
	.name_of = blocks_name,
	.find = blocks_find,
	.box_of = blocks_box,
	.npy = true,
};
