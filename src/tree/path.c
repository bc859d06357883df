/* SPDX-License-Identifier: BSD-2-Clause */
/* From a path to a node, through symlinks, and from a node to its path. */
#include "tree/tree_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/*
 * The kernel walks paths itself; this code is for `ls SOURCE:PATH` and for messages
 * that name inodes.  The root of the tree is the root of the walk: an absolute target
 * begins there and ".." ends there, so nothing outside of the tree can be named.
 */

#define LINKS_MAX 40
#define DEPTH_MAX 4096  /* levels inside one `files` */
#define SCAN_MAX 65536u /* entries that are compared one by one */

/* ---- path to node ------------------------------------------------------- */

/* Cut the next component off *path and return its length, 0 at the end. */
static size_t next_component(const char **path, const char **component)
{
	size_t n;

	*path += strspn(*path, "/");
	*component = *path;
	n = strcspn(*path, "/");
	*path += n;
	return n;
}

/* Ask a directory why a name is not in it.  Returns false if it does not say. */
static bool walk_ask_directory(const struct tree *t, uint64_t dir,
			       const char *name, struct error *why)
{
	struct node n;

	return tree_node(t, dir, &n) == 0 && n.files && n.files->ops->why_not &&
	       n.files->ops->why_not(n.files, n.node, name, why);
}

/* Set the error that names the component and the directory where the walk ended. */
static int walk_fail(const struct tree *t, uint64_t dir, const char *component,
		     size_t len, int code, struct error *err)
{
	char where[192], name[FILES_NAME_MAX + 1];
	struct error why = {0};

	if (tree_path(t, dir, where, sizeof where) < 0)
		strcpy(where, "(a deep directory)");
	if (len < sizeof name) {
		memcpy(name, component, len);
		name[len] = '\0';
		if (code != -ENOTDIR && walk_ask_directory(t, dir, name, &why))
			return error_set(err, code, "in %s: %s", where,
					 why.text);
	}
	if (code == -ENOTDIR)
		return error_set(err, code, "%s is not a directory", where);
	if (code == -ENOENT)
		return error_set(err, code, "there is no '%.*s' in %s",
				 (int)(len < 255 ? len : 255), component,
				 where);
	return error_errno(err, code, "'%.*s' in %s",
			   (int)(len < 255 ? len : 255), component, where);
}

/* Set the error for a link whose target is missing, which tells more than where the
 * walk along the target ended.  In a chain of links the last one is named. */
static int link_fail(const struct tree *t, const struct node *dir,
		     const char *name, const char *target, int code,
		     unsigned *links, struct error *err)
{
	char where[192];

	if ((code != -ENOENT && code != -ENOTDIR) || *links > LINKS_MAX)
		return code;
	*links = LINKS_MAX + 1; /* the error is set */
	if (tree_path(t, dir->ino, where, sizeof where) < 0)
		strcpy(where, "(a deep directory)");
	return error_set(err, code,
			 "'%.255s' in %s is a symlink to %s, which is missing",
			 name, where, target);
}

/* Return -ENOENT if a node that was found does not exist: some directories exist only
 * if they have entries, and only their attributes tell that. */
static int walk_check_exists(const struct tree *t, const struct node *n)
{
	struct attr a;

	if (!n->files || tree_attr_is_slow(n))
		return 0;
	return tree_attr(t, n, NULL, &a, NULL) == -ENOENT ? -ENOENT : 0;
}

/* Walk from *at along `path`; recursion ends after LINKS_MAX links. */
static int walk_from(const struct tree *t, struct node *at, const char *path,
		     unsigned *links, struct error *err)
{
	const char *part, *target;
	char name[FILES_NAME_MAX + 1];
	struct node next;
	size_t len;
	int r;

	while ((len = next_component(&path, &part)) > 0) {
		if (len > FILES_NAME_MAX)
			return walk_fail(t, at->ino, part, len, -ENAMETOOLONG,
					 err);
		memcpy(name, part, len);
		name[len] = '\0';
		r = tree_lookup(t, at->ino, name, &next);
		if (r == 0)
			r = walk_check_exists(t, &next);
		if (r < 0)
			return walk_fail(t, at->ino, part, len, r, err);
		if (next.type == S_IFLNK) {
			target = tree_link_target(t, &next);
			if (!target || ++*links > LINKS_MAX)
				return walk_fail(t, at->ino, part, len, -ELOOP,
						 err);
			next = *at;
			if (*target == '/')
				tree_node(t, TREE_ROOT, &next);
			r = walk_from(t, &next, target, links, err);
			if (r < 0)
				return link_fail(t, at, name, target, r, links,
						 err);
		}
		*at = next;
		if (*path == '/' && at->type != S_IFDIR)
			return walk_fail(t, at->ino, "", 0, -ENOTDIR, err);
	}
	return 0;
}

int tree_walk(const struct tree *t, const char *path, struct node *out,
	      struct error *err)
{
	struct node at;
	unsigned links = 0;
	int r;

	tree_node(t, TREE_ROOT, &at);
	r = walk_from(t, &at, path, &links, err);
	if (r == 0)
		*out = at;
	return r;
}

/* ---- node to path ------------------------------------------------------- */

/* Put "/name" in front of what is at buf[*at]. */
static int prepend(char *buf, size_t *at, const char *name)
{
	size_t len = strlen(name);

	if (len + 1 > *at)
		return -ENAMETOOLONG;
	*at -= len;
	memcpy(buf + *at, name, len);
	buf[--*at] = '/';
	return 0;
}

/*
 * Find the entry of `dir` that is `node`, because names are known by entry only.  Large
 * directories are usually numbered in order of names, so a binary search is tried.  It
 * stops at the first hit, for it may be lucky where the order does not hold; otherwise
 * the first entries are compared one by one.
 */
static int files_entry_of_node(const struct files *f, uint64_t dir,
			       uint64_t node, uint64_t *entry)
{
	uint64_t count = f->ops->count(f, dir), lo = 0, hi = count, i;
	uint32_t type;

	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;
		uint64_t at = f->ops->child(f, dir, mid, &type);

		if (at == node) {
			*entry = mid;
			return 0;
		}
		if (at < node)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (i = 0; i < count && i < SCAN_MAX; i++) {
		if (f->ops->child(f, dir, i, &type) == node) {
			*entry = i;
			return 0;
		}
	}
	return -ENOENT;
}

/* Write the name of `node` in `dir`. */
static int files_name_of_node(const struct files *f, uint64_t dir,
			      uint64_t node, char *buf, size_t n)
{
	uint64_t i;
	int r;

	if (f->ops->name_of)
		return f->ops->name_of(f, node, buf, n);
	r = files_entry_of_node(f, dir, node, &i);
	return r < 0 ? r : f->ops->name(f, dir, i, buf, n);
}

/* Prepend the part of the path that is inside `files`. */
static int files_path(const struct files *f, uint64_t node, char *buf,
		      size_t *at)
{
	char name[FILES_NAME_MAX + 1];
	unsigned depth = 0;
	uint64_t dir;
	int r;

	for (; node != 0; node = dir) {
		if (++depth > DEPTH_MAX)
			return -ELOOP;
		r = f->ops->parent(f, node, &dir);
		if (r == 0)
			r = files_name_of_node(f, dir, node, name, sizeof name);
		if (r == 0)
			r = prepend(buf, at, name);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Prepend the part of the path that is inside the node's own tree. */
static int local_path(const struct node *node, char *buf, size_t *at)
{
	const struct tree *t = node->tree;
	int r = 0;

	if (node->files)
		r = files_path(node->files, node->node, buf, at);
	for (uint32_t d = node->dir; d != 0 && r == 0; d = t->dir[d].parent)
		r = prepend(buf, at, t->text + t->dir[d].name);
	return r;
}

int tree_path(const struct tree *t, uint64_t ino, char *buf, size_t n)
{
	size_t at = n;
	struct node node;
	int r;

	r = tree_node(t, ino, &node);
	if (r < 0)
		return r;
	if (n < 2)
		return -ENAMETOOLONG;
	buf[--at] = '\0';
	for (;;) {
		struct graft *g = node.graft;
		uint64_t number;
		uint32_t dir;

		if (!g) {
			r = local_path(&node, buf, &at);
			g = tree_ino_graft(t, node.ino, &dir, &number);
		}
		if (r < 0 || !g)
			break;
		r = prepend(buf, &at, g->name);
		if (r == 0)
			r = tree_node(t, g->parent, &node);
		if (r < 0)
			break;
	}
	if (r < 0)
		return r;
	if (at == n - 1)
		buf[--at] = '/';
	memmove(buf, buf + at, n - at);
	return 0;
}
