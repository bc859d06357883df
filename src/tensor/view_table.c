/* SPDX-License-Identifier: BSD-2-Clause */
/* The views there are; a new one is a row here and a few little functions. */
#include "tensor/view_node.h"

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
	return !t->why_not && dtype_is_binary(&t->dtype);
}
static bool is_text(const struct tensor *t)
{
	return t->text && t->dtype.kind != DTYPE_RAGGED;
}
static bool is_ragged(const struct tensor *t)
{
	return t->text && t->dtype.kind == DTYPE_RAGGED;
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
	const struct tensor *t = v->tensor;

	(void)at;
	for (unsigned i = 0; i < t->rank; i++) {
		out->start[i] = 0;
		out->count[i] = t->shape[i];
	}
}

/* ---- array.npy, array.bin ------------------------------------------------ */

static bool array_fits(struct tensor *t, unsigned axes)
{
	(void)axes;
	return is_numeric(t);
}

static bool bin_fits(struct tensor *t, unsigned axes)
{
	(void)axes;
	/* An empty file cannot be mapped: there is none. */
	return is_numeric(t) && t->bytes > 0;
}

static const struct view_ops view_array = {
	.name = "array",
	.summary = "array.npy, the whole tensor",
	.top = "array.npy",
	.fits = array_fits,
	.box_of = whole_box,
	.npy = true,
};
static const struct view_ops view_bin = {
	.name = "bin",
	.summary = "array.bin, the same without header",
	.top = "array.bin",
	.fits = bin_fits,
	.box_of = whole_box,
};

/* ---- blocks/000000-000100.npy -------------------------------------------- */

/* Is there room for a range of each axis that is divided? */
static bool blocks_have_names(const struct tensor *t)
{
	size_t n = strlen(".npy") - 1;

	for (unsigned i = 0; i < t->rank; i++)
		if (tensor_divides(t, i))
			n += 2 * width_for(t->shape[i]) + strlen("-_");
	return n <= FILES_NAME_MAX;
}

static bool blocks_fits(struct tensor *t, unsigned axes)
{
	(void)axes;
	/* Parts that are no boxes have no files; an empty tensor has none. */
	if (!is_numeric(t) || !t->rank || (t->elements && !tensor_blocks(t)))
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
		int width = (int)width_for(t->shape[i]);

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

/* BEGIN-END of one axis. */
static int take_range(const char **s, unsigned width, uint64_t *begin,
		      uint64_t *count)
{
	uint64_t end;

	if (take_number(s, width, begin) < 0 || *(*s)++ != '-' ||
	    take_number(s, width, &end) < 0 || end <= *begin)
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
	whole_box(v, at, &b);
	for (unsigned i = 0; i < t->rank; i++) {
		if (!tensor_divides(t, i))
			continue;
		if ((s != name && *s++ != '_') ||
		    take_range(&s, width_for(t->shape[i]), &b.start[i],
			       &b.count[i]) < 0)
			return -ENOENT;
	}
	return strcmp(s, ".npy") ? -ENOENT : tensor_block_find(t, &b, index);
}

static const struct view_ops view_blocks = {
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

/* ---- samples/000000.npy, samples/000000.txt ------------------------------ */

static bool samples_fits(struct tensor *t, unsigned axes)
{
	return is_numeric(t) && axes > 0;
}

static uint64_t samples_count(const struct view *v, unsigned level)
{
	return v->tensor->shape[level];
}

static unsigned samples_width(const struct view *v, unsigned level)
{
	uint64_t n = samples_count(v, level);

	return width_for(n ? n - 1 : 0);
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

static const char *samples_suffix(const struct view *v, unsigned level)
{
	return level + 1 < v->levels ? "" : v->ops->npy ? ".npy" : ".txt";
}

static void samples_name(const struct view *v, unsigned level,
			 const uint64_t *at, char *buf, size_t n)
{
	snprintf(buf, n, "%0*" PRIu64 "%s", (int)samples_width(v, level),
		 at[level], samples_suffix(v, level));
}

static int samples_find(const struct view *v, unsigned level,
			const uint64_t *at, const char *name, uint64_t *index)
{
	(void)at;
	if (take_number(&name, samples_width(v, level), index) < 0 ||
	    *index >= samples_count(v, level))
		return -ENOENT;
	return strcmp(name, samples_suffix(v, level)) ? -ENOENT : 0;
}

static const struct view_ops view_samples = {
	.name = "samples",
	.summary = "samples/NUMBER.npy (.txt), a file per sample",
	.top = "samples",
	.samples = true,
	.fits = samples_fits,
	.count = samples_count,
	.name_of = samples_name,
	.find = samples_find,
	.box_of = samples_box,
	.npy = true,
};

/* ---- samples of what is no array ----------------------------------------- */

static bool text_samples_fits(struct tensor *t, unsigned axes)
{
	return is_text(t) && axes > 0;
}

static bool ragged_samples_fits(struct tensor *t, unsigned axes)
{
	return is_ragged(t) && axes > 0;
}

/* A scalar has one sequence, which is all there is. */
static bool ragged_array_fits(struct tensor *t, unsigned axes)
{
	(void)axes;
	return is_ragged(t) && !t->rank;
}

static uint64_t text_sample(const struct view *v, const uint64_t *at)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < v->levels; i++)
		n = n * samples_count(v, i) + at[i];
	return n;
}

static int text_samples_size(const struct view *v, const uint64_t *at,
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
	.top = "samples",
	.samples = true,
	.fits = text_samples_fits,
	.count = samples_count,
	.name_of = samples_name,
	.find = samples_find,
	.box_of = samples_box,
	.size = text_samples_size,
	.map = text_samples_map,
};
static const struct view_ops view_ragged_samples = {
	.name = "samples",
	.top = "samples",
	.samples = true,
	.fits = ragged_samples_fits,
	.count = samples_count,
	.name_of = samples_name,
	.find = samples_find,
	.box_of = samples_box,
	.npy = true,
	.size = text_samples_size,
	.map = text_samples_map,
};
static const struct view_ops view_ragged_array = {
	.name = "array",
	.top = "array.npy",
	.fits = ragged_array_fits,
	.box_of = whole_box,
	.npy = true,
	.size = text_samples_size,
	.map = text_samples_map,
};

/* ---- array.txt, info.json ------------------------------------------------ */

static bool text_fits(struct tensor *t, unsigned axes)
{
	(void)axes;
	return is_text(t);
}

static int text_whole_size(const struct view *v, const uint64_t *at,
			   struct pinner *p, uint64_t *size, struct error *err)
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
	.top = "array.txt",
	.fits = text_fits,
	.box_of = whole_box,
	.size = text_whole_size,
	.map = text_whole_map,
};

static bool info_fits(struct tensor *t, unsigned axes)
{
	(void)axes;
	tensor_info_set(t);
	return true;
}

static int info_size(const struct view *v, const uint64_t *at, struct pinner *p,
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
	.top = "info.json",
	.fits = info_fits,
	.size = info_size,
	.map = info_map,
};

const struct view_ops *const view_table[] = {
	&view_bin,    &view_array,   &view_ragged_array, &view_text,
	&view_blocks, &view_samples, &view_text_samples, &view_ragged_samples,
	&view_info,   NULL};

/* ---- options ------------------------------------------------------------- */

void view_options_default(struct view_options *o)
{
	memset(o, 0, sizeof *o);
	o->sample_axes = 1;
	o->views = UINT32_MAX;
}

/* All rows of that name (samples are numbers or text). */
static uint32_t view_bits(const char *name, size_t len)
{
	uint32_t bits = 0;

	for (unsigned i = 0; view_table[i]; i++) {
		const char *have = view_table[i]->name;

		if (have && strlen(have) == len && !memcmp(have, name, len))
			bits |= 1u << i;
	}
	return bits;
}

int view_options_parse(struct view_options *o, const char *list,
		       struct error *err)
{
	uint32_t views = 0;

	while (*list) {
		size_t len = strcspn(list, ",+");
		uint32_t bits = len == 3 && !memcmp(list, "all", 3)
					? UINT32_MAX
					: view_bits(list, len);

		if (!bits)
			return error_set(err, -EINVAL,
					 "there is no view '%.*s' (views: %s)",
					 (int)len, list, view_names());
		views |= bits;
		list += len + (list[len] != 0);
	}
	if (!views)
		return error_set(err, -EINVAL, "no view given (views: %s)",
				 view_names());
	o->views = views;
	return 0;
}

const char *view_names(void)
{
	return "array, bin, text, blocks, samples";
}
