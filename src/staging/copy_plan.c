/* SPDX-License-Identifier: BSD-2-Clause */
/* Find what there is to copy: walk the whole tree, or the paths that were asked for. */

/*
 * The plan keeps a few dozen bytes for each file, and no name: the name is looked up in
 * the tree again when the file is made.  That is less than the kernel keeps for each
 * file on a tmpfs.  A directory with more entries than `most` is refused before it is
 * walked: a few bytes in the header of a file are enough to declare a shape with
 * billions of samples.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "staging/copy_private.h"
#include "tree/graft.h"
#include "views/view.h"

#define DEPTH_MAX 2000u /* levels of directories */
/* *stop is looked at once for this many entries. */
#define STOP_CHECK_INTERVAL 4096

struct walk {
	struct copy_plan *p;
	const struct copy_options *o;
	const _Atomic int *stop;
	uint64_t seen;        /* number of entries so far */
	vec(uint32_t) expand; /* directories whose entries are wanted */
	struct plan map;
	struct error *err;
};

int copy_fail(struct fs *fs, uint64_t ino, int code, struct error *err)
{
	char why[8], path[400];

	if (tree_path(fs_tree(fs), ino, path, sizeof path) < 0)
		strcpy(path, "a file");
	/* If fs knows the reason, it has logged it. */
	fs_last_error(fs, ino, why, sizeof why);
	if (!why[0])
		return error_errno(err, code, "cannot read %s", path);
	return error_set(err, code, "%s cannot be read, so nothing is staged",
			 path);
}

/* Append a name to `text` and set *at to its offset.  Return false if there is no
 * memory. */
static bool push_name(struct copy_plan *p, const char *name, uint64_t *at)
{
	*at = p->text.n;
	do
		if (!vec_push(&p->text, *name))
			return false;
	while (*name++);
	return true;
}

uint64_t copy_plan_entries(const struct copy_plan *p)
{
	uint64_t again = 0;

	for (size_t i = 0; i < p->names.n; i++)
		again += (p->names.at[i].flags & COPY_AGAIN) != 0;
	return p->dirs.n + p->files.n + p->links.n + again;
}

/* Called for each entry before it is added.  Return 0, -EINTR or -ENOSPC. */
static int walk_check_limits(struct walk *w)
{
	const struct copy_plan *p = w->p;

	if (++w->seen % STOP_CHECK_INTERVAL == 0 && *w->stop)
		return error_set(w->err, -EINTR, "interrupted");
	if (p->dirs.n + p->files.n + p->links.n + p->names.n >= w->o->most ||
	    p->dirs.n >= UINT32_MAX)
		return error_set(
			w->err, -ENOSPC,
			"there are more than %llu files to stage, which is "
			"the limit here: stage less (SOURCE:PATH)",
			(unsigned long long)w->o->most);
	return 0;
}

/* ---- entries ------------------------------------------------------------- */

static int add_dir(struct walk *w, uint32_t parent, uint64_t ino,
		   const char *name, bool expand, uint32_t *out)
{
	struct copy_dir d = {.ino = ino, .parent = parent};
	int r = walk_check_limits(w);

	if (r < 0)
		return r;
	if (w->p->dirs.n)
		d.depth = w->p->dirs.at[parent].depth + 1;
	if (d.depth > DEPTH_MAX)
		return error_set(
			w->err, -ENAMETOOLONG,
			"directories more than %u levels deep cannot be "
			"staged",
			DEPTH_MAX);
	*out = (uint32_t)w->p->dirs.n;
	if (!push_name(w->p, name, &d.name) || !vec_push(&w->p->dirs, d) ||
	    (expand && !vec_push(&w->expand, *out)))
		return error_no_memory(w->err, "the list of files to copy");
	return 0;
}

/* Set where the file's first byte is; false if `x` is stored nowhere, such as a hole. */
static bool locate_extent(const struct extent *x, struct copy_file *f)
{
	if (x->kind == EXTENT_FILE) {
		f->set = x->u.file.file | UINT32_C(1) << 31;
		f->index = x->u.file.pos;
	} else if (x->kind == EXTENT_CHUNK) {
		f->set = (uint32_t)x->u.chunk.set->id & 0x7fffffff;
		f->index = x->u.chunk.index;
		f->skip = (uint32_t)min_u64(x->u.chunk.skip, UINT32_MAX);
	}
	return x->kind == EXTENT_FILE || x->kind == EXTENT_CHUNK;
}

/* Set where the first byte of a file is, if that is known without opening a file. */
static void locate_first_byte(struct walk *w, const struct node *n,
			      struct copy_file *f)
{
	const struct files_ops *ops = n->files->ops;
	uint64_t off = 0;
	bool found = false;

	if (tensor_of_files(n->files)) {
		f->flags |= COPY_TENSOR;
		f->set = UINT32_MAX;
		f->index = w->seen;
		return;
	}
	while (off < f->size && !found) {
		plan_init(&w->map, f->size - off);
		if (ops->map(n->files, n->node, off, &w->map, NULL) < 0 ||
		    !w->map.have)
			break; /* reading the file will report the error */
		for (unsigned i = 0; i < w->map.n && !found; i++)
			found = locate_extent(&w->map.ext[i], f);
		off += w->map.have;
	}
}

static int add_regular(struct walk *w, const struct node *n,
		       struct copy_file *f)
{
	struct copy_plan *p = w->p;
	struct entry e;
	int r = fs_getattr(p->fs, n->ino, &e);
	bool ok;

	if (r == -ENODATA && w->o->skip_missing) {
		p->missing++;
		return 0;
	}
	if (r < 0)
		return copy_fail(p->fs, n->ino, r, w->err);
	f->size = (uint64_t)e.st.st_size;
	locate_first_byte(w, n, f);
	if ((uint64_t)e.st.st_blocks < div_up(f->size, 512))
		f->flags |= COPY_HOLES;
	if (e.st.st_mode & S_IXUSR)
		f->flags |= COPY_EXEC;
	if (e.st.st_nlink > 1) {
		ok = vec_push(&p->names, *f);
	} else {
		ok = vec_push(&p->files, *f);
		if (add_overflows(p->bytes, f->size, &p->bytes) ||
		    add_overflows(p->space, copy_space(p->fs, f), &p->space))
			return error_set(
				w->err, -ENOSPC,
				"the files to stage have 2^64 bytes or more in "
				"total: stage less (SOURCE:PATH)");
	}
	return ok ? 0 : error_no_memory(w->err, "the list of files to copy");
}

static int add_other(struct walk *w, const struct node *n, uint32_t dir,
		     uint64_t entry, uint32_t flags)
{
	struct copy_file f = {
		.ino = n->ino, .entry = entry, .dir = dir, .flags = flags};
	int r = walk_check_limits(w);

	if (r < 0)
		return r;
	switch (n->type) {
	case S_IFREG:
		return n->files ? add_regular(w, n, &f) : 0;
	case S_IFLNK:
		f.flags |= COPY_LINK;
		return vec_push(&w->p->links, f)
			       ? 0
			       : error_no_memory(w->err,
						 "the list of files to copy");
	default:
		w->p->left_out++;
		return 0;
	}
}

/* ---- directories --------------------------------------------------------- */

static bool is_array_file(const char *name)
{
	return !strcmp(name, "array.npy") || !strcmp(name, "array.bin") ||
	       !strcmp(name, "array.txt");
}

/* Return whether `ino` is the directory of a tensor with samples whose array files the
 * user does not want. */
static bool samples_are_enough(struct walk *w, uint64_t ino)
{
	struct tree *t = fs_tree(w->p->fs);
	struct node n;

	return w->o->samples_only && tree_node(t, ino, &n) == 0 && n.files &&
	       !n.node && tensor_of_files(n.files) &&
	       tree_lookup(t, ino, "samples", &n) == 0;
}

/* The name of a directory for sentences. */
static const char *shown_dir(const struct copy_plan *p, uint32_t dir)
{
	return dir ? p->text.at + p->dirs.at[dir].name : "/";
}

static int expand_dir(struct walk *w, uint32_t dir)
{
	struct tree *t = fs_tree(w->p->fs);
	uint64_t ino = w->p->dirs.at[dir].ino;
	char name[FILES_NAME_MAX + 1];
	bool samples = samples_are_enough(w, ino);
	struct node n;
	uint32_t sub;
	int r = 0;

	if (tree_entry_count(t, ino) > w->o->most)
		return error_set(
			w->err, -ENOSPC,
			"directory '%s' has %llu entries, and the limit "
			"here is %llu files: stage less (SOURCE:PATH)",
			shown_dir(w->p, dir),
			(unsigned long long)tree_entry_count(t, ino),
			(unsigned long long)w->o->most);
	for (uint64_t i = 0; r == 0; i++) {
		r = fs_next_entry(w->p->fs, ino, &i, &n, name);
		if (r < 0)
			break;
		if (n.type == S_IFDIR)
			r = add_dir(w, dir, n.ino, name, true, &sub);
		else if (!samples || !is_array_file(name))
			r = add_other(w, &n, dir, i, 0);
		if (r < 0)
			return r;
	}
	/* The directory may be a source inside another one that cannot be opened. */
	if (tree_graft_failure(t, ino, w->err))
		return w->err->code;
	return r == -ENOENT
		       ? 0
		       : error_errno(w->err, r, "cannot read directory '%s'",
				     shown_dir(w->p, dir));
}

/* ---- paths --------------------------------------------------------------- */

/* Sorts "a/b" before "a/b/c", and that before "a/b-c". */
static int by_path(const void *a, const void *b)
{
	const unsigned char *x = *(unsigned char *const *)a;
	const unsigned char *y = *(unsigned char *const *)b;

	while (*x && *x == *y)
		x++, y++;
	return (*x == '/' ? 1
		: *x      ? *x + 1
			  : 0) -
	       (*y == '/' ? 1
		: *y      ? *y + 1
			  : 0);
}

/* Set *out to a normalized copy that the caller frees: "//a/./b/" becomes "a/b". */
static int clean_path(const char *path, char **out, struct error *err)
{
	const char *whole = path;
	char *to = malloc(strlen(path) + 1), *at = to;

	if (!to)
		return error_no_memory(err, "the list of files to copy");
	while (*path) {
		size_t n = strcspn(path, "/");

		if (n == 2 && !memcmp(path, "..", 2)) {
			free(to);
			return error_set(err, -EINVAL,
					 "'%s' cannot be staged: a path must "
					 "not contain '..'",
					 whole);
		}
		if (n && !(n == 1 && *path == '.')) {
			if (at > to)
				*at++ = '/';
			memcpy(at, path, n);
			at += n;
		}
		path += n + (path[n] == '/');
	}
	*at = '\0';
	*out = to;
	return 0;
}

/* Return whether `path` is `dir` or lies below it. */
static bool copy_path_is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return !n || (!strncmp(path, dir, n) && (!path[n] || path[n] == '/'));
}

/* Enter the directory of the copy whose path is the first n bytes of `path`: the one that
 * the path `before` went through, or a new one.  Its name begins at `from`; its parent is
 * *dir, which is set to it.  Return 0 or -errno. */
static int add_on_the_way(struct walk *w, char *path, size_t from, size_t n,
			  const char *before, uint32_t *dir)
{
	struct node node;
	uint32_t at;
	int r;

	/* `before` went through it, so the newest directory is it or below it. */
	if (!strncmp(path, before, n) && before[n] == '/') {
		for (at = (uint32_t)w->p->dirs.n - 1;
		     w->p->dirs.at[at].parent != *dir;)
			at = w->p->dirs.at[at].parent;
		*dir = at;
		return 0;
	}
	path[n] = '\0';
	r = tree_walk(fs_tree(w->p->fs), path, &node, w->err);
	if (r == 0 && node.type != S_IFDIR)
		r = error_set(w->err, -ENOTDIR, "'%s' is not a directory",
			      path);
	if (r == 0)
		r = add_dir(w, *dir, node.ino, path + from, false, &at);
	path[n] = '/';
	if (r == 0)
		*dir = at;
	return r;
}

static int add_path(struct walk *w, char *path, const char *before)
{
	size_t from = 0;
	struct node node;
	uint64_t name;
	uint32_t dir = 0;
	char *slash;
	int r = 0;

	while (r == 0 && (slash = strchr(path + from, '/'))) {
		r = add_on_the_way(w, path, from, (size_t)(slash - path),
				   before, &dir);
		from = (size_t)(slash - path) + 1;
	}
	if (r == 0)
		r = tree_walk(fs_tree(w->p->fs), path, &node, w->err);
	if (r < 0)
		return r;
	if (node.type == S_IFDIR && node.files && node.files->ops->endless &&
	    node.files->ops->endless(node.files, node.node))
		return error_set(
			w->err, -EINVAL,
			"'%s' has no end: name what to stage of it, such as "
			"slice/0:10.npy or epochs/0/rank-0-of-2",
			path);
	if (node.type == S_IFDIR)
		return add_dir(w, dir, node.ino, path + from, true, &dir);
	if (!push_name(w->p, path + from, &name))
		return error_no_memory(w->err, "the list of files to copy");
	return add_other(w, &node, dir, name, COPY_NAMED);
}

static int add_paths(struct walk *w, char *const *paths, size_t n)
{
	char **clean = calloc(n + 1, sizeof *clean);
	const char *before = NULL;
	uint32_t root;
	int r = clean ? 0
		      : error_no_memory(w->err, "the list of files to copy");

	for (size_t i = 0; r == 0 && i < n; i++)
		r = clean_path(paths[i], &clean[i], w->err);
	if (r == 0) {
		qsort(clean, n, sizeof *clean, by_path);
		r = add_dir(w, 0, TREE_ROOT, "", !*clean[0], &root);
	}
	for (size_t i = *clean && !*clean[0]; r == 0 && i < n; i++) {
		if (!*clean[0] ||
		    (before && copy_path_is_below(clean[i], before)))
			continue;
		r = add_path(w, clean[i], before ? before : "");
		before = clean[i];
	}
	for (size_t i = 0; clean && i < n; i++)
		free(clean[i]);
	free(clean);
	return r;
}

/* ---- hard links ---------------------------------------------------------- */

static int by_inode(const void *a, const void *b)
{
	const struct copy_file *x = a, *y = b;

	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	if (x->dir != y->dir)
		return x->dir < y->dir ? -1 : 1;
	return (x->entry > y->entry) - (x->entry < y->entry);
}

/* Add the first name of each inode to `files`; mark the others, which become hard
 * links. */
static int sort_names(struct walk *w)
{
	struct copy_plan *p = w->p;

	if (p->names.n)
		qsort(p->names.at, p->names.n, sizeof *p->names.at, by_inode);
	for (size_t i = 0; i < p->names.n; i++) {
		struct copy_file *f = &p->names.at[i];

		if (i && f[-1].ino == f->ino) {
			f->flags |= COPY_AGAIN;
			continue;
		}
		if (!vec_push(&p->files, *f))
			return error_no_memory(w->err,
					       "the list of files to copy");
		p->bytes += f->size;
		p->space += copy_space(p->fs, f);
	}
	return 0;
}

/* ---- all of it ----------------------------------------------------------- */

int copy_plan_new(struct copy_plan **out, struct fs *fs, char *const *paths,
		  size_t n, const struct copy_options *o,
		  const _Atomic int *stop, struct error *err)
{
	struct walk w = {.o = o, .stop = stop, .err = err};
	int r;

	*out = NULL;
	w.p = calloc(1, sizeof *w.p);
	if (!w.p)
		return error_no_memory(err, "the list of files to copy");
	w.p->fs = fs;
	r = add_paths(&w, paths, n);
	for (size_t i = 0; r == 0 && i < w.expand.n; i++)
		r = expand_dir(&w, w.expand.at[i]);
	vec_free(&w.expand);
	if (r == 0)
		r = sort_names(&w);
	if (r == 0)
		r = copy_order(w.p, o, stop, err);
	if (r < 0) {
		copy_plan_free(w.p);
		return r;
	}
	*out = w.p;
	return 0;
}

void copy_plan_free(struct copy_plan *p)
{
	if (!p)
		return;
	vec_free(&p->dirs);
	vec_free(&p->files);
	vec_free(&p->links);
	vec_free(&p->names);
	vec_free(&p->groups);
	vec_free(&p->text);
	free(p);
}
