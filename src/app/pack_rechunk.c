/* SPDX-License-Identifier: BSD-2-Clause */
/* `pack SOURCE[:PATH] OUT.h5`: copies a file, and gives one tensor other chunks. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/interrupt.h"
#include "app/pack.h"
#include "app/report.h"
#include "base/cleanup.h"
#include "base/parse.h"
#include "tensors/rechunk/hdf5_rechunk.h"
#include "views/view.h"

/* If a sample is a single number, a chunk holds this many. */
#define SCALARS_CHUNK 1024
/* The share 1/CACHE_SHARE of the memory is for decoded chunks. */
#define CACHE_SHARE 4
/* The largest number of tensors that are listed when it is not clear which one is meant. */
#define LISTED 12

struct rechunker {
	const struct command *c;
	struct settings *s;
	const char *out, *dataset;
	struct operand source;
	struct session *session;
	struct tensor *tensor;
	uint64_t chunk[RANK_MAX];
	unsigned rank;   /* of --chunk; 0 if not given */
	bool sample;     /* --chunk=sample */
	uint64_t others; /* tensors that are not rechunked */
	struct progress progress;
};

/* ---- what was asked for -------------------------------------------------- */

/* Return the name of a given option that applies to directories only, or NULL. */
static const char *foreign_option(const struct settings *s)
{
	const struct {
		const char *name;
		bool given;
	} all[] = {
		{"files-from", s->pack.files_from},
		{"order", s->pack.order},
		{"exclude", s->pack.n_exclude},
		{"one-file-system", s->pack.one_file_system},
		{"owner",
		 s->pack.uid != OWNER_DEFAULT || s->pack.gid != OWNER_DEFAULT},
		{"mtime", s->pack.mtime != INT64_MIN},
		{"block-size", s->pack.block_size},
		{"shape", s->pack.shape},
		{"dtype", s->pack.dtype},
		{"labels", s->pack.labels},
		{"shards", s->pack.shards},
		{"shard-size", s->pack.shard_size},
		{"shard-count", s->pack.shard_count},
		{"shuffle", s->pack.shuffle},
	};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (all[i].given)
			return all[i].name;
	return NULL;
}

/* Parse a chunk shape like "1,1,256,256", or "sample". */
static int parse_chunk(struct rechunker *r)
{
	const char *at = r->s->pack.chunk;
	struct error err = {0};
	char number[24];

	r->sample = pack_chunk_is_sample(r->s);
	if (r->sample)
		return 0;
	while (at && *at) {
		size_t n = strcspn(at, ",");

		if (r->rank == RANK_MAX)
			return cli_usage(r->c, "--chunk has more than %d axes",
					 RANK_MAX);
		if (n >= sizeof number)
			n = sizeof number - 1;
		memcpy(number, at, n);
		number[n] = '\0';
		if (parse_count(number, 1, INT64_MAX, &r->chunk[r->rank],
				&err) < 0)
			return cli_usage(r->c, "--chunk=%s: %s",
					 r->s->pack.chunk, err.text);
		r->rank++;
		at += n;
		if (*at == ',' && !*++at)
			return cli_usage(r->c, "--chunk=%s ends in a comma",
					 r->s->pack.chunk);
	}
	if (r->s->pack.chunk && !r->rank)
		return cli_usage(r->c, "--chunk is empty");
	return 0;
}

/* ---- the tensor ---------------------------------------------------------- */

struct tensors {
	struct tensor *at[LISTED];
	struct tensor
		*signal; /* the last one that the file marks as a signal */
	uint64_t n, signals;
	uint64_t
		others; /* tensors that cannot be rechunked: text, single values */
};

static int collect_tensor(void *ctx, struct tensor *t)
{
	struct tensors *all = ctx;

	if (t->why_not || !dtype_is_binary(&t->dtype) || !t->rank) {
		all->others++;
		return 0;
	}
	if (t->sample_axes) {
		all->signal = t;
		all->signals++;
	}
	if (all->n < LISTED)
		all->at[all->n] = t;
	all->n++;
	return 0;
}

static void say_tensors(const struct rechunker *r, const struct tensors *all)
{
	char text[1024] = "";

	for (uint64_t i = 0; i < all->n && i < LISTED; i++) {
		size_t at = strlen(text);

		snprintf(text + at, sizeof text - at, "%s%s", i ? ", " : "",
			 all->at[i]->name);
	}
	cli_say(r->c,
		"%s has %" PRIu64 " tensors: name one as SOURCE:PATH (%s%s)",
		r->source.source, all->n, text, all->n > LISTED ? ", ..." : "");
}

static int find_rechunk_tensor(struct rechunker *r, const struct node *node)
{
	struct tree *tree = fs_tree(r->session->fs);
	struct tensors all = {.n = 0};

	r->tensor = node->files ? tensor_of_files(node->files) : NULL;
	if (r->tensor)
		return CLI_DONE;
	if (report_walk(tree, node, collect_tensor, &all) < 0) {
		cli_say(r->c, "out of memory for the list of tensors");
		return CLI_MEMORY;
	}
	/* HyperSpy and NeXus files mark the tensor that the others describe. */
	if (all.n == 1 || all.signals == 1) {
		r->tensor = all.n == 1 ? all.at[0] : all.signal;
		r->others = all.n - 1 + all.others;
		if (all.n > 1 && !r->s->quiet)
			cli_say(r->c, "%s: the signal is %s", r->source.source,
				r->tensor->name);
		return CLI_DONE;
	}
	if (all.n)
		say_tensors(r, &all);
	else
		cli_say(r->c, "%s%s%s: there is no tensor to rechunk",
			r->source.source, *r->source.path ? ":" : "",
			r->source.path);
	return CLI_SOURCE;
}

/* Set the chunk to one sample, as `info` and a mount define it; many single numbers
 * share a chunk. */
static void chunk_of_sample(struct rechunker *r)
{
	const struct tensor *t = r->tensor;
	unsigned axes = view_sample_axes(&r->s->views, t);

	r->rank = t->rank;
	for (unsigned i = 0; i < t->rank; i++)
		r->chunk[i] = i < axes ? 1 : t->shape[i] ? t->shape[i] : 1;
	if (t->rank && axes >= t->rank)
		r->chunk[t->rank - 1] = SCALARS_CHUNK;
}

static int check_rank(struct rechunker *r)
{
	char shape[256];

	if (r->sample)
		chunk_of_sample(r);

	/* A tensor that cannot be rechunked at all is reported later. */
	if (!r->rank || r->rank == r->tensor->rank || !r->tensor->rank)
		return CLI_DONE;
	dtype_shape_text(r->tensor->shape, r->tensor->rank, shape,
			 sizeof shape);
	return cli_usage(r->c,
			 "--chunk=%s has %u axes, %s has %u: its shape is %s",
			 r->s->pack.chunk, r->rank, r->tensor->name,
			 r->tensor->rank, shape);
}

/* ---- what came of it ----------------------------------------------------- */

static void show_rechunked(void *ctx, uint64_t done)
{
	struct rechunker *r = ctx;

	progress_update(&r->progress, done);
}

static void say_rechunk_note(void *ctx, const char *sentence)
{
	struct rechunker *r = ctx;

	if (r->s->quiet)
		return;
	progress_clear(&r->progress);
	cli_say(r->c, "%s: %s", r->tensor->name, sentence);
}

static int check_rechunked(void *ctx, int fd, struct error *err)
{
	static const uint64_t unknown[2];
	struct rechunker *r = ctx;

	progress_clear(&r->progress);
	return pack_check_bytes(r->s, r->out, fd, unknown, err);
}

static void print_numbers(const char *name, const uint64_t *n, unsigned rank)
{
	printf("\"%s\": [", name);
	for (unsigned i = 0; i < rank; i++)
		printf("%s%" PRIu64, i ? ", " : "", n[i]);
	printf("], ");
}

static double rechunk_ratio(const struct rechunker *r,
			    const struct rechunk_result *result)
{
	return result->stored
		       ? (double)r->tensor->bytes / (double)result->stored
		       : 0;
}

static void print_rechunk_json(const struct rechunker *r,
			       const struct rechunk_result *x)
{
	const struct tensor *t = r->tensor;

	printf("{\"output\": ");
	cli_json_string(stdout, r->out);
	printf(", \"format\": \"h5\", \"source\": ");
	cli_json_string(stdout, r->source.source);
	printf(", \"dataset\": ");
	cli_json_string(stdout, x->dataset);
	printf(", ");
	print_numbers("shape", t->shape, t->rank);
	print_numbers("chunk", x->chunk, t->rank);
	printf("\"codec\": ");
	cli_json_string(stdout, x->codec);
	printf(", \"bytes\": %" PRIu64 ", \"stored\": %" PRIu64
	       ", \"ratio\": %.3f, \"chunks\": %" PRIu64
	       ", \"unwritten\": %" PRIu64 ", \"source_chunks\": %" PRIu64
	       ", \"decodes\": %" PRIu64 ", \"tiles\": %" PRIu64
	       ", \"threads\": %u, \"memory\": %" PRIu64
	       ", \"kept\": %s, \"other_datasets\": %" PRIu64
	       ", \"left_out\": %" PRIu64
	       ", \"seconds\": %.3f, \"verified\": %s}\n",
	       t->bytes, x->stored, rechunk_ratio(r, x), x->chunks,
	       x->unwritten, x->plan.chunks, x->plan.decodes, x->plan.tiles,
	       x->threads, r->s->pack.memory, x->rest ? "true" : "false",
	       x->datasets, x->lost, progress_seconds(&r->progress),
	       r->s->pack.verify ? "true" : "false");
}

static void say_summary(const struct rechunker *r,
			const struct rechunk_result *x)
{
	char bytes[32], stored[32], others[64] = "";

	format_size(r->tensor->bytes, bytes, sizeof bytes);
	format_size(x->stored, stored, sizeof stored);
	if (x->datasets)
		snprintf(others, sizeof others,
			 ", %" PRIu64 " other dataset%s as %s", x->datasets,
			 x->datasets == 1 ? "" : "s",
			 x->datasets == 1 ? "it was" : "they were");
	cli_say(r->c, "%s: %" PRIu64 " chunks, %s in %s (%s)%s, %.1f s%s",
		r->out, x->chunks, bytes, stored, x->codec, others,
		progress_seconds(&r->progress),
		r->s->pack.verify ? ", verified" : "");
}

static int say_rechunked(const struct rechunker *r,
			 const struct rechunk_result *x)
{
	int code;

	if (!x->rest && r->others && !r->s->quiet)
		cli_say(r->c,
			"%s: only %s is copied; %" PRIu64
			" other datasets are left out",
			r->source.source, r->tensor->name, r->others);
	if (r->s->json)
		print_rechunk_json(r, x);
	else if (!r->s->quiet)
		say_summary(r, x);
	code = cli_flush_report(r->c);
	return code == CLI_DONE && x->rest && x->lost ? CLI_INCOMPLETE : code;
}

static int rechunk_failed(const struct rechunker *r, int code,
			  const struct rechunk_result *x,
			  const struct error *err)
{
	if (code == -EINTR) {
		cli_say(r->c, "interrupted: nothing was left behind");
		return CLI_INCOMPLETE;
	}
	cli_say(r->c, "%s", err->text);
	if (code == -ENOMEM)
		return CLI_MEMORY;
	return x->of_source || code == -ENOTSUP ? CLI_SOURCE : pack_exit(code);
}

/* ---- all of it ----------------------------------------------------------- */

static enum rechunk_keep keep_of(const struct settings *s)
{
	return s->pack.keep == KEEP_NONE   ? RECHUNK_KEEP_NONE
	       : s->pack.keep == KEEP_MOST ? RECHUNK_KEEP_MOST
					   : RECHUNK_KEEP_ALL;
}

static int rechunk(struct rechunker *r)
{
	struct settings *s = r->s;
	struct rechunk_options o = {
		.store = r->session->store,
		.tensor = r->tensor,
		.cache = s->cache_size,
		.path = r->out,
		.dataset = r->dataset,
		.keep = keep_of(s),
		.replace = s->pack.force,
		.chunk = r->rank ? r->chunk : NULL,
		.comp = s->pack.comp_given ? &s->pack.comp : NULL,
		.threads = s->threads,
		.memory = s->pack.memory,
		.verify = s->pack.verify,
		.stop = &interrupted,
		.progress = show_rechunked,
		.note = say_rechunk_note,
		.check = s->pack.verify ? check_rechunked : NULL,
		.ctx = r};
	struct rechunk_result result;
	struct error err = {0};
	int code;

	progress_init(&r->progress, s->quiet ? "none" : s->progress,
		      "rechunked", r->tensor->bytes);
	code = hdf5_rechunk(&o, &result, &err);
	progress_clear(&r->progress);
	return code < 0 ? rechunk_failed(r, code, &result, &err)
			: say_rechunked(r, &result);
}

int pack_rechunk(const struct command *c, struct settings *s,
		 const char *source, const char *out)
{
	struct rechunker r = {.c = c, .s = s, .out = out};
	const char *foreign = foreign_option(s);
	struct node node;
	int code;

	/* A source that does not exist may have been meant as a directory. */
	if (foreign && !strchr(source, ':') && access(source, F_OK) < 0) {
		cli_say(c, "'%s': %s", source, strerror(errno));
		return CLI_SOURCE;
	}
	if (foreign)
		return cli_usage(
			c,
			"--%s is for directories, and '%s' is not a directory",
			foreign, source);
	if (s->dataset && s->pack.keep && s->pack.keep != KEEP_NONE)
		return cli_usage(c, "--dataset copies the tensor alone: leave "
				    "out --keep, or give --keep=none");
	code = parse_chunk(&r);
	if (code)
		return code;
	r.dataset =
		s->dataset; /* names the dataset in the output; in the source PATH does */
	s->dataset = NULL;
	s->cache_size = s->pack.memory / CACHE_SHARE;
	s->views.source_order = true;
	s->within = true;
	interrupt_catch();
	code = operand_open(c, s, source, 0, &r.source, &r.session, &node);
	if (code)
		return code;
	code = find_rechunk_tensor(&r, &node);
	if (code == CLI_DONE)
		code = check_rank(&r);
	if (code == CLI_DONE)
		code = rechunk(&r);
	session_free(r.session);
	operand_free(&r.source);
	interrupt_die();
	return code;
}
