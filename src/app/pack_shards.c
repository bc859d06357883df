/* SPDX-License-Identifier: BSD-2-Clause */
/* `tensorfs pack --shards`, --shard-size, --shard-count: packs a directory into many
 * tars. */
#include <errno.h>
#include <inttypes.h>

#include "app/interrupt.h"
#include "app/pack.h"
#include "base/cleanup.h"

struct sharder {
	const struct command *c;
	struct settings *s;
	const char *top, *pattern;
	struct shards_options o;
	struct scan_options scan_options;
	struct scan *scan;
	struct shards_result result;
	struct progress progress;
	struct pack_report report;
};

bool pack_wants_shards(const struct settings *s)
{
	return s->pack.shards || s->pack.shard_size || s->pack.shard_count ||
	       s->pack.shuffle;
}

static int check_usage(const struct command *c, const struct settings *s)
{
	bool limits = s->pack.shard_size || s->pack.shard_count;

	if (s->pack.shards && limits)
		return cli_usage(
			c, "--shards sets the number of shards: it cannot be "
			   "combined with --shard-size or --shard-count");
	if (!s->pack.shards && !limits)
		return cli_usage(c, "--shuffle is for shards: it needs "
				    "--shards, --shard-size or --shard-count");
	if (s->pack.shuffle && s->pack.order)
		return cli_usage(c, "--shuffle and --order cannot be combined: "
				    "both set the order");
	return 0;
}

static void show_packed(void *ctx, uint64_t done, uint64_t total)
{
	struct sharder *p = ctx;

	if (!p->progress.total)
		progress_init(&p->progress,
			      p->s->quiet ? "none" : p->s->progress, "packed",
			      total);
	progress_update(&p->progress, done);
}

static int check_shard(void *ctx, const char *path, int fd,
		       const uint64_t xxh3[2], struct error *err)
{
	struct sharder *p = ctx;

	progress_clear(&p->progress);
	return pack_check_bytes(p->s, path, fd, xxh3, err);
}

static void set_options(struct sharder *p, const struct sink_ops *ops)
{
	const struct settings *s = p->s;
	const int64_t most = p->o.feed.mtime_most;
	bool numeric = s->pack.numeric_owner || s->pack.uid != OWNER_DEFAULT;

	p->o.pattern = p->pattern;
	p->o.ops = ops;
	p->o.top = p->top;
	p->o.stop = &interrupted;
	p->o.progress = show_packed;
	p->o.ctx = p;
	p->o.rules =
		(struct shards_rules){.cut = {.shards = s->pack.shards,
					      .count = s->pack.shard_count,
					      .size = s->pack.shard_size},
				      .order = {s->pack.shuffle, s->pack.seed},
				      .numeric_owner = numeric,
				      .attr = p->o.feed};
	p->o.sink = (struct sink_args){
		.replace = s->pack.force,
		.comp = s->pack.comp,
		.block = s->pack.block_size,
		.threads = s->threads,
		.memory = s->pack.memory / 2,
		.index = s->pack.no_index ? PACK_INDEX_NONE : PACK_INDEX_BESIDE,
		.numeric_owner = numeric,
		.epoch = most == INT64_MAX ? INT64_MIN : most,
		.check = s->pack.verify ? check_shard : NULL,
		.check_ctx = p,
		.stop = &interrupted};
}

/* Open a shard as a source, and compare it with its part of the scan.  Return the number
 * of differences, or -errno. */
static int64_t verify_shard(struct sharder *p, uint64_t k, struct error *err)
{
	const struct shard *part = &p->result.plan.list.at[k];
	cleanup_free char *base = shards_name_of(&p->result.name, k);
	cleanup_free char *path = NULL;
	struct feed_options feed = p->o.feed;
	struct sink_args a = p->o.sink;
	struct scan scan = *p->scan;
	int64_t n;

	if (!base || asprintf(&path, "%s/%s", p->result.name.dir, base) < 0) {
		path = NULL;
		return error_no_memory(err, "the path of a shard");
	}
	feed.xattrs = false;
	scan.list.at += part->first;
	scan.list.n = part->files;
	scan.bytes = 0;
	for (uint64_t i = 0; i < scan.list.n; i++) {
		scan.list.at[i].same_as = i;
		scan.bytes += scan.list.at[i].size;
	}
	a.path = path;
	n = pack_verify(p->c, p->s, p->top, &scan, &feed, &a, p->o.ops, err);
	p->scan->problems = scan.problems;
	p->scan->n_problems = scan.n_problems;
	return n;
}

static int verify_shards(struct sharder *p, struct error *err)
{
	for (uint64_t k = 0; k < p->result.plan.list.n; k++) {
		int64_t n = verify_shard(p, k, err);

		if (n < 0)
			return (int)n;
		p->report.differences += (uint64_t)n;
	}
	p->report.verified = !p->report.differences;
	return 0;
}

static void say_left_out(const struct sharder *p)
{
	const struct shards_plan *plan = &p->result.plan;

	if (p->s->quiet)
		return;
	if (plan->others)
		cli_say(p->c,
			"%" PRIu64 " files belong to no sample and were left "
			"out (no extension, a dot in front, or __NAME__): %s%s",
			plan->others, plan->other,
			plan->others > 1 ? ", ..." : "");
	if (plan->not_files)
		cli_say(p->c, "%" PRIu64 " devices or FIFOs were left out",
			plan->not_files);
}

static int exit_of_shards(int code)
{
	return code == -ENODATA || code == -ENOTSUP ? CLI_SOURCE
						    : pack_exit(code);
}

static int make_shards(struct sharder *p)
{
	struct error err = {0};
	int r = shards_check(&p->o, &err);
	bool made;

	/* Checked first, because listing millions of files takes long. */
	if (r == 0)
		r = scan_new(&p->scan, p->top, &p->scan_options, &interrupted,
			     &err);
	if (r == 0)
		r = shards_pack(&p->result, &p->o, p->scan, &err);
	made = r == 0;
	progress_clear(&p->progress);
	p->report.seconds = progress_seconds(&p->progress);
	if (made && p->s->pack.verify)
		r = verify_shards(p, &err);
	if (r < 0) {
		pack_say_end(p->c, p->pattern, made, r, &err);
		return exit_of_shards(r);
	}
	p->report.scan = p->scan;
	p->report.shards = &p->result;
	p->report.result.stored = p->result.stored;
	snprintf(p->report.codec, sizeof p->report.codec, "%s",
		 p->result.codec ? p->result.codec : "none");
	say_left_out(p);
	return pack_say(p->c, p->s, &p->report);
}

int pack_shards(const struct command *c, struct settings *s, const char *top,
		const char *pattern, const struct sink_ops *ops)
{
	struct sharder p = {.c = c,
			    .s = s,
			    .top = top,
			    .pattern = pattern,
			    .report = {.output = pattern, .format = ops->name}};
	struct pack_lists lists;
	int code = check_usage(c, s);

	if (code != 0)
		return code;
	code = pack_options(c, s, pattern, &p.scan_options, &p.o.feed, &lists);
	if (code == 0) {
		set_options(&p, ops);
		progress_init(&p.progress, "none", "packed", 0);
		interrupt_catch();
		code = make_shards(&p);
		interrupt_die();
	}
	shards_result_free(&p.result);
	scan_free(p.scan);
	pack_lists_free(&lists);
	return code;
}
