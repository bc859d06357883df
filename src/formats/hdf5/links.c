/* SPDX-License-Identifier: BSD-2-Clause */
/* Links of HDF5 groups that become symlinks: cycles, repetitions, dangling. */
#include "formats/hdf5/walk.h"

#include <errno.h>
#include <limits.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "extent/file.h"

/* Missing targets that a warning names. */
#define MISSING_SHOWN 3

int hdf5_walk_add_cycle(struct walk *w, uint32_t dir, const char *name,
			unsigned up)
{
	char target[3 * DEPTH_MAX + 2] = ".";

	for (unsigned i = 0; i < up; i++)
		strcpy(target + 3 * i, i + 1 < up ? "../" : "..");
	return tree_add_link(w->b, dir, name, target, w->s->mtime) == UINT32_MAX
		       ? error_no_memory(w->err, "a symlink to a group")
		       : 0;
}

static int compare_visited(const void *a, const void *b)
{
	const struct visited *x = a, *y = b;

	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static void free_visited(void *p)
{
	free(((struct visited *)p)->path);
	free(p);
}

int hdf5_walk_visit(struct walk *w, uint32_t file, haddr_t addr,
		    const char *path, const char **before)
{
	struct visited *v = malloc(sizeof *v), **found;

	*before = NULL;
	if (!v)
		return error_no_memory(w->err, "the table of visited groups");
	v->file = file;
	v->addr = addr;
	v->path = strdup(path);
	found = v->path ? tsearch(v, &w->visited, compare_visited) : NULL;
	if (found && *found == v)
		return 0;
	free_visited(v);
	if (!found)
		return error_no_memory(w->err, "the table of visited groups");
	*before = (*found)->path;
	return 0;
}

int hdf5_walk_add_revisit(struct walk *w, uint32_t dir, const char *name,
			  const char *path)
{
	cleanup_free char *target = malloc(3 * DEPTH_MAX + strlen(path) + 1);
	size_t used = 0;

	if (!target)
		return error_no_memory(w->err, "the target of a symlink");
	for (unsigned i = 1; i < w->depth; i++)
		used += (size_t)sprintf(target + used, "../");
	strcpy(target + used, path + 1);
	return tree_add_link(w->b, dir, name, target, w->s->mtime) == UINT32_MAX
		       ? error_no_memory(w->err, "a symlink to a group")
		       : 0;
}

/* Write an HDF5 path as the target of a symlink. In HDF5 ".." is an ordinary name,
 * so it is written as a member of that name is shown; else the symlink could lead
 * out of the mount. `out` has room for three times the length. */
static void write_symlink_target(const char *path, char *out)
{
	while (*path) {
		size_t n = strcspn(path, "/");
		bool up = n == 2 && path[0] == '.' && path[1] == '.';

		memcpy(out, up ? "%2E%2E" : path, up ? 6 : n);
		out += up ? 6 : n;
		path += n;
		while (*path == '/')
			*out++ = *path++;
	}
	*out = '\0';
}

/* Links out of the file's root are shown from the root of that file's tree,
 * which for the main file is that of the mount. */
int hdf5_walk_add_dangling(struct walk *w, const struct group *g,
			   const char *name)
{
	char target[PATH_MAX] = "", shown[3 * PATH_MAX + 3 * DEPTH_MAX] = "";
	size_t used = 0;

	if (hdf5_walk_note_link(w, g, name, NULL) < 0)
		return -ENOMEM;
	if (H5Lget_val(g->id, name, target, sizeof target, H5P_DEFAULT) < 0)
		return 0;
	target[sizeof target - 1] = 0;
	if (target[0] == '/')
		for (unsigned i = 1; i < w->depth; i++)
			used += (size_t)sprintf(shown + used, "../");
	write_symlink_target(target[0] == '/' ? target + strspn(target, "/")
					      : target,
			     shown + used);
	return tree_add_link(w->b, g->dir, name, *shown ? shown : ".",
			     w->s->mtime) == UINT32_MAX
		       ? error_no_memory(w->err,
					 "a symlink to a missing object")
		       : 0;
}

/* Count an external link whose target is missing. A file may have thousands, so one
 * warning names the first few. */
static void count_missing(struct walk *w, const struct group *g,
			  const char *name, const char *file,
			  const char *object)
{
	size_t used = strlen(w->missing_shown), room;
	char *at = w->missing_shown + used;
	bool first = !w->missing++;
	int n;

	if (w->missing > MISSING_SHOWN)
		return;
	room = sizeof w->missing_shown - used;
	n = snprintf(at, room, "%s%s/%s -> %s%s%s", first ? "" : ", ", g->path,
		     name, file_shown(file), *object ? "/" : "",
		     object + strspn(object, "/"));
	/* A name that does not fit is left out, unless it is the only one. */
	if (n < 0 || ((size_t)n >= room && !first))
		*at = '\0';
}

void hdf5_walk_warn_missing(const struct walk *w)
{
	if (w->missing == 1)
		log_warn("%s: the target of an external link is missing: %s",
			 w->s->path, w->missing_shown);
	else if (w->missing)
		log_warn("%s: the targets of %u external links are missing: "
			 "%s%s",
			 w->s->path, w->missing, w->missing_shown,
			 w->missing > MISSING_SHOWN ? ", ..." : "");
}

int hdf5_walk_add_missing(struct walk *w, const struct group *g,
			  const char *name, const char *file,
			  const char *object)
{
	cleanup_free char *target = NULL;

	count_missing(w, g, name, file, object);
	if (hdf5_walk_note_link(w, g, name, NULL) < 0)
		return -ENOMEM;
	if (asprintf(&target, "%s%s%s", file, *object ? "/" : "",
		     object + strspn(object, "/")) < 0)
		target = NULL;
	return !target || tree_add_link(w->b, g->dir, name, target,
					w->s->mtime) == UINT32_MAX
		       ? error_no_memory(w->err,
					 "a symlink to a missing object")
		       : 0;
}

void hdf5_walk_forget(struct walk *w)
{
	tdestroy(w->visited, free_visited);
	w->visited = NULL;
	vec_free(&w->axes);
}
