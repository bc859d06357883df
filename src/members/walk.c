/* SPDX-License-Identifier: BSD-2-Clause */
/* From a member's stored path to a safe place in the tree. */
#include "members/build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tree/tree.h"

/*
 * A stored path can be anything.  Leading slashes and "." are dropped; a path with ".."
 * is refused.  Where a component that should be a directory is something else, it is
 * treated as extraction would: a symlink to a directory of the archive is followed; if
 * it is a symlink that leads elsewhere, or a file, the member is refused.
 */
#define LINKS_MAX 40
#define ELSEWHERE "its directory is a link that leads out of the archive"

struct walking {
	struct members_builder *b;
	const struct member *like;
	const char *path; /* the whole path, for error sentences */
	unsigned links;
	struct error *err;
};
static int walk_path(struct walking *w, uint32_t dir, const char *path,
		     bool last, struct build_place *out);

static int walk_refuse(struct walking *w, const char *kind, const char *why)
{
	if (w->like)
		members_left_out(w->b, kind, "%s: left out: %s", w->path, why);
	return error_set(w->err, w->like ? -EINVAL : -ENOENT, "%s: %s", w->path,
			 why);
}

/* Create the directory of an entry that has no inode. */
static int walk_make_directory(struct walking *w, uint32_t entry)
{
	const struct member *like = w->like;
	struct build_inode r = {.kind = MEMBER_DIR, .mode = S_IFDIR | 0755};
	uint32_t inode;

	if (!like)
		return error_set(w->err, -ENOENT, "%s: no such member",
				 w->path);
	r.uid = like->uid;
	r.gid = like->gid;
	r.mtime = like->mtime;
	r.volume = like->volume;
	inode = build_new_inode(w->b, &r);
	if (inode == ENTRY_NONE || build_keep(w->b, entry) < 0)
		return error_no_memory(w->err, "the table of members");
	build_lead(w->b, entry, inode);
	return 0;
}

/* Have a directory in *dir: it is created if the entry has no inode, and set to the
 * target if the entry is a symlink.  Return 0 or -errno. */
static int walk_enter(struct walking *w, uint32_t *dir)
{
	struct build_entry *e = &w->b->entries.at[*dir];
	struct build_place at;
	const char *target;
	char *copy;
	int r;

	if (build_is_dir(w->b, *dir))
		return 0;
	if (e->inode == ENTRY_NONE)
		return walk_make_directory(w, *dir);
	if (build_inode(w->b, *dir)->kind != MEMBER_SYMLINK)
		return walk_refuse(w, "a file in the way",
				   "its directory is a file");
	target = w->b->names.at + build_inode(w->b, *dir)->data;
	if (*target == '/' || ++w->links > LINKS_MAX)
		return walk_refuse(w, "a link in the way", ELSEWHERE);
	/* The pool of names may move while the target is walked. */
	copy = strdup(target);
	if (!copy)
		return error_no_memory(w->err, "the table of members");
	r = walk_path(w, e->parent, copy, false, &at);
	free(copy);
	if (r == 0)
		*dir = at.dir;
	return r;
}

/* Go one component down (or up, for ".." in a symlink's target) from *dir.  Return 0
 * or -errno. */
static int walk_one_component(struct walking *w, uint32_t *dir,
			      const char *name, size_t n)
{
	uint32_t next;

	if (n == 2 && !memcmp(name, "..", 2)) { /* in a link's target */
		if (*dir == 0)
			return walk_refuse(w, "a link in the way", ELSEWHERE);
		*dir = w->b->entries.at[*dir].parent;
		return 0;
	}
	next = w->like ? build_name(w->b, *dir, name, n)
		       : build_find(w->b, *dir, name, n);
	if (next == ENTRY_NONE)
		return w->like ? error_no_memory(w->err, "the table of members")
			       : error_set(w->err, -ENOENT,
					   "%s: no such member", w->path);
	*dir = next;
	return walk_enter(w, dir);
}

/* Return the component as a name that a file can have.  A name that is too long is
 * replaced by out->text, which is shorter. */
static const char *walk_usable_name(const char *name, size_t *n,
				    struct build_place *out)
{
	char whole[4096];

	out->shortened = false;
	if (*n <= FILES_NAME_MAX)
		return name;
	if (*n >= sizeof whole)
		*n = sizeof whole - 1;
	memcpy(whole, name, *n);
	whole[*n] = '\0';
	out->shortened = tree_escape(whole, out->text);
	*n = strlen(out->text);
	return out->text;
}

/* Return whether the rest of the path has no component except ".". */
static bool walk_names_nothing(const char *path)
{
	for (;;) {
		path += strspn(path, "/");
		if (*path == '.' && (path[1] == '/' || !path[1]))
			path++;
		else
			return !*path;
	}
}

/* Walk `path` from `dir`.  With `last` the last component is not entered but
 * returned in out->name. */
static int walk_path(struct walking *w, uint32_t dir, const char *path,
		     bool last, struct build_place *out)
{
	out->n = 0;
	out->shortened = false;
	for (;;) {
		const char *name;
		size_t n, len;
		int r;

		path += strspn(path, "/");
		n = len = strcspn(path, "/");
		if (n == 0)
			break;
		name = path;
		path += len;
		if (n == 1 && *name == '.')
			continue;
		name = walk_usable_name(name, &n, out);
		if (last && walk_names_nothing(path)) {
			out->name = name;
			out->n = n;
			break;
		}
		r = walk_one_component(w, &dir, name, n);
		if (r < 0)
			return r;
	}
	out->dir = dir;
	return 0;
}

static bool walk_has_dot_dot(const char *path)
{
	while (*path) {
		size_t n = strcspn(path, "/");

		if (n == 2 && !memcmp(path, "..", 2))
			return true;
		path += n;
		path += strspn(path, "/");
	}
	return false;
}

int build_walk(struct members_builder *b, const char *path,
	       const struct member *like, struct build_place *out,
	       struct error *err)
{
	struct walking w = {b, like, path, 0, err};

	if (walk_has_dot_dot(path))
		return walk_refuse(&w, "a path with ..",
				   "its path contains '..'");
	if (*path == '/' && like)
		members_note(b, "an absolute path",
			     "%s: shown without the leading slash", path);
	return walk_path(&w, 0, path, true, out);
}
