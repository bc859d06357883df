/* SPDX-License-Identifier: BSD-2-Clause */
/* Groups files to samples, and decides their order and the shard of each. */

/*
 * Three steps:
 *
 *	group      neighbours with one key are a run.  In sorted lists a sample is nearly
 *	           always one run ("a.d/" may come between "a.cls" and "a.jpg"); if the user
 *	           gives an order, runs may be anywhere.  So runs, which are few, are sorted
 *	           by key, and then by the place of the first run of each key
 *	shuffle    the samples
 *	cut        into shards
 *
 * A split into a number of shards is even in samples: readers of different ranks read
 * different shards, and a rank with fewer samples waits for the others at the end of
 * each epoch.
 */
#include "shards/layout.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "base/shuffle.h"
#include "shards/key.h"
#include "shards/ustar.h"

#define BYTES_MAX (UINT64_C(1) << 62)

struct run {
	uint64_t first, n; /* entries */
	uint64_t key;      /* its length in bytes */
	uint64_t sample;   /* the first entry of all runs with this key */
};
struct sample {
	uint64_t first, n; /* a range of the order */
};
struct planner {
	const struct shards_entries *e;
	const struct shards_cut *cut;
	struct shards_layout *out;
	vec(struct run) runs;
	vec(struct sample) samples;
};

static const char *layout_path(const struct shards_entries *e, uint64_t i)
{
	return e->path(e->ctx, i);
}

/* ---- samples ------------------------------------------------------------- */

static int find_runs(struct planner *p, struct error *err)
{
	const struct shards_entries *e = p->e;

	for (uint64_t i = 0; i < e->n; i++) {
		const char *path = layout_path(e, i);
		struct run fresh = {
			.first = i, .n = 1, .key = shards_key(path)};
		struct run *last =
			p->runs.n ? &p->runs.at[p->runs.n - 1] : NULL;

		if (last && last->key == fresh.key &&
		    !memcmp(layout_path(e, last->first), path, fresh.key))
			last->n++;
		else if (!vec_push(&p->runs, fresh))
			return error_no_memory(err, "the list of samples");
	}
	return 0;
}

static int compare_keys(const struct shards_entries *e, const struct run *a,
			const struct run *b)
{
	size_t n = a->key < b->key ? a->key : b->key;
	int r = memcmp(layout_path(e, a->first), layout_path(e, b->first), n);

	return r ? r : a->key < b->key ? -1 : a->key > b->key;
}

static int by_key(const void *a, const void *b, void *entries)
{
	const struct run *x = a, *y = b;
	int r = compare_keys(entries, x, y);

	return r ? r : x->first < y->first ? -1 : x->first > y->first;
}

static int by_sample(const void *a, const void *b)
{
	const struct run *x = a, *y = b;

	if (x->sample != y->sample)
		return x->sample < y->sample ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

/* Make runs of one key neighbours, with keys in the order of their first runs. */
static void gather_runs(struct planner *p)
{
	struct run *r = p->runs.at;

	if (!p->runs.n)
		return;
	qsort_r(r, p->runs.n, sizeof *r, by_key, (void *)(uintptr_t)p->e);
	for (size_t i = 0; i < p->runs.n; i++)
		r[i].sample = i && !compare_keys(p->e, &r[i - 1], &r[i])
				      ? r[i - 1].sample
				      : r[i].first;
	qsort(r, p->runs.n, sizeof *r, by_sample);
}

/* Make the order, which is that of the runs, and p->samples. */
static int layout_group(struct planner *p, struct error *err)
{
	uint64_t *order = calloc(p->e->n + 1, sizeof *order), n = 0;

	if (!order)
		return error_no_memory(err, "the order of samples");
	p->out->order = order;
	gather_runs(p);
	for (size_t i = 0; i < p->runs.n; i++) {
		const struct run *r = &p->runs.at[i];
		struct sample fresh = {.first = n};

		if ((!i || r[-1].sample != r->sample) &&
		    !vec_push(&p->samples, fresh))
			return error_no_memory(err, "the list of samples");
		p->samples.at[p->samples.n - 1].n += r->n;
		for (uint64_t k = 0; k < r->n; k++)
			order[n++] = r->first + k;
	}
	p->out->samples = p->samples.n;
	return 0;
}

static const char *field_of(const char *path)
{
	return path + shards_key(path) + 1;
}

static int by_field(const void *a, const void *b)
{
	return shards_compare_fields(field_of(*(const char *const *)a),
				     field_of(*(const char *const *)b));
}

/* Check that a sample has no field twice.  `paths` has room for its files. */
static int check_sample(const struct planner *p, const struct sample *x,
			const char **paths, struct error *err)
{
	for (uint64_t i = 0; i < x->n; i++)
		paths[i] = layout_path(p->e, p->out->order[x->first + i]);
	qsort(paths, x->n, sizeof *paths, by_field);
	for (uint64_t i = 1; i < x->n; i++)
		if (!by_field(&paths[i - 1], &paths[i]))
			return error_set(
				err, -ENOTSUP,
				"'%s' and '%s' would be the same field of one "
				"sample, which WebDataset refuses; rename or "
				"--exclude one",
				paths[i - 1], paths[i]);
	return 0;
}

static int check_samples(const struct planner *p, struct error *err)
{
	const char **paths;
	uint64_t most = 0;
	int r = 0;

	for (size_t i = 0; i < p->samples.n; i++)
		if (p->samples.at[i].n > most)
			most = p->samples.at[i].n;
	paths = calloc(most + 1, sizeof *paths);
	if (!paths)
		return error_no_memory(err, "the fields of a sample");
	for (size_t i = 0; i < p->samples.n && r == 0; i++)
		if (p->samples.at[i].n > 1)
			r = check_sample(p, &p->samples.at[i], paths, err);
	free(paths);
	return r;
}

static int layout_shuffle(struct planner *p, uint64_t seed, struct error *err)
{
	uint64_t n = p->samples.n, at = 0;
	cleanup_free uint64_t *turn = calloc(n + 1, sizeof *turn);
	uint64_t *order = calloc(p->e->n + 1, sizeof *order);
	struct sample *samples = calloc(n + 1, sizeof *samples);

	if (!turn || !order || !samples) {
		free(order);
		free(samples);
		return error_no_memory(err, "the shuffled order of samples");
	}
	shuffle_order(turn, n, seed);
	for (uint64_t i = 0; i < n; i++) {
		const struct sample *x = &p->samples.at[turn[i]];

		samples[i] = (struct sample){.first = at, .n = x->n};
		memcpy(order + at, p->out->order + x->first,
		       x->n * sizeof *order);
		at += x->n;
	}
	free(p->out->order);
	free(p->samples.at);
	p->out->order = order;
	p->samples.at = samples;
	p->samples.room = n + 1;
	return 0;
}

/* ---- shards -------------------------------------------------------------- */

static int sample_size(const struct planner *p, const struct sample *x,
		       uint64_t *size, struct error *err)
{
	const struct shards_entries *e = p->e;

	*size = 0;
	for (uint64_t i = x->first; i < x->first + x->n; i++) {
		uint64_t one;
		int r = e->size(e->ctx, p->out->order[i], &one, err);

		if (r < 0)
			return r;
		if (add_overflows(*size, one, size) || *size > BYTES_MAX)
			return error_set(err, -EOVERFLOW,
					 "the sample of '%s' is larger than a "
					 "tar can be",
					 layout_path(e, p->out->order[i]));
	}
	return 0;
}

/* Put sample `i` into the last shard, or begin another one with it. */
static int add_sample(struct planner *p, uint64_t i, uint64_t size,
		      struct error *err)
{
	shards_list *list = &p->out->list;
	const struct sample *x = &p->samples.at[i];
	struct shard fresh = {.first = x->first};
	struct shard *last = list->n ? &list->at[list->n - 1] : NULL;

	if (!last || shards_cut_here(p->cut, p->samples.n, list->n - 1,
				     last->samples, last->size, size)) {
		if (!vec_push(list, fresh))
			return error_no_memory(err, "the list of shards");
		last = &list->at[list->n - 1];
	}
	last->samples++;
	last->files += x->n;
	if (add_overflows(last->size, size, &last->size) ||
	    last->size > BYTES_MAX)
		return error_set(err, -EOVERFLOW,
				 "a shard would be larger than a file can be: "
				 "make shards smaller");
	return 0;
}

static int layout_cut(struct planner *p, struct error *err)
{
	shards_list *list = &p->out->list;
	int r = 0;

	for (uint64_t i = 0; i < p->samples.n && r == 0; i++) {
		uint64_t size;

		r = sample_size(p, &p->samples.at[i], &size, err);
		if (r == 0)
			r = add_sample(p, i, size, err);
	}
	for (size_t k = 0; k < list->n; k++)
		list->at[k].size = ustar_archive_size(list->at[k].size);
	return r;
}

static int layout_check_enough(const struct planner *p, struct error *err)
{
	if (!p->samples.n)
		return error_set(err, -ENODATA,
				 "'%s' has no samples: no file in it has a "
				 "name with an extension",
				 p->e->top);
	if (p->cut->shards > p->samples.n)
		return error_set(err, -EINVAL,
				 "there are only %" PRIu64
				 " samples, which cannot fill %" PRIu64
				 " shards: choose a smaller number",
				 (uint64_t)p->samples.n, p->cut->shards);
	return 0;
}

int shards_layout_make(struct shards_layout *out,
		       const struct shards_entries *e,
		       const struct shards_cut *how,
		       const struct shards_order *order, struct error *err)
{
	struct planner p = {.e = e, .cut = how, .out = out};
	int r;

	*out = (struct shards_layout){0};
	r = find_runs(&p, err);
	if (r == 0)
		r = layout_group(&p, err);
	if (r == 0)
		r = layout_check_enough(&p, err);
	if (r == 0)
		r = check_samples(&p, err);
	if (r == 0 && order->shuffle)
		r = layout_shuffle(&p, order->seed, err);
	if (r == 0)
		r = layout_cut(&p, err);
	vec_free(&p.runs);
	vec_free(&p.samples);
	if (r < 0)
		shards_layout_free(out);
	return r;
}

void shards_layout_free(struct shards_layout *l)
{
	free(l->order);
	vec_free(&l->list);
	*l = (struct shards_layout){0};
}
