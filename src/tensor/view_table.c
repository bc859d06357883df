/* SPDX-License-Identifier: BSD-2-Clause */
/* The views there are; a new one is a row here and a few little functions. */
#include "tensor/view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "tensor/text.h"

/* Numbers in names: as wide as the largest, at least this. */
#define WIDTH_MIN 6

static bool is_numeric(const struct tensor *t)
{
	return !t->why_not && t->dtype.kind < DTYPE_STRING;
}
static bool is_text(const struct tensor *t)
{
	return !t->why_not && t->dtype.kind == DTYPE_STRING;
}
static unsigned width_for(uint64_t largest)
{
	unsigned n = digits_of(largest);

	return n < WIDTH_MIN ? WIDTH_MIN : n;
}

/* Exactly `width` digits at *s (or more without a leading zero: never made, so
 * never found); moves *s behind them. */
static int take_number(const char **s, unsigned width, uint64_t *out)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < width; i++) {
		char c = (*s)[i];

		if (c < '0' || c > '9' || v > (UINT64_MAX - 9) / 10)
			return -ENOENT;
		v = v * 10 + (uint64_t)(c - '0');
	}
	*s += width;
	*out = v;
	return 0;
}

static void whole_box(const struct view *v, const uint64_t *at, struct box *out)
{
	(void)at;
	for (unsigned i = 0; i < v->tensor->rank; i++) {
		out->start[i] = 0;
		out->count[i] = v->tensor->shape[i];
	}
}

/* ---- array.npy, array.bin ------------------------------------------------ */

static bool array_init(struct view *v, const struct view_options *o)
{
	(void)o;
	v->top = "array.npy";
	return is_numeric(v->tensor);
}

static bool bin_init(struct view *v, const struct view_options *o)
{
	(void)o;
	v->top = "array.bin";
	/* An empty file cannot be mapped: there is none. */
	return is_numeric(v->tensor) && v->tensor->bytes > 0;
}

static const struct view_ops view_array = {
	.name = "array",
	.summary = "array.npy, the whole tensor",
	.init = array_init,
	.box_of = whole_box,
	.npy = true,
};
static const struct view_ops view_bin = {
	.name = "bin",
	.summary = "array.bin, the same without header",
	.init = bin_init,
	.box_of = whole_box,
};

/* ---- blocks/000000-000100.npy -------------------------------------------- */

/* Axes that the blocks divide; the first one when none does. */
static bool block_axis(const struct tensor *t, unsigned axis,
		       const uint64_t *counts)
{
	bool any = false;

	if (counts[axis] > 1)
		return true;
	for (unsigned i = 0; i < t->rank; i++)
		any |= counts[i] > 1;
	return !any && axis == 0;
}

static bool blocks_init(struct view *v, const struct view_options *o)
{
	uint64_t counts[RANK_MAX];

	(void)o;
	if (!is_numeric(v->tensor) || !v->tensor->rank)
		return false;
	v->top = "blocks";
	v->levels = 1;
	v->level[0].count = tensor_blocks(v->tensor, counts);
	return true;
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
	uint64_t counts[RANK_MAX];
	size_t used = 0;
	struct box b;

	(void)level;
	tensor_blocks(t, counts);
	tensor_block_box(t, at[0], &b);
	for (unsigned i = 0; i < t->rank && used < n; i++) {
		int width = (int)width_for(t->shape[i]);

		if (!block_axis(t, i, counts))
			continue;
		used += (size_t)snprintf(buf + used, n - used,
					 "%s%0*" PRIu64 "-%0*" PRIu64,
					 used ? "_" : "", width, b.start[i],
					 width, b.start[i] + b.count[i]);
	}
	if (used < n)
		snprintf(buf + used, n - used, ".npy");
}

/* The part that begins at `row`, or the chunk coordinate of one axis. */
static int block_coordinate(const struct tensor *t, unsigned axis,
			    uint64_t begin, uint64_t counts, uint64_t *k)
{
	uint64_t end, step;
	int64_t p;

	if (t->distributed && axis == 0) {
		p = tensor_part_at(t, begin, &end);
		*k = (uint64_t)p;
		return p < 0 ? -ENOENT : 0;
	}
	step = counts > 1 ? atomic_load(&t->parts[0].layout)->grid->chunk[axis]
			  : t->shape[axis];
	*k = begin / step;
	return begin < t->shape[axis] ? 0 : -ENOENT;
}

static int blocks_find(const struct view *v, unsigned level, const uint64_t *at,
		       const char *name, uint64_t *index)
{
	const struct tensor *t = v->tensor;
	uint64_t counts[RANK_MAX], begin, k;
	char again[FILES_NAME_MAX + 1];
	const char *s = name;

	(void)at;
	*index = 0;
	if (!tensor_blocks(t, counts))
		return -ENOENT;
	for (unsigned i = 0; i < t->rank; i++) {
		unsigned width = width_for(t->shape[i]);

		k = 0;
		if (block_axis(t, i, counts)) {
			if (s != name && *s++ != '_')
				return -ENOENT;
			if (take_number(&s, width, &begin) < 0 ||
			    block_coordinate(t, i, begin, counts[i], &k) < 0 ||
			    strnlen(s, width + 1) < width + 1)
				return -ENOENT;
			s += width + 1; /* "-END", compared below */
		}
		*index = *index * counts[i] + k;
	}
	/* Only the name that we would make ourselves is one. */
	blocks_name(v, level, index, again, sizeof again);
	return strcmp(again, name) ? -ENOENT : 0;
}

static const struct view_ops view_blocks = {
	.name = "blocks",
	.summary = "blocks/BEGIN-END.npy, a file per stored block",
	.init = blocks_init,
	.name_of = blocks_name,
	.find = blocks_find,
	.box_of = blocks_box,
	.npy = true,
};

/* ---- samples/000000.npy, samples/000000.txt ------------------------------ */

static bool samples_levels(struct view *v, const struct view_options *o)
{
	const struct tensor *t = v->tensor;

	v->top = "samples";
	v->levels = o->sample_axes < t->rank ? o->sample_axes : t->rank;
	v->drop = v->levels;
	for (unsigned i = 0; i < v->levels; i++) {
		v->level[i].count = t->shape[i];
		v->level[i].width =
			width_for(t->shape[i] ? t->shape[i] - 1 : 0);
	}
	return v->levels > 0;
}

static bool samples_init(struct view *v, const struct view_options *o)
{
	return is_numeric(v->tensor) && samples_levels(v, o);
}

static void samples_box(const struct view *v, const uint64_t *at,
			struct box *out)
{
	whole_box(v, at, out);
	for (unsigned i = 0; i < v->levels; i++) {
		out->start[i] = at[i];
		out->count[i] = 1;
	}
}

static void samples_name(const struct view *v, unsigned level,
			 const uint64_t *at, char *buf, size_t n)
{
	const char *suffix = v->ops->npy ? ".npy" : ".txt";

	snprintf(buf, n, "%0*" PRIu64 "%s", (int)v->level[level].width,
		 at[level], level + 1 == v->levels ? suffix : "");
}

static int samples_find(const struct view *v, unsigned level,
			const uint64_t *at, const char *name, uint64_t *index)
{
	const char *suffix = v->ops->npy ? ".npy" : ".txt";

	(void)at;
	if (take_number(&name, v->level[level].width, index) < 0 ||
	    *index >= v->level[level].count)
		return -ENOENT;
	return strcmp(name, level + 1 == v->levels ? suffix : "") ? -ENOENT : 0;
}

static const struct view_ops view_samples = {
	.name = "samples",
	.summary = "samples/NUMBER.npy (.txt), a file per sample",
	.init = samples_init,
	.name_of = samples_name,
	.find = samples_find,
	.box_of = samples_box,
	.npy = true,
};

static bool text_samples_init(struct view *v, const struct view_options *o)
{
	return is_text(v->tensor) && v->tensor->text && samples_levels(v, o);
}

static uint64_t text_sample(const struct view *v, const uint64_t *at)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < v->levels; i++)
		n = n * v->level[i].count + at[i];
	return n;
}

static int text_samples_size(struct view *v, const uint64_t *at,
			     struct pinner *p, uint64_t *size,
			     struct error *err)
{
	return text_sample_size(v->tensor->text, text_sample(v, at), p, size,
				err);
}

static int text_samples_map(const struct view *v, const uint64_t *at,
			    uint64_t off, struct plan *plan, struct error *err)
{
	(void)err;
	return text_map_sample(v->tensor->text, text_sample(v, at), off, plan);
}

static const struct view_ops view_text_samples = {
	.name = "samples",
	.init = text_samples_init,
	.name_of = samples_name,
	.find = samples_find,
	.size = text_samples_size,
	.map = text_samples_map,
};

/* ---- array.txt, info.json ------------------------------------------------ */

static bool text_init(struct view *v, const struct view_options *o)
{
	(void)o;
	v->top = "array.txt";
	return is_text(v->tensor) && v->tensor->text;
}

static int text_whole_size(struct view *v, const uint64_t *at, struct pinner *p,
			   uint64_t *size, struct error *err)
{
	(void)at;
	return text_size(v->tensor->text, p, size, err);
}

static int text_whole_map(const struct view *v, const uint64_t *at,
			  uint64_t off, struct plan *plan, struct error *err)
{
	(void)at;
	return text_map(v->tensor->text, off, plan, err);
}

static const struct view_ops view_text = {
	.name = "text",
	.summary = "array.txt, a line per string",
	.init = text_init,
	.size = text_whole_size,
	.map = text_whole_map,
};

static bool info_init(struct view *v, const struct view_options *o)
{
	(void)o;
	v->top = "info.json";
	tensor_info_set(v->tensor);
	return true;
}

static int info_size(struct view *v, const uint64_t *at, struct pinner *p,
		     uint64_t *size, struct error *err)
{
	struct extent e = {.kind = EXTENT_CHUNK, .len = 1};
	struct span span;
	int r;

	(void)at;
	e.u.chunk.set = &v->tensor->info;
	e.u.chunk.slice = EXTENT_WHOLE;
	r = p->pin(p, &e, &span, err);
	if (r < 0)
		return r;
	*size = span.buf->size;
	p->unpin(p, &span);
	return 0;
}

static int info_map(const struct view *v, const uint64_t *at, uint64_t off,
		    struct plan *plan, struct error *err)
{
	(void)at;
	(void)err;
	plan_chunk(plan, &v->tensor->info, 0, off, plan->want - plan->have);
	return 0;
}

static const struct view_ops view_info = {
	.init = info_init,
	.size = info_size,
	.map = info_map,
};

const struct view_ops *const view_table[] = {
	&view_bin,     &view_array,        &view_text, &view_blocks,
	&view_samples, &view_text_samples, &view_info, NULL};
