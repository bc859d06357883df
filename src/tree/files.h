/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface: a computed subtree of files and directories, numbered nodes. */
#ifndef TREE_FILES_H
#define TREE_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "extent/pinner.h"

/*
 * One directory of the tree may be backed by `files`: a subtree whose nodes
 * are numbers below FILES_NODE_MAX, node 0 being that directory itself.
 * Nothing is stored per node: names, sizes and extents are computed from the
 * number.  All calls are thread-safe; unless said otherwise they do no I/O.
 */
#define FILES_NODE_MAX ((UINT64_C(1) << 40) - 1) /* ino holds node + 1 */
#define FILES_NAME_MAX 255

struct attr {
	uint64_t size;
	int64_t mtime;  /* seconds; stable across mounts */
	uint32_t mode;  /* type and permissions */
	uint32_t nlink; /* of directories: not used */
	/* 0 where there is nothing to say. */
	uint32_t nsec; /* of mtime */
	bool stored;   /* owner and permissions are those of a member */
	uint32_t uid, gid;
	uint64_t rdev; /* of a device */
	uint64_t hole; /* bytes of size that are stored nowhere */
	/* Of nodes whose numbers mean something else in another mount. */
	uint32_t generation;
};

/* A file that is a sample: number i of the n in its set. */
struct files_sample {
	uint32_t set;
	uint64_t i, n;
};

struct files;
struct files_ops {
	/* Entries of directory node `dir`. */
	uint64_t (*count)(const struct files *f, uint64_t dir);
	/* Node number and type (S_IFDIR, S_IFREG, S_IFLNK, ...) of entry i. */
	uint64_t (*child)(const struct files *f, uint64_t dir, uint64_t i,
			  uint32_t *type);
	/* Name of entry i of `dir`, in order of names; 0 or -errno. */
	int (*name)(const struct files *f, uint64_t dir, uint64_t i, char *buf,
		    size_t n);
	/* Optional.  Name of `node` (> 0) in its directory, whether that lists
	 * it or not; 0 or -errno. */
	int (*name_of)(const struct files *f, uint64_t node, char *buf,
		       size_t n);
	/* Optional.  Has directory node `dir` entries that are found and never listed, for
	 * there is no end of them? */
	bool (*endless)(const struct files *f, uint64_t dir);
	/* Node of `name` in `dir`; -ENOENT. */
	int (*find)(const struct files *f, uint64_t dir, const char *name,
		    uint64_t *node);
	/* Optional.  A sentence in `err` about a name that `find` does not find in `dir`;
	 * false: there is nothing to say. */
	bool (*why_not)(const struct files *f, uint64_t dir, const char *name,
			struct error *err);
	/* Optional.  *i moves to the first entry of `dir` from it on that is there:
	 * of some that are counted `attr` says -ENOENT.  May block.  -ENOTSUP: it
	 * is too far away; *i stays. */
	int (*skip)(struct files *f, uint64_t dir, uint64_t *i,
		    struct pinner *p, struct error *err);
	/* The directory that holds `node` (node > 0); -ENOENT: no such node. */
	int (*parent)(const struct files *f, uint64_t node, uint64_t *dir);
	/* True when `attr` of this node may need I/O (a generated text): a
	 * directory listing then leaves its attributes out. */
	bool (*attr_is_slow)(const struct files *f, uint64_t node);
	/* May pin and block for nodes whose attributes are slow; for the
	 * others `p` and `err` may be NULL.  *out is zeros before.  -ENOENT: no
	 * such node. */
	int (*attr)(struct files *f, uint64_t node, struct pinner *p,
		    struct attr *out, struct error *err);
	/* Optional, for nodes that are there only while somebody knows of them: the
	 * kernel knows of `node` n times more, or (n < 0) less.  -ENOENT: it went
	 * since it was found. */
	int (*hold)(struct files *f, uint64_t node, int64_t n);
	/* Optional.  Is `node` a sample?  Samples are numbered as epochs/ has them; where they
	 * are shown in several ways, each is a set.  May make a list of all, once. */
	bool (*sample)(struct files *f, uint64_t node,
		       struct files_sample *out);
	/* The node of sample i of a set that `sample` named. */
	uint64_t (*sample_node)(const struct files *f, uint32_t set,
				uint64_t i);
	/* Optional: learn what map needs for this window (the layout of a part
	 * not opened yet).  May block on I/O; idempotent. */
	int (*prepare)(struct files *f, uint64_t node, uint64_t off,
		       uint64_t len, struct error *err);
	/* Append the extents from `off` on until the plan is full.  The caller
	 * has clamped the window to the file.  Pure: no I/O, no lock, no
	 * allocation. */
	int (*map)(const struct files *f, uint64_t node, uint64_t off,
		   struct plan *p, struct error *err);
	/* Optional.  From byte *from of this file on the numbers are kept the
	 * other way round: each, so many bytes wide, is reversed on its way out.
	 * 0: they are not.  Whole numbers from there to the end.  Pure. */
	unsigned (*reversed)(const struct files *f, uint64_t node,
			     uint64_t *from);
	/* Optional.  Value of xattr `key` (without "user.tensorfs."): its
	 * length (with n = 0: only that), -ENODATA, -ERANGE.  May block. */
	ssize_t (*xattr)(struct files *f, uint64_t node, const char *key,
			 struct pinner *p, char *buf, size_t n);
	/* Keys this node has, NUL-separated, as listxattr; without prefix. */
	const char *(*xattr_keys)(const struct files *f, uint64_t node,
				  size_t *len);
	/* Optional.  What is known of a directory that is no tensor, as a JSON
	 * object (malloc'ed text), like tensor_ops.about.  NULL with a sentence.
	 * Blocks. */
	char *(*about)(struct files *f, uint64_t node, struct error *err);
	/* Optional.  Target of a symlink; NULL: it is none. */
	const char *(*link)(const struct files *f, uint64_t node);
	/* Optional.  Stored extended attributes, under their whole names; as
	 * getxattr and listxattr (n = 0: only the length). */
	ssize_t (*stored_xattr)(const struct files *f, uint64_t node,
				const char *name, char *buf, size_t n);
	ssize_t (*stored_xattr_list)(const struct files *f, uint64_t node,
				     char *buf, size_t n);
	void (*free)(struct files *f);
};
struct files {
	const struct files_ops *ops;
};

#endif
