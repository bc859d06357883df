/* SPDX-License-Identifier: BSD-2-Clause */
/* Records what a tree is made of: every file and directory, and when each last changed. */

/* A staged tree is found again by the state of its sources.  Time stamps show it, with
 * one exception: a second write within the same tick of the file system's clock.  So no
 * source is opened until its last change is more than a tick ago; any later change then
 * leaves another ctime.  If that cannot be achieved (another process wrote to the
 * source, or its server's clock is ahead) the source is recorded without a time: such a
 * tree serves the request that made it, and is never found again. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "app/stage_private.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "extent/handles.h"

#define SECOND UINT64_C(1000000000)
/* File systems with fine time stamps take them from the timer's interrupt. */
#define TICK (SECOND / 50)
/* Others have stamps of whole seconds, or of two (FAT). */
#define TICK_COARSE (3 * SECOND)
/* How often to wait again for a clock that lags. */
#define WAITS 50

/* Return the time of the clock that time stamps are taken from.  It may lag in a virtual
 * machine, if its host delays timer interrupts. */
static uint64_t clock_of_files(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME_COARSE, &t);
	return file_time(&t);
}

/* Return the time from which on a change gets another time stamp than the last one. */
static uint64_t settled_at(const struct stat *st)
{
	return file_time(&st->st_ctim) +
	       (st->st_ctim.tv_nsec % 1000000 ? TICK : TICK_COARSE);
}

/* ---- the sources themselves ---------------------------------------------- */

static void wait_for_clock(uint64_t when)
{
	uint64_t is = clock_of_files(), most = is + TICK_COARSE, was;

	when = when < most ? when : most;
	for (unsigned i = 0; i < WAITS && is < when; i++) {
		struct timespec t = {.tv_sec = (time_t)((when - is) / SECOND),
				     .tv_nsec = (long)((when - is) % SECOND)};

		if (nanosleep(&t, NULL) < 0)
			return; /* a signal ends the stage anyhow */
		was = is;
		is = clock_of_files();
		if (is < was)
			return; /* the clock was set back */
	}
}

int stage_origin_look(struct stage_origin *o, struct error *err)
{
	o->ids = calloc(o->q->n_sources, sizeof *o->ids);
	if (!o->ids)
		return error_no_memory(err, "the list of sources");
	for (size_t i = 0; i < o->q->n_sources; i++) {
		struct stat st;

		if (stat(o->q->sources[i], &st) < 0)
			return error_errno(err, -errno, "'%s'",
					   o->q->sources[i]);
		o->settled = max_u64(o->settled, settled_at(&st));
	}
	/* Entries of a directory may be a moment younger. */
	wait_for_clock(o->settled + TICK);
	o->begun = clock_of_files();
	for (size_t i = 0; i < o->q->n_sources; i++) {
		struct stat st;

		if (stat(o->q->sources[i], &st) < 0)
			return error_errno(err, -errno, "'%s'",
					   o->q->sources[i]);
		identity_of(&st, &o->ids[i]);
	}
	return 0;
}

int stage_origin_look_again(const struct stage_origin *o, struct error *err)
{
	for (size_t i = 0; i < o->q->n_sources; i++) {
		const char *path = o->q->sources[i];
		struct identity is;
		struct stat st;

		if (stat(path, &st) < 0)
			return error_errno(err, -errno, "'%s'", path);
		identity_of(&st, &is);
		if (!identity_equal(&is, &o->ids[i]))
			return file_fail_stale(err, path, &o->ids[i], &is);
	}
	return 0;
}

/* Record a file under its absolute path (not canonical: it may be gone).  `st` is NULL
 * if it is missing.  Return false if out of memory or the working directory is not
 * known. */
static bool add_source_file(struct stage_origin *o, const char *path,
			    const struct stat *st)
{
	struct staging_source one = {.there = st};
	char cwd[PATH_MAX];
	cleanup_free char *full = NULL;

	if (path[0] != '/') {
		if (!getcwd(cwd, sizeof cwd) ||
		    asprintf(&full, "%s/%s", cwd, path) < 0)
			return false;
		path = full;
	}
	if (st) {
		identity_of(st, &one.id);
		if (settled_at(st) <= o->begun)
			one.changed = file_time(&st->st_ctim);
	}
	return staging_sources_add(&o->list, path, &one);
}

/* ---- directories --------------------------------------------------------- */

/* Find the path of entry `ino` of the tree.  Return false if the entry is not in source
 * i itself. */
static bool path_in_source(const struct stage_origin *o, size_t i,
			   const struct copy_plan *p, uint64_t ino, char *path,
			   size_t n)
{
	const char *given = o->names ? o->names[i] : NULL, *inner;
	cleanup_free char *top =
		given ? strdup(given) : session_base_name(o->q->sources[i]);
	size_t len = top ? strlen(top) : 0;
	char whole[PATH_MAX];

	if (tree_path(fs_tree(p->fs), ino, whole, sizeof whole) < 0)
		return false;
	inner = whole;
	if (o->q->n_sources > 1 || given) {
		if (!top || strncmp(inner + 1, top, len) ||
		    (inner[len + 1] && inner[len + 1] != '/'))
			return false;
		inner += len + 1;
	}
	return snprintf(path, n, "%s%s", o->q->sources[i], inner) < (int)n;
}

/* Record all listed directories of a source, because files may be added to them. */
static int add_listed_directories(struct stage_origin *o, size_t source,
				  const struct copy_plan *p, bool all,
				  bool *changed, struct error *err)
{
	char path[PATH_MAX + 8];
	struct stat st;

	for (uint32_t i = 0; i < p->dirs.n; i++) {
		if (!path_in_source(o, source, p, p->dirs.at[i].ino, path,
				    sizeof path) ||
		    stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
			continue;
		if (all && faccessat(AT_FDCWD, path, R_OK | X_OK, AT_EACCESS))
			return error_errno(err, -errno, "'%s'", path);
		*changed |= settled_at(&st) > o->begun;
		o->settled = max_u64(o->settled, settled_at(&st));
		if (!add_source_file(o, path, &st))
			return error_no_memory(err, "the list of sources");
	}
	return 0;
}

/* Record empty files and links that lead nowhere.  They are never opened, and both may
 * lead to bytes later without a change of their directory. */
static int add_empty_files(struct stage_origin *o, size_t source,
			   const struct copy_plan *p, bool *changed,
			   struct error *err)
{
	char path[PATH_MAX + 8];
	struct stat st;
	bool ok = true;

	for (uint64_t i = 0; ok && i < p->files.n; i++) {
		const struct copy_file *f = &p->files.at[i];

		if (f->size ||
		    !path_in_source(o, source, p, f->ino, path, sizeof path) ||
		    stat(path, &st) < 0 || !S_ISREG(st.st_mode))
			continue;
		*changed |= st.st_size > 0;
		ok = add_source_file(o, path, &st);
	}
	for (uint64_t i = 0; ok && i < p->links.n; i++) {
		if (!path_in_source(o, source, p, p->links.at[i].ino, path,
				    sizeof path) ||
		    lstat(path, &st) < 0 || !S_ISLNK(st.st_mode))
			continue;
		if (stat(path, &st) < 0)
			ok = add_source_file(o, path, NULL);
		else
			*changed |= S_ISREG(st.st_mode);
	}
	return ok ? 0 : error_no_memory(err, "the list of sources");
}

int stage_origin_directories(struct stage_origin *o, const struct copy_plan *p,
			     bool all, bool *changed, struct error *err)
{
	int r = 0;

	*changed = false;
	for (size_t i = 0; r == 0 && i < o->q->n_sources; i++) {
		struct stat st;

		if (stat(o->q->sources[i], &st) < 0 || !S_ISDIR(st.st_mode))
			continue;
		identity_of(&st, &o->ids[i]);
		r = add_listed_directories(o, i, p, all, changed, err);
		if (r == 0)
			r = add_empty_files(o, i, p, changed, err);
	}
	return r;
}

/* ---- everything ---------------------------------------------------------- */

static int add_opened_file(struct stage_origin *o, const char *path,
			   const struct identity *was, struct error *err)
{
	struct identity is;
	struct stat st;

	if (stat(path, &st) < 0)
		return error_errno(err, -errno, "'%s'", path);
	identity_of(&st, &is);
	if (!identity_equal(was, &is))
		return file_fail_stale(err, path, was, &is);
	return add_source_file(o, path, &st)
		       ? 0
		       : error_no_memory(err, "the list of sources");
}

int stage_origin_files(struct stage_origin *o, struct handles *h,
		       struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < o->q->n_sources; i++)
		r = add_opened_file(o, o->q->sources[i], &o->ids[i], err);
	for (uint32_t i = 0; r == 0 && i < handles_count(h); i++) {
		struct identity id;
		const char *path;
		bool known = handles_known(h, i, &path, &id);

		if (!path)
			continue;
		if (known)
			r = add_opened_file(o, path, &id, err);
		else if (access(path, F_OK) < 0 &&
			 !add_source_file(o, path, NULL))
			r = error_no_memory(err, "the list of sources");
	}
	return r;
}

void stage_origin_free(struct stage_origin *o)
{
	free(o->ids);
	o->ids = NULL;
	staging_sources_free(&o->list);
}
