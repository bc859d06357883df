/* SPDX-License-Identifier: BSD-2-Clause */
/* All shards get their names at once, or none does. */

/*
 * Half a set of shards is worse than none: globs match it, and a training runs through
 * it.  So shards are made in a temporary directory beside their places (on one file
 * system; its name begins with a dot, which no glob matches).  They are moved when the
 * last one is complete and synced; the index of all of them is moved last.
 *
 * A file that had a name before is linked to "old/" there, then replaced by rename: at
 * each moment the name belongs to the old or to the new file.  Should a rename fail,
 * all old files are put back.
 */
#include "pack/shards/private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define HIDDEN ".tensorfs-"
#define OLD "old"
#define INDEX_SUFFIX ".tfsidx" /* members/index_source.c */
#define NAME_SHOWN 230

/* ---- shards of earlier runs ----------------------------------------------- */

int shards_own_find(struct shards_own *own, const struct shards_name *name,
		    const char *top, struct error *err)
{
	cleanup_free char *a = NULL, *b = NULL;
	size_t n;

	*own = (struct shards_own){.name = name};
	if (!name || !(a = realpath(top, NULL)) ||
	    !(b = realpath(name->dir, NULL)))
		return 0;
	n = strcmp(a, "/") ? strlen(a) : 0;
	if (strncmp(a, b, n) || (b[n] && b[n] != '/'))
		return 0;
	if (asprintf(&own->prefix, "%s%s", b[n] == '/' ? b + n + 1 : "",
		     b[n] == '/' && b[n + 1] ? "/" : "") < 0) {
		own->prefix = NULL;
		return error_no_memory(err, "the path of earlier shards");
	}
	return 0;
}

void shards_own_free(struct shards_own *own)
{
	free(own->prefix);
	own->prefix = NULL;
}

/* Return true if `base` is a temporary directory ".INDEX.tensorfs-XXXXXX". */
static bool place_is_stage(const struct shards_name *name, const char *base)
{
	size_t n = strnlen(name->index, NAME_SHOWN);

	return base[0] == '.' && !strncmp(base + 1, name->index, n) &&
	       !strncmp(base + 1 + n, HIDDEN, strlen(HIDDEN));
}

static bool place_is_member_index(const struct shards_name *name,
				  const char *base)
{
	size_t n = strlen(base), tail = strlen(INDEX_SUFFIX);
	cleanup_free char *of = NULL;
	uint64_t k;

	if (n <= tail || strcmp(base + n - tail, INDEX_SUFFIX))
		return false;
	of = strndup(base, n - tail);
	return of && shards_name_is(name, of, &k);
}

bool shards_own_is(const struct shards_own *own, const char *path)
{
	size_t n = own->prefix ? strlen(own->prefix) : 0;
	const char *base = path + n;
	uint64_t k;

	if (!own->prefix || strncmp(path, own->prefix, n))
		return false;
	if (place_is_stage(own->name, base))
		return true;
	return !strchr(base, '/') && (!strcmp(base, own->name->index) ||
				      shards_name_is(own->name, base, &k) ||
				      place_is_member_index(own->name, base));
}

/* ---- existing files in the way ------------------------------------------- */

struct there {
	uint64_t n; /* number of names in the way */
	char first[NAME_MAX + 1];
};

/* Return true if a file is in the way of `n` shards: it is the index or a shard; with
 * `replace`, only a shard whose number is not among the new ones. */
static bool place_is_in_the_way(const struct shards_place *p, const char *base,
				uint64_t n, bool replace)
{
	uint64_t k;

	if (shards_name_is(p->name, base, &k))
		return !replace || k >= n;
	return !replace && !strcmp(base, p->name->index);
}

/* Refuse a shard or index that cannot be replaced because it is not a regular file. */
static int place_check_kind(const struct shards_place *p, const char *base,
			    struct error *err)
{
	struct stat st;
	uint64_t k;

	if (strcmp(base, p->name->index) && !shards_name_is(p->name, base, &k))
		return 0;
	if (fstatat(p->dir, base, &st, 0) < 0 || S_ISREG(st.st_mode))
		return 0;
	return error_set(err, S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL,
			 "'%s/%s' is %s", p->name->dir, base,
			 S_ISDIR(st.st_mode) ? "a directory"
					     : "not a regular file");
}

static int place_list_in_the_way(struct shards_place *p, uint64_t n,
				 bool replace, struct there *t,
				 struct error *err)
{
	int fd = openat(p->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!d) {
		r = error_errno(err, -errno, "cannot list '%s'", p->name->dir);
		if (fd >= 0)
			close(fd);
		return r;
	}
	while (r == 0 && (e = readdir(d))) {
		r = place_check_kind(p, e->d_name, err);
		if (r < 0 || !place_is_in_the_way(p, e->d_name, n, replace))
			continue;
		if (!t->n++ || strcmp(e->d_name, t->first) < 0)
			snprintf(t->first, sizeof t->first, "%s", e->d_name);
	}
	closedir(d);
	return r;
}

static int place_check_free(struct shards_place *p, uint64_t n, bool replace,
			    struct error *err)
{
	struct there t = {0};
	char more[64] = "";
	int r = place_list_in_the_way(p, n, replace, &t, err);

	if (r < 0 || !t.n)
		return r;
	if (t.n > 1)
		snprintf(more, sizeof more, " (and %" PRIu64 " more)", t.n - 1);
	if (!replace)
		return error_set(
			err, -EEXIST,
			"'%s/%s'%s already exists; use --force to replace it",
			p->name->dir, t.first, more);
	return error_set(err, -EEXIST,
			 "'%s/%s'%s would remain beside the %" PRIu64
			 " new shards and be read with them; remove it first",
			 p->name->dir, t.first, more, n);
}

/* ---- the place ----------------------------------------------------------- */

static int place_make_stage(struct shards_place *p, struct error *err)
{
	cleanup_free char *path = NULL;

	if (asprintf(&path, "%s/.%.*s" HIDDEN "XXXXXX", p->name->dir,
		     NAME_SHOWN, p->name->index) < 0) {
		path = NULL;
		return error_no_memory(err,
				       "the name of the temporary directory");
	}
	if (!mkdtemp(path))
		return error_errno(err, -errno, "cannot write in '%s'",
				   p->name->dir);
	p->hidden = strdup(strrchr(path, '/') + 1);
	p->stage = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (p->stage < 0 || !p->hidden) {
		int r = p->hidden ? error_errno(err, -errno, "cannot open '%s'",
						path)
				  : error_no_memory(err, "the name of the "
							 "temporary directory");

		rmdir(path);
		return r;
	}
	return 0;
}

int shards_place_open(struct shards_place *p, const struct shards_name *name,
		      uint64_t n, bool replace, struct error *err)
{
	int r;

	*p = (struct shards_place){.name = name, .dir = -1, .stage = -1};
	p->dir = open(name->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->dir < 0)
		return error_errno(err, -errno, "cannot open directory '%s'",
				   name->dir);
	r = place_check_free(p, n, replace, err);
	if (r == 0)
		r = place_make_stage(p, err);
	if (r < 0)
		shards_place_close(p);
	return r;
}

int shards_place_check(const struct shards_name *name, bool replace,
		       struct error *err)
{
	struct shards_place p = {.name = name, .stage = -1};
	int r;

	p.dir = open(name->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p.dir < 0)
		return error_errno(err, -errno, "cannot open directory '%s'",
				   name->dir);
	r = place_check_free(&p, UINT64_MAX, replace, err);
	if (r == 0 && faccessat(p.dir, ".", W_OK | X_OK, AT_EACCESS) < 0)
		r = error_errno(err, -errno, "cannot write in '%s'", name->dir);
	close(p.dir);
	return r;
}

char *shards_place_path(const struct shards_place *p, const char *base)
{
	char *path;

	return asprintf(&path, "%s/%s/%s", p->name->dir, p->hidden, base) < 0
		       ? NULL
		       : path;
}

void shards_place_translate(const struct shards_place *p, struct error *err)
{
	char *at = p->hidden ? strstr(err->text, p->hidden) : NULL;
	size_t n = at ? strlen(p->hidden) : 0;

	if (at && at[n] == '/')
		memmove(at, at + n + 1, strlen(at + n + 1) + 1);
}

/* ---- names --------------------------------------------------------------- */

struct names {
	vec(char *) list;
};

static void names_free(struct names *names)
{
	for (size_t i = 0; i < names->list.n; i++)
		free(names->list.at[i]);
	vec_free(&names->list);
}

static int compare_listed_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* List the names in a directory, without "old". */
static int place_list_names(int at, struct names *out, struct error *err)
{
	int fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	int r = 0;

	if (!d) {
		r = error_errno(err, -errno, "cannot list the new shards");
		if (fd >= 0)
			close(fd);
		return r;
	}
	while (r == 0 && (e = readdir(d))) {
		char *name;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
		    !strcmp(e->d_name, OLD))
			continue;
		name = strdup(e->d_name);
		if (!name || !vec_push(&out->list, name)) {
			free(name);
			r = error_no_memory(err, "the names of the new shards");
		}
	}
	closedir(d);
	if (out->list.n)
		qsort(out->list.at, out->list.n, sizeof *out->list.at,
		      compare_listed_names);
	return r;
}

/* The old file of that name, if there is one, gets another in `old`. */
static int keep_old(const struct shards_place *p, int old, const char *name)
{
	struct stat st;

	if (fstatat(p->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISREG(st.st_mode))
		fchmodat(p->stage, name, st.st_mode & 07777, 0);
	if (linkat(p->dir, name, old, name, 0) == 0)
		return 0;
	/* No hard links here: without a name for a moment. */
	return renameat(p->dir, name, old, name) < 0 ? -errno : 0;
}

static int place_publish_one(const struct shards_place *p, int old,
			     const char *name, struct error *err)
{
	int r = keep_old(p, old, name);

	if (r == 0 && renameat(p->stage, name, p->dir, name) < 0)
		r = -errno;
	return r < 0 ? error_errno(err, r, "cannot create '%s/%s'",
				   p->name->dir, name)
		     : 0;
}

/* Put back what the first `n` names had before. */
static void place_put_back(const struct shards_place *p, int old,
			   const struct names *names, size_t n)
{
	while (n--) {
		const char *name = names->list.at[n];

		if (renameat(old, name, p->dir, name) < 0 && errno == ENOENT)
			unlinkat(p->dir, name, 0);
	}
}

static void place_index_last(const struct shards_place *p, struct names *names)
{
	size_t n = names->list.n;

	for (size_t i = 0; i + 1 < n; i++)
		if (!strcmp(names->list.at[i], p->name->index)) {
			char *index = names->list.at[i];

			memmove(&names->list.at[i], &names->list.at[i + 1],
				(n - i - 1) * sizeof index);
			names->list.at[n - 1] = index;
		}
}

static int place_publish_all(const struct shards_place *p, int old,
			     const struct names *names, struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < names->list.n; i++) {
		r = place_publish_one(p, old, names->list.at[i], err);
		if (r == 0)
			continue;
		/* The name that failed may have lost its old file. */
		if (faccessat(p->dir, names->list.at[i], F_OK,
			      AT_SYMLINK_NOFOLLOW) < 0)
			renameat(old, names->list.at[i], p->dir,
				 names->list.at[i]);
		place_put_back(p, old, names, i);
		return r;
	}
	if (fsync(p->dir) < 0 && errno != EINVAL)
		r = error_errno(err, -errno, "cannot sync '%s'", p->name->dir);
	return r;
}

int shards_place_publish(struct shards_place *p, struct error *err)
{
	struct names names = {VEC_EMPTY};
	cleanup_close int old = -1;
	int r;

	if (mkdirat(p->stage, OLD, 0700) < 0 ||
	    (old = openat(p->stage, OLD,
			  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
		return error_errno(err, -errno, "cannot write in '%s'",
				   p->name->dir);
	r = place_list_names(p->stage, &names, err);
	if (r == 0) {
		place_index_last(p, &names);
		r = place_publish_all(p, old, &names, err);
	}
	names_free(&names);
	return r;
}

static void place_remove_files(int at)
{
	struct names names = {VEC_EMPTY};

	place_list_names(at, &names, NULL);
	for (size_t i = 0; i < names.list.n; i++)
		unlinkat(at, names.list.at[i], 0);
	names_free(&names);
}

void shards_place_close(struct shards_place *p)
{
	if (p->stage >= 0) {
		int old = openat(p->stage, OLD,
				 O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (old >= 0) {
			place_remove_files(old);
			close(old);
			unlinkat(p->stage, OLD, AT_REMOVEDIR);
		}
		place_remove_files(p->stage);
		unlinkat(p->dir, p->hidden, AT_REMOVEDIR);
		close(p->stage);
	}
	if (p->dir >= 0)
		close(p->dir);
	free(p->hidden);
	p->hidden = NULL;
	p->dir = p->stage = -1;
}
