/* SPDX-License-Identifier: BSD-2-Clause */
/* List a directory that is to be packed: every entry, in the order of the pack. */
#include "pack/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "pack/scan_private.h"

#define JOBS_MAX 256

/* ---- where it begins ----------------------------------------------------- */

bool scan_clean(char *path)
{
	char *to = path;

	if (*path == '/')
		return false;
	for (const char *p = path; *p;) {
		size_t n = strcspn(p, "/");

		if (n == 2 && !memcmp(p, "..", 2))
			return false;
		if (n && !(n == 1 && *p == '.')) {
			if (to != path)
				*to++ = '/';
			memmove(to, p, n);
			to += n;
		}
		p += n;
		p += strspn(p, "/");
	}
	*to = '\0';
	return true;
}

/* The directories above listed paths; the last one is remembered. */
struct above {
	char *path;
	bool good;
};

static bool add_above(struct scan_walk *w, struct scan_found *f,
		      const char *path)
{
	for (const char *at = path;; at++) {
		cleanup_free char *dir = NULL;
		struct stat st;

		at = strchrnul(at, '/');
		dir = strndup(path, (size_t)(at - path));
		if (!dir) {
			f->no_memory = true;
			return false;
		}
		if (fstatat(w->top, dir, &st, AT_SYMLINK_NOFOLLOW) < 0) {
			scan_add_problem(f, dir, strerror(errno));
			return false;
		}
		if (!S_ISDIR(st.st_mode)) {
			scan_add_problem(f, dir,
					 "it is not a directory, but a path "
					 "below it is listed");
			return false;
		}
		scan_add(f, dir, &st);
		if (!*at)
			return true;
	}
}

/* Add the parent directories of a listed path.  Return false if one of them is missing,
 * is not a directory, or there is no memory. */
static bool scan_add_parents(struct scan_walk *w, struct scan_found *f,
			     struct above *above, const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;

	if (!slash)
		return true;
	if (above->path && strlen(above->path) == n &&
	    !memcmp(above->path, path, n))
		return above->good;
	free(above->path);
	above->path = strndup(path, n);
	above->good = above->path && add_above(w, f, above->path);
	f->no_memory |= !above->path;
	return above->good;
}

/* ---- listed paths (--files-from) --------------------------------------------- */

/* Bundles of listed paths, which all threads work on. */
struct bundle {
	struct scan_text names;
	unsigned n;
	bool flat; /* directories among them are read anyway */
};

static void bundle_push(struct scan_walk *w, struct scan_found *f,
			struct bundle *b)
{
	if (b->names.n)
		scan_push_names(w, f, "", &b->names, b->flat);
	b->n = 0;
}

static void bundle_add(struct scan_walk *w, struct scan_found *f,
		       struct bundle *b, const char *path)
{
	f->no_memory |= !scan_append(&b->names, path, strlen(path) + 1);
	if (++b->n == SCAN_BUNDLE)
		bundle_push(w, f, b);
}

struct listed {
	vec(char *) list;
	struct above above;
	const char *all; /* the directory that is read anyway; NULL: none */
	struct bundle deep, flat;
};

static bool scan_is_directory(const struct scan_walk *w, const char *path)
{
	struct stat st;

	return fstatat(w->top, path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISDIR(st.st_mode);
}

static void take_listed(struct scan_walk *w, struct scan_found *f,
			struct listed *l, size_t i)
{
	const char *path = l->list.at[i];
	bool flat = l->all && scan_is_below(path, l->all);

	if (!*path) {
		scan_push(w, f, "");
		l->all = path;
	} else if (!scan_is_excluded(w->o, path) &&
		   scan_add_parents(w, f, &l->above, path)) {
		if (!flat && i + 1 < l->list.n &&
		    scan_is_below(l->list.at[i + 1], path) &&
		    scan_is_directory(w, path))
			l->all = path;
		bundle_add(w, f, flat ? &l->flat : &l->deep, path);
	}
}

static int by_listed_path(const void *a, const void *b)
{
	return scan_compare_paths(*(char *const *)a, *(char *const *)b);
}

/* Paths are sorted, so that their parent directories are looked at once, and a directory
 * is read once even if everything in it is listed too, as in the output of find. */
static void begin_listed(struct scan_walk *w, struct scan_found *f)
{
	struct listed l = {.list = VEC_EMPTY, .flat.flat = true};

	for (size_t i = 0; w->o->only[i] && !f->no_memory; i++) {
		char *path = strdup(w->o->only[i]);

		if (path && !scan_clean(path)) {
			scan_add_problem(f, path,
					 "the path leads out of the directory");
			free(path);
		} else if (!path || !vec_push(&l.list, path)) {
			free(path);
			f->no_memory = true;
		}
	}
	if (l.list.n)
		qsort(l.list.at, l.list.n, sizeof *l.list.at, by_listed_path);
	for (size_t i = 0; i < l.list.n && !f->no_memory && !*w->stop; i++)
		take_listed(w, f, &l, i);
	bundle_push(w, f, &l.deep);
	bundle_push(w, f, &l.flat);
	vec_free(&l.deep.names);
	vec_free(&l.flat.names);
	for (size_t i = 0; i < l.list.n; i++)
		free(l.list.at[i]);
	vec_free(&l.list);
	free(l.above.path);
}

static void scan_begin(struct scan_walk *w, struct scan_found *f)
{
	if (w->o->only)
		begin_listed(w, f);
	else
		scan_push(w, f, "");
}

/* ---- the whole scan ------------------------------------------------------ */

/* Append what one thread has found to the scan.  Return false if there is no memory. */
static bool scan_join_found(struct scan *s, struct scan_found *f)
{
	uint64_t base = s->text.n;
	bool ok = scan_append(&s->text, f->text.at, f->text.n) &&
		  scan_append(&s->problems, f->problems.at, f->problems.n);

	for (size_t i = 0; i < f->list.n && ok; i++) {
		f->list.at[i].path += base;
		ok = vec_push(&s->list, f->list.at[i]);
	}
	s->n_problems += f->n_problems;
	s->sockets += f->sockets;
	s->indexes += f->indexes;
	return ok;
}

static void scan_found_free(struct scan_found *f)
{
	vec_free(&f->list);
	vec_free(&f->text);
	vec_free(&f->problems);
}

/* Walk with `n` threads, this one included; r[i] receives what thread i has found. */
static int scan_walk_all(struct scan_walk *w, struct scan_reader *r, unsigned n,
			 struct error *err)
{
	unsigned started = 0;
	bool no_memory = false;

	scan_begin(w, &r[0].found);
	for (; started + 1 < n; started++)
		if (pthread_create(&r[started + 1].thread, NULL, scan_work,
				   &r[started + 1]))
			break; /* fewer threads are enough */
	scan_work(&r[0]);
	for (unsigned i = 0; i < started; i++)
		pthread_join(r[i + 1].thread, NULL);
	for (size_t i = 0; i < w->stack.n; i++) {
		free(w->stack.at[i].path);
		vec_free(&w->stack.at[i].names);
	}
	vec_free(&w->stack);
	for (unsigned i = 0; i < n; i++)
		no_memory |= r[i].found.no_memory;
	if (no_memory)
		return error_no_memory(err, "the list of files");
	return *w->stop ? error_set(err, -EINTR, "interrupted") : 0;
}

static int open_top(struct scan_walk *w, struct scan *s, const char *top,
		    struct error *err)
{
	struct stat st;

	w->top = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (w->top < 0 || fstat(w->top, &st) < 0)
		return error_errno(err, -errno, "'%s'", top);
	w->dev = st.st_dev;
	s->top = scan_entry_of(&st);
	return 0;
}

int scan_new(struct scan **out, const char *top, const struct scan_options *o,
	     const _Atomic int *stop, struct error *err)
{
	unsigned n = o->jobs < 1 ? 1 : o->jobs > JOBS_MAX ? JOBS_MAX : o->jobs;
	struct scan_walk w = {.o = o, .stop = stop, .top = -1};
	struct scan_reader *readers = calloc(n, sizeof *readers);
	struct scan *s = calloc(1, sizeof *s);
	int r = readers && s ? open_top(&w, s, top, err)
			     : error_no_memory(err, "the list of files");

	pthread_mutex_init(&w.lock, NULL);
	pthread_cond_init(&w.changed, NULL);
	for (unsigned i = 0; readers && i < n; i++)
		readers[i].w = &w;
	if (r == 0)
		r = scan_walk_all(&w, readers, n, err);
	for (unsigned i = 0; readers && i < n; i++) {
		if (r == 0 && !scan_join_found(s, &readers[i].found))
			r = error_no_memory(err, "the list of files");
		scan_found_free(&readers[i].found);
	}
	if (r == 0)
		r = scan_order(s, o, err);
	pthread_mutex_destroy(&w.lock);
	pthread_cond_destroy(&w.changed);
	if (w.top >= 0)
		close(w.top);
	free(readers);
	if (r < 0) {
		scan_free(s);
		s = NULL;
	}
	*out = s;
	return r;
}

void scan_free(struct scan *s)
{
	if (!s)
		return;
	vec_free(&s->list);
	vec_free(&s->text);
	vec_free(&s->problems);
	free(s);
}
