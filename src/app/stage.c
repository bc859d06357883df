/* SPDX-License-Identifier: BSD-2-Clause */
/* Stages a request: finds an existing tree, or plans, writes, checks and publishes one. */

/*
 *	search for it                     staging_begin: saves all other work if found
 *	open the sources                  twice with --verify, both before there are
 *	                                  threads
 *	plan, and see whether it fits     nothing was written yet
 *	write, compare                    in a directory that is not published
 *	look at the sources once more     they must not have changed
 *	publish                           atomically
 *
 * After a signal what was written is removed, and the process dies of the signal.
 * Opening sources cannot be stopped in the middle, but has written nothing yet: then
 * the signal handler itself does both.
 */
#include "app/stage_private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "app/progress.h"
#include "base/cleanup.h"
#include "base/counters.h"
#include "base/log.h"
#include "base/number.h"
#include "base/parse.h"
#include "base/system.h"
#include "staging/copy.h"
#include "stream/stream.h"

/* The most files and directories if the file system sets no limit. */
#define ENTRIES_MOST (UINT64_C(1) << 27)
#define RESERVE_SHARE "25%"
/* Bytes of memory that staging needs, however little is decoded. */
#define WORK_LEAST (UINT64_C(16) << 20)

static _Atomic int caught;

struct stager {
	const struct command *c;
	struct settings *s;
	const struct stage_request *q;
	struct staging *place;
	struct staging_build build;
	struct stage_origin origin;
	struct session *session, *again;
	struct copy_plan *plan;
	struct copy_options options;
	struct progress progress;
	bool writing, interruptible;
	struct sigaction before[3];
	struct error *err;
};

static void say_unless_quiet(void *ctx, const char *sentence)
{
	struct stager *st = ctx;

	if (!st->s->quiet)
		cli_say(st->c, "%s", sentence);
}

/* Return the exit code for a failure to write or to find room. */
static int write_exit(int code)
{
	return code == -ENOSPC || code == -EDQUOT || code == -ENOMEM
		       ? CLI_MEMORY
		       : CLI_INCOMPLETE;
}

/* ---- signals ------------------------------------------------------------- */

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
/* Set while this process waits for another one or opens sources: that may take minutes
 * and cannot be stopped. */
static struct stager *_Atomic opening;

void stage_interrupt(int n)
{
	const struct stager *st = opening;

	caught = n;
	if (!st)
		return;
	staging_abandon(st->place, &st->build);
	signal(n, SIG_DFL);
	raise(n);
}

int stage_signal(void)
{
	return caught;
}

void stage_die_of_signal(void)
{
	if (!caught)
		return;
	signal(caught, SIG_DFL);
	raise(caught);
}

static void signals_hold(struct stager *st)
{
	struct sigaction a = {.sa_handler = stage_interrupt,
			      .sa_flags = SA_RESTART};

	for (unsigned i = 0; i < 3; i++) {
		sigaction(signals[i], NULL, &st->before[i]);
		if (st->before[i].sa_handler != SIG_IGN)
			sigaction(signals[i], &a, NULL);
	}
	st->interruptible = true;
}

static void signals_release(struct stager *st)
{
	for (unsigned i = 0; i < 3 && st->interruptible; i++)
		sigaction(signals[i], &st->before[i], NULL);
	st->interruptible = false;
}

/* ---- opening and planning ------------------------------------------------ */

static int open_sources(struct stager *st, struct session **out)
{
	stage_keep(st->q, st->s);
	return session_open(out, st->q->sources, st->q->n_sources, st->s,
			    system_cores(), st->err);
}

static int make_plan(struct stager *st, struct session *session)
{
	static char all[] = "";
	char *whole[] = {all};
	const struct stage_request *q = st->q;
	struct statfs fs;

	st->options =
		(struct copy_options){.cache_size = st->s->cache_size,
				      .threads = st->s->threads,
				      .samples_only = !st->s->stage.views_given,
				      .skip_missing = st->s->stage.skip_missing,
				      .most = ENTRIES_MOST};
	if (fstatfs(st->place->at.fd, &fs) == 0 && fs.f_files)
		st->options.most = min_u64(fs.f_files, ENTRIES_MOST);
	return copy_plan_new(
		&st->plan, session->fs, q->n_paths ? q->paths : whole,
		q->n_paths ? q->n_paths : 1, &st->options, &caught, st->err);
}

static int does_it_fit(struct stager *st)
{
	const char *text = st->s->stage.reserve;
	struct copy_room room = {.name = st->q->sources[0],
				 .path = st->place->at.path,
				 .fd = st->place->at.fd,
				 .memory = st->place->memory,
				 .held = stream_first_pass_bytes(),
				 .work = min_u64(st->s->cache_size,
						 st->plan->bytes + WORK_LEAST)};
	struct system_headroom group;
	struct staging_others others;
	uint64_t have, total;
	int r = shm_space(room.fd, &have, &total, st->err);

	if (r == 0 && (text || room.memory) && total != UINT64_MAX)
		r = parse_size(text ? text : RESERVE_SHARE, total,
			       &room.reserve, st->err);
	system_headroom(&group);
	if (r == 0)
		r = staging_ask(st->place, &st->build, group.group, &others,
				st->err);
	if (r < 0)
		return r;
	room.group = &group;
	room.wanted = others.bytes;
	room.wanted_here = others.group;
	r = copy_fits(st->plan, &room, st->err);
	staging_promise(&st->build, r == 0 ? st->plan->space : 0);
	return r;
}

/* Open the sources and make the plan; nothing is written yet.  Return an exit code. */
static int open_and_plan(struct stager *st, bool twice)
{
	int r;

	opening = st;
	r = stage_origin_look(&st->origin, st->err);
	if (r == 0)
		r = open_sources(st, &st->session);
	if (r == 0 && twice)
		r = open_sources(st, &st->again);
	opening = NULL;
	if (r == 0)
		r = source_isolate(true, st->err);
	if (r < 0)
		return cli_source_exit(r);
	r = make_plan(st, st->session);
	return r < 0 ? write_exit(r) : CLI_DONE;
}

static void close_sources(struct stager *st)
{
	copy_plan_free(st->plan);
	session_free(st->session); /* and the processes that work for it */
	session_free(st->again);
	st->plan = NULL;
	st->session = st->again = NULL;
	stage_origin_free(&st->origin);
}

/* Open and plan, and check for room.  If a directory changed meanwhile (indexes of the
 * archives in it are saved there), do it once more, to see files that other processes
 * added. */
static int prepare_stage(struct stager *st)
{
	bool changed, twice = st->s->stage.verify,
		      all = !st->s->stage.skip_missing;
	int r, code = open_and_plan(st, twice);

	if (code != CLI_DONE)
		return code;
	r = stage_origin_directories(&st->origin, st->plan, all, &changed,
				     st->err);
	if (r == 0 && changed) {
		close_sources(st);
		code = open_and_plan(st, twice);
		if (code != CLI_DONE)
			return code;
		r = stage_origin_directories(&st->origin, st->plan, all,
					     &changed, st->err);
	}
	if (r == 0)
		r = does_it_fit(st);
	return r < 0 ? write_exit(r) : CLI_DONE;
}

/* ---- writing and comparing ----------------------------------------------- */

/* Return the bytes of memory still needed when `done` bytes of files are written.  Small
 * files take more than their size; large ones were allocated at once. */
static uint64_t space_left(const struct copy_plan *p, uint64_t done)
{
	double share = done < p->bytes ? (double)done / (double)p->bytes : 1;
	uint64_t taken = (uint64_t)(share * (double)p->space);

	return p->space - min_u64(max_u64(taken, p->apart), p->space);
}

static void show_copied(void *ctx, uint64_t done)
{
	struct stager *st = ctx;

	progress_update(&st->progress, min_u64(done, st->progress.total));
	if (st->writing)
		staging_promise_left(&st->build, space_left(st->plan, done));
}

static void begin_progress(struct stager *st, const char *what)
{
	progress_init(&st->progress,
		      st->s->quiet      ? "none"
		      : st->s->progress ? st->s->progress
					: "auto",
		      what, st->plan->bytes);
}

static struct copy_job job_of(struct stager *st)
{
	return (struct copy_job){.plan = st->plan,
				 .options = &st->options,
				 .to = st->build.tree.fd,
				 .stop = &caught,
				 .progress = show_copied,
				 .ctx = st};
}

static void note_left_out_files(const struct stager *st, uint64_t n,
				const char *what)
{
	if (n && !st->s->quiet)
		cli_say(st->c, "%s: %" PRIu64 " %s", st->q->sources[0], n,
			what);
}

static int write_tree(struct stager *st, struct staging_result *result)
{
	uint64_t chunks = counter_get(COUNT_CHUNKS_DECODED);
	struct copy_job job;
	int r = staging_make(st->place, &st->build, st->err);

	if (r == 0)
		r = session_start(st->session, st->err);
	if (r < 0)
		return r;
	job = job_of(st);
	begin_progress(st, "staging");
	st->writing = true;
	r = copy_write(&job, st->err);
	st->writing = false;
	progress_clear(&st->progress);
	if (r < 0)
		return r;
	staging_promise_left(&st->build, 0);
	note_left_out_files(st, st->plan->left_out,
			    "devices, FIFOs or sockets are left out");
	note_left_out_files(st, job.missing + st->plan->missing,
			    "files are left out: parts of them are missing");
	*result = (struct staging_result){
		.files = st->plan->files.n - job.missing,
		.bytes = st->plan->bytes,
		.space = st->plan->space,
		.chunks = counter_get(COUNT_CHUNKS_DECODED) - chunks};
	for (uint64_t i = 0; i < st->plan->files.n && job.missing; i++)
		if (st->plan->files.at[i].flags & COPY_MISSING)
			result->bytes -= st->plan->files.at[i].size;
	return 0;
}

/* Compare `files` files in directory `to` with the sources. */
static int compare_staged(struct stager *st, int to, uint64_t files)
{
	struct copy_job job = job_of(st);
	int r = session_start(st->session, st->err);

	if (r < 0)
		return r;
	job.to = to;
	job.missing = st->plan->files.n - files;
	begin_progress(st, "comparing");
	r = copy_compare(&job, st->err);
	progress_clear(&st->progress);
	return r;
}

/* Compare the tree with the sources opened a second time; no earlier result is used. */
static int compare_tree(struct stager *st, struct staging_result *result)
{
	int r;

	copy_plan_free(st->plan);
	st->plan = NULL;
	session_free(st->session); /* and the processes that work for it */
	st->session = steal_pointer(&st->again);
	r = source_isolate(true, st->err);
	if (r == 0)
		r = make_plan(st, st->session);
	if (r == 0)
		r = compare_staged(st, st->build.tree.fd, result->files);
	result->verified = r == 0;
	return r;
}

/* ---- all of it ----------------------------------------------------------- */

static int build_staged_tree(struct stager *st, struct staged *out)
{
	struct staging_result result;
	int r = write_tree(st, &result);

	if (r == 0)
		r = stage_origin_files(&st->origin, st->session->handles,
				       st->err);
	if (r == 0 && st->s->stage.verify)
		r = compare_tree(st, &result);
	if (r == 0)
		r = stage_origin_look_again(&st->origin, st->err);
	if (r == 0 && caught)
		r = error_set(st->err, -EINTR, "interrupted");
	if (r == 0)
		r = staging_publish(st->place, &st->build, &result,
				    &st->origin.list, say_unless_quiet, st, out,
				    st->err);
	return r;
}

/* Make a stage that was not found.  Return an exit code. */
static int make_staged(struct stager *st, struct staged *out)
{
	int code = prepare_stage(st);

	if (code == CLI_DONE) {
		int r = build_staged_tree(st, out);

		code = r < 0 ? write_exit(r) : CLI_DONE;
	}
	close_sources(st);
	staging_cancel(st->place, &st->build);
	return code;
}

/* Compare a stage that was found with its sources.  *other is set if it differs.  Return
 * an exit code. */
static int check_reused(struct stager *st, const struct staged *u, bool *other)
{
	cleanup_close int to =
		open(u->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int code = open_and_plan(st, false), r = 0;

	if (code == CLI_DONE) {
		r = to < 0 ? error_errno(st->err, -errno, "'%s'", u->path)
			   : compare_staged(st, to, u->files);
		*other = to < 0 || r == COPY_DIFFERS;
		if (r == 0)
			r = stage_origin_look_again(&st->origin, st->err);
		if (r == 0)
			r = staging_verified(st->place, u, st->err);
		code = r < 0 ? write_exit(r) : CLI_DONE;
	}
	close_sources(st);
	return code;
}

static int begin_stage(struct stager *st, const struct staging_want *want,
		       struct staged *out)
{
	int r;

	opening = st;
	r = staging_begin(st->place, want, say_unless_quiet, st, out,
			  &st->build, st->err);
	return r < 0 ? write_exit(r) : CLI_DONE;
}

/* Find the stage or make it.  Return an exit code. */
static int reuse_or_make(struct stager *st, struct staging_want *want,
			 struct staged *out)
{
	int code = begin_stage(st, want, out);
	bool other = false;

	if (code == CLI_DONE && out->reused && st->s->stage.verify) {
		code = check_reused(st, out, &other);
		if (other)
			staging_disown(st->place, out);
		if (code != CLI_DONE)
			staging_release(st->place, out);
	}
	if (other) {
		if (!st->s->quiet)
			cli_say(st->c,
				"the staged files differ from their source "
				"(%s): staging them again",
				st->err->text);
		want->force = true;
		code = begin_stage(st, want, out);
	}
	if (code == CLI_DONE && !out->reused)
		code = make_staged(st, out);
	opening = NULL;
	return code;
}

static int find_or_make(struct stager *st, struct staging_want *want,
			struct staged *out)
{
	int r = staging_open(st->place, st->s->stage.to, true, st->err);

	out->no_place = r < 0;
	if (r < 0) /* a machine without shared memory has too little of it */
		return !st->s->stage.to && (r == -ENOENT || r == -ENOTSUP)
			       ? CLI_MEMORY
			       : write_exit(r);
	signals_hold(st);
	r = reuse_or_make(st, want, out);
	if (r != CLI_DONE) {
		staging_tidy(st->place);
		staging_close(st->place);
	}
	signals_release(st);
	return r;
}

int stage_request(const struct command *c, struct settings *s,
		  const struct stage_request *q, struct staging *place,
		  struct staged *out, struct error *err)
{
	struct stager st = {.c = c,
			    .s = s,
			    .q = q,
			    .place = place,
			    .build = STAGING_BUILD_INIT,
			    .origin = {.q = q, .names = s->names},
			    .err = err};
	struct stage_texts texts;
	struct staging_want want;
	int r;

	*out = (struct staged)STAGED_INIT;
	r = stage_want(q, s, &want, &texts, err);
	r = r < 0 ? cli_source_exit(r) : find_or_make(&st, &want, out);
	stage_texts_free(&texts);
	return r;
}
