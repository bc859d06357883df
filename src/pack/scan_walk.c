/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading directories with many threads. */

/*
 * On the file systems of clusters every stat is a request to a server, which answers many
 * requests at a time as fast as one.  So all threads share a stack of jobs: a directory
 * to be read, or a bundle of names in one directory whose attributes are needed (a
 * directory of a million files is work for all threads).  Each thread takes a job, keeps
 * its findings for itself, and pushes new jobs.  The walk ends when the stack is empty
 * and no thread has a job.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if __has_include(<linux/openat2.h>)
#include <linux/openat2.h>
#endif

#include "base/cleanup.h"
#include "members/index.h"
#include "pack/scan_private.h"

/* Paths of more bytes are opened in several steps. */
#define PATH_AT_ONCE 4000

/* ---- findings ---------------------------------------------------------------- */

bool scan_append(struct scan_text *t, const char *data, size_t n)
{
	while (t->room - t->n < n)
		if (!vec_grow((void **)&t->at, t->room, &t->room, 1))
			return false;
	if (n)
		memcpy(t->at + t->n, data, n);
	t->n += n;
	return true;
}

bool scan_say(struct scan_text *list, const char *path, const char *what)
{
	cleanup_free char *text = NULL;
	int n = asprintf(&text, "%s: %s", *path ? path : ".", what);

	if (n < 0) {
		text = NULL;
		return false;
	}
	return scan_append(list, text, (size_t)n + 1);
}

void scan_add_problem(struct scan_found *f, const char *path, const char *what)
{
	f->no_memory |= !scan_say(&f->problems, path, what);
	f->n_problems++;
}

struct scan_entry scan_entry_of(const struct stat *st)
{
	return (struct scan_entry){.size = (uint64_t)st->st_size,
				   .dev = st->st_dev,
				   .ino = st->st_ino,
				   .rdev = st->st_rdev,
				   .mtime = st->st_mtim.tv_sec,
				   .mtime_ns = (uint32_t)st->st_mtim.tv_nsec,
				   .ctime = st->st_ctim.tv_sec,
				   .ctime_ns = (uint32_t)st->st_ctim.tv_nsec,
				   .mode = st->st_mode,
				   .uid = st->st_uid,
				   .gid = st->st_gid,
				   .nlink = st->st_nlink & INT32_MAX};
}

void scan_add(struct scan_found *f, const char *path, const struct stat *st)
{
	struct scan_entry e = scan_entry_of(st);

	e.path = f->text.n;
	f->no_memory |= !scan_append(&f->text, path, strlen(path) + 1) ||
			!vec_push(&f->list, e);
}

/* ---- exclusion --------------------------------------------------------------- */

/* As GNU tar: a pattern matches the path, or its end behind any '/', and everything
 * below. */
bool scan_is_excluded(const struct scan_options *o, const char *path)
{
	for (size_t i = 0; o->exclude && o->exclude[i]; i++)
		for (const char *p = path; p; p = strchr(p, '/')) {
			p += *p == '/';
			if (fnmatch(o->exclude[i], p, FNM_LEADING_DIR) == 0)
				return true;
		}
	return false;
}

/* `name`, below the open directory `dir`, is the inode to be skipped.  Is it also that
 * name? */
static bool is_name_of(int dir, const char *name, const struct scan_skip *skip)
{
	const char *slash = strrchr(name, '/');
	cleanup_free char *parent =
		slash ? strndup(name, (size_t)(slash - name)) : strdup(".");
	struct stat st;

	return parent && !strcmp(slash ? slash + 1 : name, skip->name) &&
	       fstatat(dir, parent, &st, 0) == 0 &&
	       st.st_ino == skip->dir_ino && st.st_dev == skip->dir_dev;
}

static bool scan_is_skipped(const struct scan_options *o, int dir,
			    const char *name, const struct stat *st)
{
	for (unsigned i = 0; i < o->n_skip; i++)
		if (o->skip[i].ino == st->st_ino &&
		    o->skip[i].dev == st->st_dev &&
		    is_name_of(dir, name, &o->skip[i]))
			return true;
	return false;
}

/* ---- jobs ---------------------------------------------------------------- */

/* As openat, but fail if any component is a symbolic link: a directory that was listed
 * and has been replaced by a symbolic link since then would lead out of the top.
 * O_NOFOLLOW checks the last component only. */
static int scan_open_below(int dir, const char *path, int flags)
{
#ifdef RESOLVE_NO_SYMLINKS
	struct open_how how = {.flags = (uint64_t)flags,
			       .resolve = RESOLVE_NO_SYMLINKS};
	int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof how);

	/* Kernels before 5.6 and some containers' filters do not have openat2. */
	if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
		return fd;
#endif
	return openat(dir, path, flags);
}

int scan_open(int top, const char *path, int flags)
{
	const int way = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = -1, last;

	while (strlen(path) > PATH_AT_ONCE) {
		char part[PATH_AT_ONCE + 1];
		size_t n = PATH_AT_ONCE;
		int next;

		while (n && path[n] != '/')
			n--;
		memcpy(part, path, n);
		part[n] = '\0';
		next = scan_open_below(fd < 0 ? top : fd, part, way);
		if (fd >= 0)
			close(fd);
		if (next < 0)
			return -1;
		fd = next;
		path += n + 1;
	}
	last = scan_open_below(fd < 0 ? top : fd, *path ? path : ".", flags);
	if (fd >= 0) {
		int code = errno;

		close(fd);
		errno = code;
	}
	return last;
}

bool scan_push_names(struct scan_walk *w, struct scan_found *f,
		     const char *path, struct scan_text *names, bool flat)
{
	struct scan_job job = {
		.path = strdup(path), .names = *names, .flat = flat};

	lock_scope(&w->lock);
	if (!job.path || !vec_push(&w->stack, job)) {
		free(job.path);
		f->no_memory = true;
		return false;
	}
	*names = (struct scan_text)VEC_EMPTY;
	pthread_cond_signal(&w->changed);
	return true;
}

void scan_push(struct scan_walk *w, struct scan_found *f, const char *path)
{
	struct scan_text none = VEC_EMPTY;

	scan_push_names(w, f, path, &none, false);
}

static bool others_wait(struct scan_walk *w)
{
	lock_scope(&w->lock);
	return w->waiting > w->stack.n;
}

/* Look at one entry of an open directory: add it, and queue it if it is a directory. */
static void scan_look_at_entry(struct scan_walk *w, struct scan_found *f,
			       int dir, const char *name, const char *path,
			       bool flat)
{
	struct stat st;

	if (scan_is_excluded(w->o, path))
		return;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		scan_add_problem(f, path, strerror(errno));
		return;
	}
	if (scan_is_skipped(w->o, dir, name, &st))
		return;
	if (S_ISSOCK(st.st_mode) && !w->o->sockets) {
		f->sockets++;
		return;
	}
	if (S_ISREG(st.st_mode) && index_is_file(dir, name)) {
		f->indexes++;
		return;
	}
	scan_add(f, path, &st);
	if (S_ISDIR(st.st_mode) && !flat &&
	    (!w->o->one_file_system || st.st_dev == w->dev))
		scan_push(w, f, path);
}

static void look_at_names(struct scan_walk *w, struct scan_found *f, int dir,
			  const char *path, const struct scan_text *names,
			  bool flat)
{
	for (size_t at = 0; at < names->n && !f->no_memory && !*w->stop;
	     at += strlen(names->at + at) + 1) {
		cleanup_free char *below = NULL;

		if (asprintf(&below, "%s%s%s", path, *path ? "/" : "",
			     names->at + at) < 0) {
			below = NULL;
			f->no_memory = true;
			break;
		}
		scan_look_at_entry(w, f, dir, names->at + at, below, flat);
	}
}

/* Read the names of a directory in bundles.  A bundle becomes a job if other threads are
 * idle. */
static void scan_read_names(struct scan_walk *w, struct scan_found *f, DIR *d,
			    const char *path)
{
	struct scan_text names = VEC_EMPTY;
	struct dirent *e = NULL;
	unsigned n = 0;
	int code = 0;

	for (;;) {
		bool end = f->no_memory || *w->stop ||
			   (errno = 0, !(e = readdir(d)));

		code = end ? errno : 0;
		if (n == SCAN_BUNDLE || (end && n)) {
			if (end || !others_wait(w) ||
			    !scan_push_names(w, f, path, &names, false))
				look_at_names(w, f, dirfd(d), path, &names,
					      false);
			names.n = 0;
			n = 0;
		}
		if (end)
			break;
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		f->no_memory |=
			!scan_append(&names, e->d_name, strlen(e->d_name) + 1);
		n++;
	}
	if (!f->no_memory && !*w->stop && code)
		scan_add_problem(f, path, strerror(code));
	vec_free(&names);
}

static void scan_run_job(struct scan_walk *w, struct scan_found *f,
			 const struct scan_job *job)
{
	int fd = scan_open(w->top, job->path,
			   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d;

	if (fd < 0) {
		scan_add_problem(f, job->path, strerror(errno));
		return;
	}
	if (job->names.n) {
		look_at_names(w, f, fd, job->path, &job->names, job->flat);
		close(fd);
		return;
	}
	d = fdopendir(fd);
	if (!d) {
		f->no_memory = true;
		close(fd);
		return;
	}
	scan_read_names(w, f, d, job->path);
	closedir(d);
}

/* Take a job, waiting for one if necessary.  Return false if the walk is over. */
static bool scan_take_job(struct scan_walk *w, struct scan_job *job)
{
	lock_scope(&w->lock);

	w->waiting++;
	while (!w->stack.n && w->busy && !w->ended)
		pthread_cond_wait(&w->changed, &w->lock);
	w->waiting--;
	if (!w->stack.n || w->ended) {
		pthread_cond_broadcast(&w->changed);
		return false;
	}
	w->busy++;
	*job = w->stack.at[--w->stack.n];
	return true;
}

static void scan_end_job(struct scan_walk *w, bool no_memory)
{
	lock_scope(&w->lock);
	w->busy--;
	w->ended |= no_memory || *w->stop;
	if (!w->busy || w->ended)
		pthread_cond_broadcast(&w->changed);
}

void *scan_work(void *arg)
{
	struct scan_reader *r = arg;
	struct scan_job job;

	while (scan_take_job(r->w, &job)) {
		scan_run_job(r->w, &r->found, &job);
		free(job.path);
		vec_free(&job.names);
		scan_end_job(r->w, r->found.no_memory);
	}
	return NULL;
}
