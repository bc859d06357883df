/* SPDX-License-Identifier: BSD-2-Clause */
/* Stage a request: found there, or planned, written, checked and published. */

/*
 *	look whether it is there          staging_begin: an hour of work, or none
 *	open the sources                  twice with --verify, both before there are
 *	                                  threads
 *	plan, and see whether it fits     nothing was written yet
 *	write, compare                    in a directory that nobody sees
 *	look at the sources once more     what they were at first they are still
 *	publish                           at once
 *
 * A signal means: remove what there is, and die of it then.  What opens sources
 * cannot be stopped in the middle, but has made nothing yet: there the handler does
 * both.
 */
#include "cli/stage_private.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/counters.h"
#include "base/log.h"
#include "base/number.h"
#include "base/parse.h"
#include "base/system.h"
#include "cli/progress.h"
#include "extent/file.h"
#include "staging/copy.h"

/* Where the file system does not limit files. */
#define ENTRIES_MOST (UINT64_C(1) << 27)
#define RESERVE_SHARE "25%"
/* Memory that staging takes, however little is decoded. */
#define WORK_LEAST (UINT64_C(16) << 20)

static _Atomic int caught;

struct stager {
	const struct command *c;
	struct settings *s;
	const struct stage_request *q;
	struct staging *place;
	struct staging_build build;
	struct identity *ids; /* of q->sources, as they were at first */
	struct staging_sources sources;
	struct session *session, *again;
	struct copy_plan *plan;
	struct copy_options options;
	struct progress progress;
	bool interruptible;
	struct sigaction before[3];
	struct error *err;
};

static void say(void *ctx, const char *sentence)
{
	struct stager *st = ctx;

	if (!st->s->quiet)
		cli_say(st->c, "%s", sentence);
}

static int no_memory(struct error *err)
{
	error_set(err, -ENOMEM, "out of memory");
	return CLI_MEMORY;
}

/* What a failure to write, or to find room, is for who asked. */
static int write_exit(int code)
{
	return code == -ENOSPC || code == -EDQUOT || code == -ENOMEM
		       ? CLI_MEMORY
		       : CLI_INCOMPLETE;
}

/* ---- signals ------------------------------------------------------------- */

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
/* Set while we wait for another process, or open sources: that may take minutes and
 * cannot be stopped. */
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

/* ---- sources ------------------------------------------------------------- */

/* What the sources are now, or whether they are that still. */
static int look_at_sources(const struct stager *st, bool again)
{
	for (size_t i = 0; i < st->q->n_sources; i++) {
		const char *path = st->q->sources[i];
		struct identity is;
		struct stat s;

		if (stat(path, &s) < 0)
			return error_errno(st->err, -errno, "'%s'", path);
		identity_of(&s, &is);
		if (!again)
			st->ids[i] = is;
		else if (!identity_equal(&is, &st->ids[i]))
			return file_fail_stale(st->err, path, &st->ids[i], &is);
	}
	return 0;
}

/* Absolute, as far as it can be: it may be gone. */
static bool add_source(struct stager *st, const char *path,
		       const struct identity *id)
{
	char cwd[PATH_MAX];
	cleanup_free char *full = NULL;

	if (path[0] != '/') {
		if (!getcwd(cwd, sizeof cwd) ||
		    asprintf(&full, "%s/%s", cwd, path) < 0)
			return false;
		path = full;
	}
	return staging_sources_add(&st->sources, path, id);
}

/* Where directory `inner` of the tree is, if it is one of source number i's own;
 * false: it is not. */
static bool path_in_source(const struct stager *st, size_t i, const char *inner,
			   char *path, size_t n)
{
	const char *given = st->s->names ? st->s->names[i] : NULL;
	cleanup_free char *top =
		given ? strdup(given) : session_base_name(st->q->sources[i]);
	size_t len = top ? strlen(top) : 0;

	if (st->q->n_sources > 1 || given) {
		if (!top || strncmp(inner + 1, top, len) ||
		    (inner[len + 1] && inner[len + 1] != '/'))
			return false;
		inner += len + 1;
	}
	return snprintf(path, n, "%s/%s", st->q->sources[i], inner) < (int)n;
}

/* All of a source that were listed, for what may be added to them. */
static bool add_directories_of(struct stager *st, size_t source)
{
	const struct copy_plan *p = st->plan;
	char path[PATH_MAX + 8], inner[PATH_MAX];
	struct identity id;
	struct stat s;

	for (uint32_t i = 0; i < p->dirs.n; i++) {
		if (tree_path(fs_tree(p->fs), p->dirs.at[i].ino, inner,
			      sizeof inner) < 0 ||
		    !path_in_source(st, source, inner, path, sizeof path) ||
		    stat(path, &s) < 0 || !S_ISDIR(s.st_mode))
			continue;
		identity_of(&s, &id);
		if (!add_source(st, path, &id))
			return false;
	}
	return true;
}

/* What directories are, when they have been listed and the archives in them have got
 * their indexes, and before anything is read. */
static int look_at_directories(struct stager *st)
{
	for (size_t i = 0; i < st->q->n_sources; i++) {
		struct stat s;

		if (stat(st->q->sources[i], &s) < 0 || !S_ISDIR(s.st_mode))
			continue;
		identity_of(&s, &st->ids[i]);
		if (!add_directories_of(st, i))
			return error_set(st->err, -ENOMEM, "out of memory");
	}
	return 0;
}

/* Every file that was read, and what was missing where that is no error. */
static int list_sources(struct stager *st)
{
	struct handles *h = st->session->handles;
	bool lacks = st->s->stage.skip_missing ||
		     st->s->views.missing == MISSING_FILL;
	bool ok = true;

	for (size_t i = 0; ok && i < st->q->n_sources; i++)
		ok = add_source(st, st->q->sources[i], &st->ids[i]);
	for (uint32_t i = 0; ok && i < handles_count(h); i++) {
		struct identity id;
		const char *path;
		bool known = handles_known(h, i, &path, &id);

		if (!path)
			continue;
		if (known)
			ok = add_source(st, path, &id);
		else if (lacks && access(path, F_OK) < 0)
			ok = add_source(st, path, NULL);
	}
	if (ok)
		return 0;
	return error_set(st->err, -ENOMEM, "out of memory");
}

/* ---- opening and planning ------------------------------------------------ */

static int open_sources(struct stager *st, struct session **out)
{
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
				 .work = min_u64(st->s->cache_size,
						 st->plan->bytes + WORK_LEAST)};
	uint64_t have, total;
	int r = shm_space(room.fd, &have, &total, st->err);

	if (r == 0 && (text || room.memory) && total != UINT64_MAX)
		r = parse_size(text ? text : RESERVE_SHARE, total,
			       &room.reserve, st->err);
	return r < 0 ? r : copy_fits(st->plan, &room, st->err);
}

/* Prepare: nothing is written.  An exit code. */
static int prepare(struct stager *st)
{
	int r = open_sources(st, &st->session);
	if (r == 0 && st->s->stage.verify)
		r = open_sources(st, &st->again);
	opening = NULL; /* from here on there is a tree to be removed */
	if (r == 0)
		r = source_isolate(true, st->err);
	if (r < 0)
		return cli_source_exit(r);
	r = make_plan(st, st->session);
	if (r == 0)
		r = look_at_directories(st);
	if (r == 0)
		r = does_it_fit(st);
	return r < 0 ? write_exit(r) : CLI_DONE;
}

/* ---- writing and comparing ----------------------------------------------- */

static void show(void *ctx, uint64_t done)
{
	struct stager *st = ctx;

	progress_update(&st->progress, min_u64(done, st->progress.total));
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
				 .progress = show,
				 .ctx = st};
}

static void note(const struct stager *st, uint64_t n, const char *what)
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
	r = copy_write(&job, st->err);
	progress_clear(&st->progress);
	if (r < 0)
		return r;
	note(st, st->plan->left_out, "devices, FIFOs or sockets are left out");
	note(st, job.missing + st->plan->missing,
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

/* Nothing that was read or worked out before is used. */
static int compare_tree(struct stager *st, struct staging_result *result)
{
	uint64_t missing = st->plan->files.n - result->files;
	struct copy_job job;
	int r;

	copy_plan_free(st->plan);
	st->plan = NULL;
	session_free(st->session); /* and the processes that work for it */
	st->session = steal_pointer(&st->again);
	r = source_isolate(true, st->err);
	if (r == 0)
		r = session_start(st->session, st->err);
	if (r == 0)
		r = make_plan(st, st->session);
	if (r < 0)
		return r;
	job = job_of(st);
	job.missing = missing;
	begin_progress(st, "comparing");
	r = copy_compare(&job, st->err);
	progress_clear(&st->progress);
	result->verified = r == 0;
	return r;
}

/* ---- all of it ----------------------------------------------------------- */

/* What is not there yet.  An exit code. */
static int make_it(struct stager *st, struct staged *out)
{
	struct staging_result result;
	int r, code;

	st->ids = calloc(st->q->n_sources, sizeof *st->ids);
	if (!st->ids)
		return no_memory(st->err);
	r = look_at_sources(st, false);
	code = r < 0 ? cli_source_exit(r) : prepare(st);
	if (code == CLI_DONE) {
		r = write_tree(st, &result);
		if (r == 0)
			r = list_sources(st);
		if (r == 0 && st->s->stage.verify)
			r = compare_tree(st, &result);
		if (r == 0)
			r = look_at_sources(st, true);
		if (r == 0 && caught)
			r = error_set(st->err, -EINTR, "interrupted");
		if (r == 0)
			r = staging_publish(st->place, &st->build, &result,
					    &st->sources, say, st, out,
					    st->err);
		code = r < 0 ? write_exit(r) : CLI_DONE;
	}
	free(st->ids);
	copy_plan_free(st->plan);
	session_free(st->session);
	session_free(st->again);
	staging_sources_free(&st->sources);
	staging_cancel(st->place, &st->build);
	return code;
}

static int find_or_make(struct stager *st, struct staging_want *want,
			struct staged *out)
{
	int r = staging_open(st->place, st->s->stage.to, true, st->err);

	out->no_place = r < 0;
	if (r < 0) /* no shared memory is too little of it */
		return !st->s->stage.to && (r == -ENOENT || r == -ENOTSUP)
			       ? CLI_MEMORY
			       : write_exit(r);
	signals_hold(st);
	opening = st;
	r = staging_begin(st->place, want, say, st, out, &st->build, st->err);
	if (r < 0)
		r = write_exit(r);
	else if (out->reused)
		r = CLI_DONE;
	else
		r = make_it(st, out);
	opening = NULL;
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
