/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes shards: the units of a feed go to one tar after the other. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "pack/out.h"
#include "pack/shards/private.h"

struct writer {
	const struct shards_options *o;
	struct shards_result *result;
	struct shards_place place;
	struct sink *sink; /* sink of shard number `now`; NULL: not open */
	uint64_t now;
	uint64_t done; /* in bytes */
	char *last;    /* path of the member before, or NULL */
};

void shards_attr(struct feed_attr *a)
{
	a->mtime_ns = 0;
}

/* ---- one shard ----------------------------------------------------------- */

static int shards_open_shard(struct writer *w, struct error *err)
{
	cleanup_free char *base = shards_name_of(&w->result->name, w->now);
	cleanup_free char *path =
		base ? shards_place_path(&w->place, base) : NULL;
	struct sink_args a = w->o->sink;

	if (!path)
		return error_no_memory(err, "the path of a shard");
	a.path = path;
	a.replace = false;
	free(steal_pointer(&w->last));
	return w->o->ops->open(&a, &w->sink, err);
}

static int shards_finish_shard(struct writer *w, struct error *err)
{
	struct shards_result *all = w->result;
	struct sink_result *r = &all->shards[w->now].sink;
	int code = w->sink->ops->finish(w->sink, r, err);

	if (code == 0 && !all->codec && r->codec &&
	    !(all->codec = strdup(r->codec)))
		code = error_no_memory(err, "the name of the compression");
	r->codec = all->codec;
	all->stored += r->stored;
	w->sink->ops->close(steal_pointer(&w->sink));
	w->now++;
	return code;
}

/* Finish all shards before the one that has `entry`, and open that one. */
static int shards_advance_to(struct writer *w, uint64_t entry,
			     struct error *err)
{
	const struct shards_plan *p = &w->result->plan;
	int r = 0;

	while (r == 0 && w->now < p->list.n) {
		const struct shard *s = &p->list.at[w->now];

		if (!w->sink)
			r = shards_open_shard(w, err);
		if (r < 0 || entry < s->first + s->files)
			break;
		r = shards_finish_shard(w, err);
	}
	return r;
}

/* Count a member, and a sample if its key differs from that of the member before. */
static int shards_count_member(struct writer *w, const char *path,
			       struct error *err)
{
	struct shard_result *r = &w->result->shards[w->now];
	size_t n = shards_key(path);

	r->files++;
	if (w->last && shards_key(w->last) == n && !memcmp(w->last, path, n))
		return 0;
	r->samples++;
	free(w->last);
	w->last = strdup(path);
	return w->last ? 0 : error_no_memory(err, "the path of a member");
}

/* Report a file whose size differs from the planned one: its shard may become too
 * large. */
static int shards_check_planned(struct scan *scan, const struct feed_unit *u,
				struct error *err)
{
	if (u->attr.size == scan->list.at[u->entry].size ||
	    scan_problem(scan, u->path, "it changed while it was packed"))
		return 0;
	return error_no_memory(err, "the list of problems");
}

static int shards_put_unit(struct writer *w, struct scan *scan,
			   const struct feed_unit *unit, struct error *err)
{
	struct feed_unit u = *unit;
	int r = shards_advance_to(w, u.entry, err);

	shards_attr(&u.attr);
	u.sparse = false;
	u.extents = NULL;
	u.n_extents = 0;
	if (r == 0 && u.first)
		r = shards_count_member(w, u.path, err);
	if (r == 0 && u.first)
		r = shards_check_planned(scan, &u, err);
	if (r == 0)
		r = w->sink->ops->put(w->sink, &u, err);
	w->done += u.size;
	if (w->o->progress)
		w->o->progress(w->o->ctx, w->done, w->result->plan.bytes);
	return r;
}

static int shards_write_units(struct writer *w, struct scan *scan,
			      struct error *err)
{
	struct feed_options options = w->o->feed;
	struct feed_unit u;
	struct feed *f;
	int r;

	options.xattrs = false;
	options.data = true;
	r = feed_new(&f, scan, w->o->top, &options, w->o->stop, err);
	while (r == 0 && (r = feed_next(f, &u, err)) > 0)
		r = shards_put_unit(w, scan, &u, err);
	feed_close(f);
	if (r == 0)
		r = shards_advance_to(w, UINT64_MAX, err);
	return r;
}

/* ---- the index ----------------------------------------------------------- */

static json_t *shard_json(const struct writer *w, uint64_t k)
{
	const struct shard_result *r = &w->result->shards[k];
	cleanup_free char *name = shards_name_of(&w->result->name, k);
	char sum[33];

	snprintf(sum, sizeof sum, "%016" PRIx64 "%016" PRIx64, r->sink.xxh3[0],
		 r->sink.xxh3[1]);
	return json_pack("{s:s, s:I, s:I, s:I, s:s}", "url", name ? name : "",
			 "nsamples", (json_int_t)r->samples, "filesize",
			 (json_int_t)r->sink.stored, "nfiles",
			 (json_int_t)r->files, "xxh3_128", sum);
}

/* Make the index in the form that wids reads, which ignores other members. */
static json_t *index_json(const struct writer *w)
{
	const struct shards_rules *rules = &w->o->rules;
	const char *before = w->result->name.before;
	size_t n = strlen(before);
	json_t *list = json_array(), *all;

	while (n && strchr("-_.", before[n - 1]))
		n--;
	for (uint64_t k = 0; list && k < w->result->plan.list.n; k++)
		if (json_array_append_new(list, shard_json(w, k)) < 0) {
			json_decref(list);
			list = NULL;
		}
	if (!list)
		return NULL;
	all = json_pack("{s:s, s:i, s:s%, s:o}", "__kind__",
			"wids-shard-index-v1", "wids_version", 1, "name",
			n ? before : "shards", n ? (int)n : 6, "shardlist",
			list);
	if (!all)
		return NULL;
	if (rules->order.shuffle)
		json_object_set_new(
			all, "shuffle",
			json_integer((json_int_t)rules->order.seed));
	return all;
}

static int shards_write_index(struct writer *w, struct error *err)
{
	const char *base = w->result->name.index;
	cleanup_free char *path = shards_place_path(&w->place, base);
	cleanup_free char *text = NULL;
	json_t *all = index_json(w);
	struct out *out = NULL;
	int r;

	if (all)
		text = json_dumps(all, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
	json_decref(all);
	if (!path || !text ||
	    asprintf(&w->result->index, "%s/%s", w->result->name.dir, base) <
		    0) {
		w->result->index = NULL;
		return error_no_memory(err, "the index of the shards");
	}
	r = out_new(&out, path, 0666, false, err);
	if (r == 0)
		r = out_write(out, text, strlen(text), err);
	if (r == 0)
		r = out_write(out, "\n", 1, err);
	if (r == 0)
		r = out_publish(out, err);
	out_free(out);
	return r;
}

/* ---- all of it ----------------------------------------------------------- */

static int shards_parse_options(const struct shards_options *o,
				struct shards_name *name, struct error *err)
{
	if (!o->ops->shards)
		return error_set(err, -EINVAL,
				 "shards are tar, tar.gz or tar.zst, not %s",
				 o->ops->name);
	return shards_name_parse(name, o->pattern, err);
}

int shards_check(const struct shards_options *o, struct error *err)
{
	struct sink_args a = o->sink;
	struct shards_name name;
	int r = shards_parse_options(o, &name, err);

	if (r < 0)
		return r;
	a.path = o->pattern;
	r = o->ops->check(&a, err);
	if (r == 0)
		r = shards_place_check(&name, a.replace, err);
	shards_name_free(&name);
	return r;
}

static int shards_make_plan(struct writer *w, struct scan *scan,
			    struct error *err)
{
	struct shards_rules rules = w->o->rules;
	struct shards_result *out = w->result;
	int r = shards_parse_options(w->o, &out->name, err);

	rules.name = &out->name;
	rules.top = w->o->top;
	if (r == 0)
		r = shards_plan(&out->plan, scan, &rules, err);
	if (r < 0)
		return r;
	out->shards = calloc(out->plan.list.n, sizeof *out->shards);
	return out->shards ? 0
			   : error_no_memory(err, "the results of the shards");
}

int shards_pack(struct shards_result *out, const struct shards_options *o,
		struct scan *scan, struct error *err)
{
	struct writer w = {
		.o = o, .result = out, .place = {.dir = -1, .stage = -1}};
	struct error own = {0};
	int r;

	*out = (struct shards_result){0};
	if (!err)
		err = &own;
	r = shards_make_plan(&w, scan, err);
	if (r == 0)
		r = shards_place_open(&w.place, &out->name, out->plan.list.n,
				      o->sink.replace, err);
	if (r == 0)
		r = shards_write_units(&w, scan, err);
	if (r == 0)
		r = shards_write_index(&w, err);
	if (r == 0 && *o->stop)
		r = error_set(err, -EINTR, "interrupted");
	if (r == 0)
		r = shards_place_publish(&w.place, err);
	if (r < 0)
		shards_place_translate(&w.place, err);
	if (w.sink)
		w.sink->ops->close(w.sink);
	free(w.last);
	shards_place_close(&w.place);
	return r;
}

void shards_result_free(struct shards_result *r)
{
	shards_plan_free(&r->plan);
	shards_name_free(&r->name);
	free(r->shards);
	free(r->index);
	free(r->codec);
	*r = (struct shards_result){0};
}
