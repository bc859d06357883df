/* SPDX-License-Identifier: BSD-2-Clause */
/* tensorfs merge: make one file of the files of a distributed tensor. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <string.h>

#include "app/interrupt.h"
#include "app/pack.h"
#include "base/log.h"
#include "base/parse.h"
#include "tensors/merge/hdf5_merge.h"

struct merging {
	const struct command *c;
	struct settings *s;
	const char *main;
	struct merge_options o;
	struct merge_result result;
	struct progress progress;
	const char *what; /* the phase whose progress is shown */
	bool opening; /* still checking names and taking locks: no data was read */
};

static void merge_show_progress(void *ctx, const char *what, uint64_t done,
				uint64_t total)
{
	struct merging *g = ctx;

	if (g->what != what) {
		progress_clear(&g->progress);
		progress_init(&g->progress,
			      g->s->quiet ? "none" : g->s->progress, what,
			      total);
		g->what = what;
	}
	progress_update(&g->progress, done);
}

/* ---- output -------------------------------------------------------------- */

static int merge_report_json(const struct merging *g)
{
	const struct merge_result *x = &g->result;
	json_t *j = json_pack(
		"{s:s, s:b, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
		"s:f}",
		"output", g->o.out ? g->o.out : g->main, "nothing_to_do",
		x->nothing, "resumed", x->resumed, "datasets",
		(json_int_t)x->datasets, "parts", (json_int_t)x->parts,
		"deleted", (json_int_t)x->deleted, "not_deleted",
		(json_int_t)x->kept_files, "chunks_copied",
		(json_int_t)x->copied, "chunks_encoded", (json_int_t)x->encoded,
		"chunks_empty", (json_int_t)x->empty, "bytes",
		(json_int_t)x->bytes, "stored_bytes", (json_int_t)x->stored,
		"seconds", progress_seconds(&g->progress));

	if (!j) {
		cli_say(g->c, "out of memory for the summary");
		return CLI_MEMORY;
	}
	json_dumpf(j, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(j);
	return cli_flush_report(g->c);
}

static int merge_report(const struct merging *g)
{
	const struct merge_result *x = &g->result;
	char stored[32];

	if (g->s->json)
		return merge_report_json(g);
	if (g->s->quiet)
		return CLI_DONE;
	if (x->nothing) {
		printf("%s is one file already: nothing to merge\n", g->main);
		return cli_flush_report(g->c);
	}
	format_size(x->stored, stored, sizeof stored);
	printf("%s: %s, %" PRIu64 " datasets of %" PRIu64
	       " files%s; chunks: %" PRIu64 " copied, %" PRIu64
	       " encoded, %" PRIu64 " never written",
	       g->o.out ? g->o.out : g->main, stored, x->datasets, x->parts,
	       x->resumed ? ", resumed" : "", x->copied, x->encoded, x->empty);
	if (x->deleted)
		printf("; %" PRIu64 " parts deleted", x->deleted);
	if (x->kept_files)
		printf("; %" PRIu64 " files stay", x->kept_files);
	putchar('\n');
	return cli_flush_report(g->c);
}

static int merge_report_failure(const struct merging *g,
				const struct error *err)
{
	bool stopped = err->code == -EINTR && interrupted;

	if (g->result.kept)
		cli_say(g->c,
			"%s; completed work is kept: run the same command "
			"again to continue",
			stopped ? "interrupted" : err->text);
	else if (stopped)
		cli_say(g->c, "interrupted: nothing was left behind");
	else
		cli_say(g->c, "%s", err->text);
	if (g->opening && err->code != -ENODATA && err->code != -ESTALE)
		return pack_exit(err->code);
	switch (err->code) {
	case -EINTR:
	case -EPERM:
	case -EBUSY:
	case -EACCES:
	case -EROFS:
	case -ENOSPC:
	case -EDQUOT:
	case -EFBIG:
		return CLI_INCOMPLETE;
	case -ENOMEM:
	case -EINVAL:
	case -EEXIST:
	case -EISDIR:
		return pack_exit(err->code);
	default:
		return cli_source_exit(err->code);
	}
}

/* ---- merging ------------------------------------------------------------- */

/* Merge the files.  Return 0, or -errno with a sentence. */
static int merge_files(struct merging *g, struct error *err)
{
	char *paths[] = {(char *)g->main};
	struct session *session = NULL;
	struct merge *m;
	int r = merge_begin(&m, &g->o, &g->result, err);

	g->opening = r != 0;
	/* No prefetch threads: they would outlive the tensors of this session. */
	if (r == 0)
		r = session_open(&session, paths, 1, g->s, 0, err);
	if (r == 0)
		r = source_isolate(true, err);
	if (r == 0)
		r = session_start(session, err);
	if (r == 0)
		r = merge_run(m, session->sources[0], session->store, err);
	progress_clear(&g->progress);
	merge_free(m);
	session_free(session);
	return r < 0 ? r : 0;
}

int cmd_merge(const struct command *c, struct settings *s, int argc,
	      char **argv)
{
	struct merging g = {.c = c, .s = s, .main = argv[0]};
	struct error err = {0};
	void (*pipe)(int);
	int code;

	(void)argc;
	pack_defaults(s, argv[0]);
	/* Elements are copied as they are stored. */
	s->views.source_order = true;
	s->views.missing = MISSING_ERROR;
	s->cache_size = s->pack.memory / 2;
	g.o = (struct merge_options){.main = g.main,
				     .out = s->pack.output,
				     .check_flag = s->pack.check_flag,
				     .chunk = s->pack.chunk,
				     .comp = s->pack.comp,
				     .comp_given = s->pack.comp_given,
				     .replace = s->pack.force,
				     .delete_parts = s->pack.delete_parts,
				     .threads = s->threads,
				     .jobs = s->pack.jobs,
				     .memory = s->pack.memory,
				     .stop = &interrupted,
				     .progress = merge_show_progress,
				     .ctx = &g};
	progress_init(&g.progress, "none", "", 0);
	interrupt_catch();
	/* If the reader of the progress closes the pipe, merging goes on; the summary is
	 * written with the caller's signal handling, after the merge. */
	pipe = signal(SIGPIPE, SIG_IGN);
	code = merge_files(&g, &err);
	signal(SIGPIPE, pipe);
	code = code < 0 ? merge_report_failure(&g, &err) : merge_report(&g);
	interrupt_die();
	return code;
}
