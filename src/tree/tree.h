/* SPDX-License-Identifier: BSD-2-Clause */
/* Directories in memory, files by arithmetic; inode numbers without nodes. */
#ifndef TREE_TREE_H
#define TREE_TREE_H

#include <stddef.h>

#include "tree/files.h"

/*
 * ino = dir << 40 | node + 1.  Directory 0 is the root, so the root is ino 1.  (In
 * grafts, graft.h: 1 << 63 | graft << 45 | dir << 32 | node + 1.)
 * A tree directory holds sub-directories and symlinks.  It may also be backed by
 * `files`, whose node 0 it then is: what these hold is listed among the others,
 * in one order of names.  Immutable once built.
 */
#define TREE_ROOT 1u
#define TREE_DIR_MAX (1u << 24)

struct tree;
struct tree_builder;

struct tree_builder *tree_builder_new(void);
/* Add a directory to `parent` (0: the root, which exists); its number, or
 * UINT32_MAX when memory or numbers are out.  A name that no file can have is
 * escaped (tree_escape); one that is taken, by an entry added before or by the
 * parent's `files`, gets "~2", "~3". */
uint32_t tree_add_dir(struct tree_builder *b, uint32_t parent, const char *name,
		      int64_t mtime);
/* The same, found by its name and not listed.  Where something else has the name, that
 * is found. */
uint32_t tree_add_hidden(struct tree_builder *b, uint32_t parent,
			 const char *name, int64_t mtime);
/* Add a symlink; target copied. */
uint32_t tree_add_link(struct tree_builder *b, uint32_t parent,
		       const char *name, const char *target, int64_t mtime);
/* Back a directory by `files`; ownership goes to the tree.  They say what mode
 * and mtime it has; its own entries are added to their size. */
void tree_set_files(struct tree_builder *b, uint32_t dir, struct files *f);
/* One more file of a directory: `f` find its name in their node 0, and are asked of it with
 * a node number that the tree chose.  Not listed; where something else has the name, that
 * is found.  Ownership goes to the tree. */
void tree_set_extra(struct tree_builder *b, uint32_t dir, struct files *f);
/* No more entries: sort, name and number them.  `b` is of no use afterwards. */
int tree_finish(struct tree_builder *b, struct tree **out, struct error *err);
void tree_builder_free(struct tree_builder *b);
void tree_free(struct tree *t);

/* ---- between tree_finish and the first look ---- */

uint32_t tree_dirs(const struct tree *t);
/* Listed entry `i` that directory `dir` has without its `files`: their own `files`, or NULL.
 * *name: the stored one, unless another has been given it.  False: there are no more. */
bool tree_dir_entry(const struct tree *t, uint32_t dir, uint32_t i,
		    struct files **files, const char **name);
/* As tree_set_extra; one that is there is replaced. */
void tree_add_extra(struct tree *t, uint32_t dir, struct files *f);

struct graft;
/* A position in the tree. */
struct node {
	uint64_t ino;
	uint32_t type;           /* S_IFDIR, S_IFREG, S_IFLNK */
	struct files *files;     /* NULL: a plain directory or link */
	uint64_t node;           /* number in files, 0 for tree directories */
	uint32_t dir;            /* number of the tree directory */
	const struct tree *tree; /* the tree, or that of a graft */
	struct graft *graft;     /* this is its root; files may be NULL still */
};
/* Inode number of directory `dir`, one of tree_dirs. */
uint64_t tree_dir_ino(const struct tree *t, uint32_t dir);
/* -ENOENT when there is no such number.  (ESTALE belongs to live mounts.) */
int tree_node(const struct tree *t, uint64_t ino, struct node *out);
int tree_lookup(const struct tree *t, uint64_t parent, const char *name,
		struct node *out);
/* As files.hold; 0 for all that is there anyway. */
int tree_hold(const struct tree *t, uint64_t ino, int64_t n);
int tree_parent(const struct tree *t, uint64_t ino, uint64_t *parent);
/* Entry number `i` of directory `dir_ino`, in order of names; -ENOENT past the
 * end.  Resuming at any i is O(1); O(log entries * log files) in a directory
 * that has entries of its own and of `files`. */
int tree_entry(const struct tree *t, uint64_t dir_ino, uint64_t i,
	       struct node *out, char *name, size_t n);
/* *i moves to the first entry from it on that is there; some that are counted
 * are not.  For listings; may block.  As files.skip. */
int tree_skip(const struct tree *t, uint64_t dir_ino, uint64_t *i,
	      struct pinner *p, struct error *err);
uint64_t tree_entry_count(const struct tree *t, uint64_t dir_ino);
int tree_attr(const struct tree *t, const struct node *n, struct pinner *p,
	      struct attr *out, struct error *err);
bool tree_attr_is_slow(const struct node *n);
const char *tree_link_target(const struct tree *t, const struct node *n);
/* The stored name of a tree directory where it was escaped, else NULL. */
const char *tree_stored_name(const struct tree *t, const struct node *n);
/* Walk "a/b/c" from the root; "" and "/" are the root.  Follows symlinks inside
 * the tree (at most 40).  -ENOENT names the component. */
int tree_walk(const struct tree *t, const char *path, struct node *out,
	      struct error *err);
/* Path of a node from the root, "/data/samples/000001.npy". */
int tree_path(const struct tree *t, uint64_t ino, char *buf, size_t n);
/* Directories, and bytes they take. */
void tree_usage(const struct tree *t, uint64_t *dirs, uint64_t *bytes);

/* Make any stored name one that a file can have: `.`, `..`, empty, '/', NUL are
 * percent-escaped, names over 255 bytes end in "~" and a hash.  True when the
 * result differs. */
bool tree_escape(const char *name, char out[FILES_NAME_MAX + 1]);

#endif
