/* SPDX-License-Identifier: BSD-2-Clause */
/* samples/000000.npy, samples/000000.txt: a file for each sample. */
#include "views/samples.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tensor/text.h"
#include "views/name.h"
#include "views/table.h"

static bool samples_fits(struct tensor *t, unsigned axes)
{
	return view_is_numeric(t) && axes > 0;
}

uint64_t view_samples_count(const struct view *v, unsigned level)
{
	return v->tensor->shape[level];
}

static unsigned samples_width(const struct view *v, unsigned level)
{
	uint64_t n = view_samples_count(v, level);

	return view_width(n ? n - 1 : 0);
}

void view_samples_box(const struct view *v, const uint64_t *at, struct box *out)
{
	view_whole_box(v, at, out);
	for (unsigned i = 0; i < v->levels; i++) {
		out->start[i] = at[i];
		out->count[i] = 1;
	}
}

const char *view_samples_suffix(const struct view *v)
{
	return v->ops->suffix ? v->ops->suffix(v)
	       : v->ops->npy  ? ".npy"
			      : ".txt";
}

static const char *suffix_at(const struct view *v, unsigned level)
{
	return level + 1 < v->levels ? "" : view_samples_suffix(v);
}

void view_samples_name(const struct view *v, unsigned level, const uint64_t *at,
		       char *buf, size_t n)
{
	snprintf(buf, n, "%0*" PRIu64 "%s", (int)samples_width(v, level),
		 at[level], suffix_at(v, level));
}

int view_samples_find(const struct view *v, unsigned level, const uint64_t *at,
		      const char *name, uint64_t *index)
{
	(void)at;
	if (view_read_number(&name, samples_width(v, level), index) < 0 ||
	    *index >= view_samples_count(v, level))
		return -ENOENT;
	return strcmp(name, suffix_at(v, level)) ? -ENOENT : 0;
}

const struct view_ops view_samples = {
	.name = "samples",
	.summary = "samples/NUMBER.npy (.txt), a file per sample",
	.top = "samples",
	.samples = true,
	.fits = samples_fits,
	.count = view_samples_count,
	.name_of = view_samples_name,
	.find = view_samples_find,
	.box_of = view_samples_box,
	.npy = true,
};

/* ---- samples that are not arrays ----------------------------------------- */

static bool text_samples_fits(struct tensor *t, unsigned axes)
{
	return view_is_text(t) && axes > 0;
}

static bool ragged_samples_fits(struct tensor *t, unsigned axes)
{
	return view_is_ragged(t) && axes > 0;
}

static bool blob_samples_fits(struct tensor *t, unsigned axes)
{
	return view_is_blob(t) && axes > 0;
}

static const char *blob_suffix(const struct view *v)
{
	return v->tensor->suffix;
}

/* A scalar has a single sequence, which is the whole array. */
static bool ragged_array_fits(struct tensor *t, unsigned axes)
{
	(void)axes;
	return view_is_ragged(t) && !t->rank;
}

static uint64_t text_sample(const struct view *v, const uint64_t *at)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < v->levels; i++)
		n = n * view_samples_count(v, i) + at[i];
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

const struct view_ops view_text_samples = {
	.name = "samples",
	.top = "samples",
	.samples = true,
	.fits = text_samples_fits,
	.count = view_samples_count,
	.name_of = view_samples_name,
	.find = view_samples_find,
	.box_of = view_samples_box,
	.size = text_samples_size,
	.map = text_samples_map,
};
const struct view_ops view_ragged_samples = {
	.name = "samples",
	.top = "samples",
	.samples = true,
	.fits = ragged_samples_fits,
	.count = view_samples_count,
	.name_of = view_samples_name,
	.find = view_samples_find,
	.box_of = view_samples_box,
	.npy = true,
	.size = text_samples_size,
	.map = text_samples_map,
};
const struct view_ops view_blob_samples = {
	.name = "samples",
	.top = "samples",
	.samples = true,
	.fits = blob_samples_fits,
	.count = view_samples_count,
	.name_of = view_samples_name,
	.find = view_samples_find,
	.box_of = view_samples_box,
	.suffix = blob_suffix,
	.size = text_samples_size,
	.map = text_samples_map,
};
const struct view_ops view_ragged_array = {
	.name = "array",
	.top = "array.npy",
	.fits = ragged_array_fits,
	.box_of = view_whole_box,
	.npy = true,
	.size = text_samples_size,
	.map = text_samples_map,
};
