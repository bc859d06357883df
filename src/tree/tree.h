/* SPDX-License-Identifier: BSD-2-Clause */
/* The tree of a mount: directories are in memory, files are numbers. */
#ifndef TREE_TREE_H
#define TREE_TREE_H

#include <stddef.h>

#include "tree/files.h"

/*
 * ino = dir << 40 | node + 1.  Directory 0 is the root, so the root is ino 1.  In
 * grafts (graft.h), ino = 1 << 63 | graft << 45 | dir << 32 | node + 1.  A tree
 * directory has sub-directories and symlinks.  It may also be backed by `files`, whose
 * node 0 it then is: their entries are listed among its own, in one order of names.  A
 * tree is immutable once built.
 */
#define TREE_ROOT 1u
#define TREE_DIR_MAX (1u << 24)

struct tree;
struct tree_builder;

struct tree_builder *tree_builder_new(void);
/* Add a directory to `parent` (0: the root, which exists).  Returns its number, or
 * UINT32_MAX if memory or numbers ran out.  A name that no file can have is escaped
 * (tree_escape); a name that is taken, by an entry added before or by the parent's
 * `files`, gets "~2", "~3". */
uint32_t tree_add_dir(struct tree_builder *b, uint32_t parent, const char *name,
		      int64_t mtime);
/* As tree_add_dir, for a directory that is found by its name and not listed.  If
 * another entry has the name, that one is found. */
uint32_t tree_add_hidden(struct tree_builder *b, uint32_t parent,
			 const char *name, int64_t mtime);
/* Add a symlink; `target` is copied. */
uint32_t tree_add_link(struct tree_builder *b, uint32_t parent,
		       const char *name, const char *target, int64_t mtime);
/* Back a directory by `files`, which the tree owns from now on.  They define its mode
 * and mtime; the number of its own entries is added to their size. */
void tree_set_files(struct tree_builder *b, uint32_t dir, struct files *f);
/* Add one file to a directory that is found and not listed.  `f` finds its name in node
 * 0, and is asked for it with a node number that the tree chooses.  If another entry
 * has the name, that one is found.  The tree owns `f` from now on. */
void tree_set_extra(struct tree_builder *b, uint32_t dir, struct files *f);
/* End building: sort, name and number all entries, and make the tree, which the caller
 * owns.  Returns 0 or -errno.  `b` can only be freed afterwards. */
int tree_finish(struct tree_builder *b, struct tree **out, struct error *err);
void tree_builder_free(struct tree_builder *b);
void tree_free(struct tree *t);

/* ---- between tree_finish and the first look ---- */

uint32_t tree_dirs(const struct tree *t);
/* Describe listed entry `i` of directory `dir`, not counting those of its `files`:
 * *files is what backs the entry, or NULL; *name is its stored name, or the shown one
 * if it was numbered ("~2").  Returns false at the end. */
bool tree_dir_entry(const struct tree *t, uint32_t dir, uint32_t i,
		    struct files **files, const char **name);
/* As tree_set_extra, in a finished tree; an earlier extra file is replaced and freed. */
void tree_add_extra(struct tree *t, uint32_t dir, struct files *f);

struct graft;
/* A position in the tree. */
struct node {
	uint64_t ino;
	uint32_t type;       /* S_IFDIR, S_IFREG, S_IFLNK */
	struct files *files; /* NULL: a plain directory or symlink */
	/* Its number in `files`; 0 for tree directories. */
	uint64_t node;
	uint32_t dir; /* number of the tree directory */
	/* The tree that has it, which may be that of a graft. */
	const struct tree *tree;
	/* Not NULL: the node is the root of this graft; if that is not open, files is
	 * NULL. */
	struct graft *graft;
};
/* Return the inode number of directory `dir`, a number below tree_dirs. */
uint64_t tree_dir_ino(const struct tree *t, uint32_t dir);
/* Describe the node with an inode number.  Returns 0 or -ENOENT if there is no such
 * number.  May open a graft, and block. */
int tree_node(const struct tree *t, uint64_t ino, struct node *out);
int tree_lookup(const struct tree *t, uint64_t parent, const char *name,
		struct node *out);
/* As files_ops.hold; returns 0 for nodes that always exist. */
int tree_hold(const struct tree *t, uint64_t ino, int64_t n);
int tree_parent(const struct tree *t, uint64_t ino, uint64_t *parent);
/* Describe entry number `i` of directory `dir_ino`, in order of names.  Returns -ENOENT
 * past the end.  Takes O(1) for any i; O(log entries * log files) in a directory that
 * has entries of its own and of `files`. */
int tree_entry(const struct tree *t, uint64_t dir_ino, uint64_t i,
	       struct node *out, char *name, size_t n);
/* Move *i to the first entry, from itself on, that exists: some that are counted do
 * not.  For listings; may block.  As files_ops.skip. */
int tree_skip(const struct tree *t, uint64_t dir_ino, uint64_t *i,
	      struct pinner *p, struct error *err);
uint64_t tree_entry_count(const struct tree *t, uint64_t dir_ino);
int tree_attr(const struct tree *t, const struct node *n, struct pinner *p,
	      struct attr *out, struct error *err);
bool tree_attr_is_slow(const struct node *n);
const char *tree_link_target(const struct tree *t, const struct node *n);
/* Return the stored name of a tree directory if the shown one differs, else NULL. */
const char *tree_stored_name(const struct tree *t, const struct node *n);
/* Find the node of path "a/b/c" from the root; "" and "/" are the root.  Follows
 * symlinks inside the tree (at most 40).  Returns 0 or -errno; the sentence names the
 * component. */
int tree_walk(const struct tree *t, const char *path, struct node *out,
	      struct error *err);
/* Write the path of a node from the root, "/data/samples/000001.npy".  Returns 0 or
 * -errno. */
int tree_path(const struct tree *t, uint64_t ino, char *buf, size_t n);
/* Set the number of directories and the bytes of memory they take. */
void tree_usage(const struct tree *t, uint64_t *dirs, uint64_t *bytes);

/* Escape a stored name that no file can have: `.`, `..`, an empty name, '/' and NUL are
 * percent-escaped, names over 255 bytes end in "~" and a hash.  Returns true if the
 * result differs. */
bool tree_escape(const char *name, char out[FILES_NAME_MAX + 1]);

#endif
