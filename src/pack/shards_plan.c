/* SPDX-License-Identifier: BSD-2-Clause */
/* Which files are samples, in which order, and in which shard. */

/*
 *	filter     what is no member leaves the list; the rest knows how long its key is
 *	group      neighbours with one key are a run.  In sorted lists a sample is one run
 *	           nearly always ("a.d/" may come between "a.cls" and "a.jpg"); with an order
 *	           of the user's, runs may be anywhere.  So runs, which are few, are sorted
 *	           by key, and then by where the first of each key was
 *	shuffle    the samples
 *	cut        into shards
 *
 * An even split is one by number: readers of different ranks go through different shards,
 * and who has fewer samples waits for the others at the end of each epoch.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/shuffle.h"
#include "pack/shards_private.h"
#include "shards/ustar.h"

struct run {
	uint64_t first, n; /* entries */
	uint64_t key;      /* bytes of it */
	uint64_t sample;   /* the first entry of all runs with this key */
};
struct sample {
	uint64_t first, n; /* entries */
};
struct planner {
	struct scan *s;
	const struct shards_rules *r;
	struct shards_plan *plan;
	vec(struct run) runs;
	vec(struct sample) samples;
};

static int no_memory(struct error *err)
{
	return error_set(err, -ENOMEM, "out of memory");
}

/* ---- what is a member ---------------------------------------------------- */

/* False: no memory. */
static bool note_other(struct shards_plan *plan, const char *path)
{
	if (!plan->others++)
		plan->other = strdup(path);
	return plan->other;
}

/* 1: a member; 0: not; -ENOMEM. */
static int judge(struct planner *p, const struct shards_own *own,
		 const struct scan_entry *e, const char *path)
{
	bool ok = true;

	if (S_ISDIR(e->mode) || shards_own_is(own, path))
		return 0;
	if (S_ISREG(e->mode) && shards_key(path))
		return 1;
	if (S_ISLNK(e->mode) && shards_key(path)) {
		p->plan->n_links++;
		ok = scan_problem(p->s, path,
				  "a symlink: readers of shards skip links; it "
				  "was left out");
	} else if (S_ISREG(e->mode) || S_ISLNK(e->mode)) {
		ok = note_other(p->plan, path);
	} else {
		p->plan->not_files++;
	}
	return ok ? 0 : -ENOMEM;
}

static bool same_key(const struct scan *s, uint64_t i, uint64_t j, uint64_t len)
{
	const char *a = scan_path(s, i), *b = scan_path(s, j);

	return shards_key(b) == len && !memcmp(a, b, len);
}

/* The list keeps members only; p->runs are made of it. */
static int filter(struct planner *p, const struct shards_own *own,
		  struct error *err)
{
	struct scan *s = p->s;
	uint64_t to = 0;

	for (uint64_t i = 0; i < s->list.n; i++) {
		int r = judge(p, own, &s->list.at[i], scan_path(s, i));
		struct run *last =
			p->runs.n ? &p->runs.at[p->runs.n - 1] : NULL;
		struct run fresh = {.first = to, .n = 1};

		if (r < 0)
			return no_memory(err);
		if (!r)
			continue;
		s->list.at[to++] = s->list.at[i];
		if (last && same_key(s, last->first, to - 1, last->key)) {
			last->n++;
			continue;
		}
		fresh.key = shards_key(scan_path(s, to - 1));
		if (!vec_push(&p->runs, fresh))
			return no_memory(err);
	}
	s->list.n = to;
	return 0;
}

/* ---- samples ------------------------------------------------------------- */

static int compare_keys(const struct scan *s, const struct run *a,
			const struct run *b)
{
	size_t n = a->key < b->key ? a->key : b->key;
	int r = memcmp(scan_path(s, a->first), scan_path(s, b->first), n);

	return r ? r : a->key < b->key ? -1 : a->key > b->key;
}

static int by_key(const void *a, const void *b, void *scan)
{
	const struct run *x = a, *y = b;
	int r = compare_keys(scan, x, y);

	return r ? r : x->first < y->first ? -1 : x->first > y->first;
}

static int by_sample(const void *a, const void *b)
{
	const struct run *x = a, *y = b;

	if (x->sample != y->sample)
		return x->sample < y->sample ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

/* Runs of one key become neighbours, keys in the order of their first runs. */
static void gather_runs(struct planner *p)
{
	struct run *r = p->runs.at;

	if (!p->runs.n)
		return;
	qsort_r(r, p->runs.n, sizeof *r, by_key, p->s);
	for (size_t i = 0; i < p->runs.n; i++)
		r[i].sample = i && !compare_keys(p->s, &r[i - 1], &r[i])
				      ? r[i - 1].sample
				      : r[i].first;
	qsort(r, p->runs.n, sizeof *r, by_sample);
}

/* The list in the order of the runs; p->samples are made. */
static int group(struct planner *p, struct error *err)
{
	struct scan *s = p->s;
	struct scan_entry *to = calloc(s->list.n + 1, sizeof *to);
	uint64_t n = 0;

	if (!to)
		return no_memory(err);
	gather_runs(p);
	for (size_t i = 0; i < p->runs.n; i++) {
		const struct run *r = &p->runs.at[i];
		struct sample fresh = {.first = n};

		if ((!i || r[-1].sample != r->sample) &&
		    !vec_push(&p->samples, fresh)) {
			free(to);
			return no_memory(err);
		}
		memcpy(to + n, s->list.at + r->first, r->n * sizeof *to);
		p->samples.at[p->samples.n - 1].n += r->n;
		n += r->n;
	}
	free(s->list.at);
	s->list.at = to;
	s->list.room = s->list.n + 1;
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

/* No field of a sample is there twice. */
static int check_sample(const struct scan *s, const struct sample *x,
			const char **paths, struct error *err)
{
	for (uint64_t i = 0; i < x->n; i++)
		paths[i] = scan_path(s, x->first + i);
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
		return no_memory(err);
	for (size_t i = 0; i < p->samples.n && r == 0; i++)
		if (p->samples.at[i].n > 1)
			r = check_sample(p->s, &p->samples.at[i], paths, err);
	free(paths);
	return r;
}

static int shuffle(struct planner *p, struct error *err)
{
	struct scan *s = p->s;
	uint64_t n = p->samples.n, at = 0;
	cleanup_free uint64_t *order = calloc(n + 1, sizeof *order);
	struct scan_entry *list = calloc(s->list.n + 1, sizeof *list);
	struct sample *samples = calloc(n + 1, sizeof *samples);

	if (!order || !list || !samples) {
		free(list);
		free(samples);
		return no_memory(err);
	}
	shuffle_order(order, n, p->r->seed);
	for (uint64_t i = 0; i < n; i++) {
		const struct sample *x = &p->samples.at[order[i]];

		samples[i] = (struct sample){.first = at, .n = x->n};
		memcpy(list + at, s->list.at + x->first, x->n * sizeof *list);
		at += x->n;
	}
	free(s->list.at);
	free(p->samples.at);
	s->list.at = list;
	s->list.room = s->list.n + 1;
	p->samples.at = samples;
	p->samples.room = n + 1;
	return 0;
}

/* ---- shards -------------------------------------------------------------- */

static int sample_size(const struct planner *p, struct shards_sizer *sizer,
		       const struct sample *x, uint64_t *size,
		       struct error *err)
{
	*size = 0;
	for (uint64_t i = x->first; i < x->first + x->n; i++) {
		struct feed_attr a;
		uint64_t one;
		int r;

		feed_attr_set(&a, &p->s->list.at[i], &p->r->attr);
		shards_attr(&a);
		r = shards_sizer_member(sizer, scan_path(p->s, i), &a, &one,
					err);
		if (r < 0)
			return r;
		*size += one;
	}
	return 0;
}

/* Sample `i` goes to the last shard, or begins another one. */
static int add_sample(struct planner *p, uint64_t i, uint64_t size,
		      struct error *err)
{
	struct shards_plan *plan = p->plan;
	const struct sample *x = &p->samples.at[i];
	struct shard fresh = {.first = x->first};
	struct shard *last =
		plan->list.n ? &plan->list.at[plan->list.n - 1] : NULL;

	if (!last || shards_cut_here(&p->r->cut, p->samples.n, plan->list.n - 1,
				     last->samples, last->size, size)) {
		if (!vec_push(&plan->list, fresh))
			return no_memory(err);
		last = &plan->list.at[plan->list.n - 1];
	}
	last->samples++;
	last->files += x->n;
	last->size += size;
	return 0;
}

static int cut(struct planner *p, struct error *err)
{
	struct shards_plan *plan = p->plan;
	struct shards_sizer *sizer;
	int r = shards_sizer_new(&sizer, p->r->numeric_owner, err);

	for (uint64_t i = 0; i < p->samples.n && r == 0; i++) {
		uint64_t size;

		r = sample_size(p, sizer, &p->samples.at[i], &size, err);
		if (r == 0)
			r = add_sample(p, i, size, err);
	}
	shards_sizer_free(sizer);
	for (size_t k = 0; k < plan->list.n; k++)
		plan->list.at[k].size =
			ustar_archive_size(plan->list.at[k].size);
	return r;
}

static int enough(const struct planner *p, struct error *err)
{
	if (!p->samples.n)
		return error_set(
			err, -ENODATA,
			"'%s' has no samples: files whose names have an "
			"extension",
			p->r->top);
	if (p->r->cut.shards > p->samples.n)
		return error_set(err, -EINVAL,
				 "there are %" PRIu64 " samples, which cannot "
				 "fill %" PRIu64 " shards",
				 p->samples.n, p->r->cut.shards);
	return 0;
}

/* Each name has its bytes: a shard stands alone. */
static void count(struct planner *p)
{
	struct scan *s = p->s;

	s->bytes = 0;
	for (uint64_t i = 0; i < s->list.n; i++) {
		s->list.at[i].same_as = i;
		s->bytes += s->list.at[i].size;
	}
	p->plan->bytes = s->bytes;
	p->plan->files = s->list.n;
	p->plan->samples = p->samples.n;
}

int shards_plan(struct shards_plan *out, struct scan *s,
		const struct shards_rules *r, struct error *err)
{
	struct planner p = {.s = s, .r = r, .plan = out};
	struct shards_own own;
	int code;

	*out = (struct shards_plan){0};
	code = shards_own_find(&own, r->name, r->top, err);
	if (code == 0)
		code = filter(&p, &own, err);
	if (code == 0)
		code = group(&p, err);
	if (code == 0)
		code = enough(&p, err);
	if (code == 0)
		code = check_samples(&p, err);
	if (code == 0 && r->shuffle)
		code = shuffle(&p, err);
	if (code == 0) {
		count(&p);
		code = cut(&p, err);
	}
	shards_own_free(&own);
	vec_free(&p.runs);
	vec_free(&p.samples);
	if (code < 0)
		shards_plan_free(out);
	return code;
}

void shards_plan_free(struct shards_plan *p)
{
	vec_free(&p->list);
	free(p->other);
	*p = (struct shards_plan){0};
}
