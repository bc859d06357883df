/* SPDX-License-Identifier: BSD-2-Clause */
/* What is in a directory beside tensors: links that lead nowhere, unreadable attributes. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "tree/tree.h"
#include "verify/verify_private.h"
#include "views/view.h"

/* Check a symlink.  One whose text is an absolute path stands for a part in another file:
 * if that is not there, the part is missing.  Links within a file are relative, and may
 * dangle intentionally, so those are only counted as not checked. */
static void verify_link(struct verify *v, const struct tree *t,
			const struct node *n)
{
	char path[PATH_MAX], why[PATH_MAX + 64];
	const char *to = tree_link_target(t, n);
	struct error err;
	struct node end;

	if (!to || tree_path(t, n->ino, path, sizeof path) < 0)
		return;
	if (to[0] == '/') {
		snprintf(why, sizeof why,
			 "its data is in %s, which does not exist", to);
		verify_bad(v, path, -ENODATA, why);
	} else if (tree_walk(t, path, &end, &err) < 0) {
		snprintf(why, sizeof why,
			 "it leads to %s, which does not exist", to);
		verify_skipped(v, path, why);
	}
}

/* Return what the source knows about a directory, as JSON text (malloc'ed); NULL if that
 * is nothing, or with `err` set. */
static char *verify_about(const struct node *dir, struct error *err)
{
	struct tensor *t = dir->files ? tensor_of_files(dir->files) : NULL;

	if (t)
		return t->why_not || !t->ops->about ? NULL
						    : t->ops->about(t, err);
	return dir->files && dir->files->ops->about
		       ? dir->files->ops->about(dir->files, dir->node, err)
		       : NULL;
}

static void verify_attributes(struct verify *v, const struct tree *t,
			      const struct node *dir)
{
	struct error err = {0};
	char path[PATH_MAX];
	cleanup_free char *text = verify_about(dir, &err);
	json_t *about = text ? json_loads(text, JSON_ALLOW_NUL, NULL) : NULL;
	const char *name;
	json_t *why;

	if (tree_path(t, dir->ino, path, sizeof path) < 0)
		snprintf(path, sizeof path, "(a path that is too long)");
	/* A missing or changed part was listed when its data was read. */
	if (!text && err.code && err.code != -ENODATA && err.code != -ESTALE)
		verify_bad(v, path, err.code, err.text);
	json_object_foreach(json_object_get(about, "unreadable_attributes"),
			    name, why)
	{
		cleanup_free char *whole = NULL;

		if (asprintf(&whole, "%s@%s", path, name) < 0)
			whole = NULL;
		verify_bad(v, whole ? whole : path, -EIO,
			   json_string_value(why));
	}
	json_decref(about);
}

void verify_directory(struct verify *v, const struct tree *t,
		      const struct node *dir, unsigned depth)
{
	char name[FILES_NAME_MAX + 1];
	struct node n;

	if (dir->type == S_IFDIR)
		verify_attributes(v, t, dir);
	if (dir->type != S_IFDIR || (dir->files && tensor_of_files(dir->files)))
		return;
	for (uint64_t i = 0;
	     depth < 128 && !tree_entry(t, dir->ino, i, &n, name, sizeof name);
	     i++) {
		if (n.type == S_IFDIR && !n.node)
			verify_directory(v, t, &n, depth + 1);
		if (n.type == S_IFLNK)
			verify_link(v, t, &n);
	}
}
