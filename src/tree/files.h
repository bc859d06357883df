/* SPDX-License-Identifier: BSD-2-Clause */
/* The interface of a computed subtree: files and directories that are numbers. */
#ifndef TREE_FILES_H
#define TREE_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "extent/pinner.h"

/*
 * A directory of the tree may be backed by `files`: a subtree whose nodes are numbers
 * below FILES_NODE_MAX, node 0 being that directory itself.  Nothing is stored per
 * node: names, sizes and extents are computed from the number.  All calls are
 * thread-safe; unless said otherwise they do no I/O.  Functions that return int return
 * 0 or -errno.
 */
#define FILES_NODE_MAX ((UINT64_C(1) << 40) - 1) /* ino holds node + 1 */
#define FILES_NAME_MAX 255

struct attr {
	uint64_t size;
	int64_t mtime;  /* seconds since 1970; stable across mounts */
	uint32_t mode;  /* type and permissions */
	uint32_t nlink; /* not used for directories */
	/* The fields below are 0 where they do not apply. */
	uint32_t nsec; /* nanoseconds of mtime */
	/* Owner and permissions are those that the archive stores. */
	bool stored;
	uint32_t uid, gid;
	uint64_t rdev; /* device number of a device */
	uint64_t hole; /* how many bytes of `size` are stored nowhere */
	/* Nonzero for nodes whose numbers mean something else in another mount. */
	uint32_t generation;
};

/* A file that is a sample: number i of the n in its set. */
struct files_sample {
	uint32_t set;
	uint64_t i, n;
};

/* What a read has to know of its window, besides a plan. */
struct file_window {
	uint64_t size; /* of the whole file, in bytes */
	uint64_t len;  /* of the window, cut at the end of the file, in bytes */
	/* As files_ops.reversed returns them; 0: no number is reversed. */
	unsigned reversed;
	uint64_t reversed_from;
};

struct files;
struct files_ops {
	/* Return the number of entries of directory node `dir`. */
	uint64_t (*count)(const struct files *f, uint64_t dir);
	/* Return the node number of entry i and set *type (S_IFDIR, S_IFREG, S_IFLNK,
	 * ...). */
	uint64_t (*child)(const struct files *f, uint64_t dir, uint64_t i,
			  uint32_t *type);
	/* Write the name of entry i of `dir`; entries are in order of names. */
	int (*name)(const struct files *f, uint64_t dir, uint64_t i, char *buf,
		    size_t n);
	/* Optional.  Write the name of `node` (> 0) in its directory, whether that
	 * lists the node or not. */
	int (*name_of)(const struct files *f, uint64_t node, char *buf,
		       size_t n);
	/* Optional.  Return true if directory node `dir` has entries that are found and
	 * never listed, because there is no end of them. */
	bool (*endless)(const struct files *f, uint64_t dir);
	/* Set *node to the node of `name` in `dir`.  Returns -ENOENT if there is none. */
	int (*find)(const struct files *f, uint64_t dir, const char *name,
		    uint64_t *node);
	/* Optional.  Explain in `err` why `find` does not find a name in `dir`.
	 * Returns false if there is nothing to explain. */
	bool (*why_not)(const struct files *f, uint64_t dir, const char *name,
			struct error *err);
	/* Optional.  Move *i to the first entry of `dir`, from itself on, that exists:
	 * some that are counted do not, and `attr` returns -ENOENT for them.  May
	 * block.  Returns -ENOTSUP, with *i unchanged, if that entry is too far away. */
	int (*skip)(struct files *f, uint64_t dir, uint64_t *i,
		    struct pinner *p, struct error *err);
	/* Set *dir to the directory that has `node` (node > 0).  Returns -ENOENT if
	 * there is no such node. */
	int (*parent)(const struct files *f, uint64_t node, uint64_t *dir);
	/* Return true if `attr` of this node may need I/O (a generated text).  A
	 * directory listing then leaves its attributes out. */
	bool (*attr_is_slow)(const struct files *f, uint64_t node);
	/* Set *out, which is zero before.  May pin and block for nodes whose attributes
	 * are slow; for the others `p` and `err` may be NULL.  Returns -ENOENT if there
	 * is no such node. */
	int (*attr)(struct files *f, uint64_t node, struct pinner *p,
		    struct attr *out, struct error *err);
	/* Optional, for nodes that exist only while the kernel refers to them.  The
	 * kernel has n more references to `node`, or (n < 0) less.  Returns -ENOENT if
	 * the node was dropped since it was found. */
	int (*hold)(struct files *f, uint64_t node, int64_t n);
	/* Optional.  Return true if `node` is a sample, and set *out.  Samples are
	 * numbered as epochs/ numbers them; where they are shown in several ways, each
	 * way is a set.  The first call may make a list of all samples. */
	bool (*sample)(struct files *f, uint64_t node,
		       struct files_sample *out);
	/* Return the node of sample i of a set that `sample` returned. */
	uint64_t (*sample_node)(const struct files *f, uint32_t set,
				uint64_t i);
	/* Optional, in place of attr, prepare, reversed and the first map of a read, so that
	 * the node is resolved once.  The window is [off, off + len); `plan` was initialised
	 * with want = len, which is lowered to out->len.  *out is zeros before.  If out->len
	 * is 0, nothing is prepared or mapped; if numbers are reversed, nothing is mapped.
	 * May pin and block.  -ENOENT: no such node. */
	int (*window)(struct files *f, uint64_t node, uint64_t off,
		      uint64_t len, struct pinner *p, struct file_window *out,
		      struct plan *plan, struct error *err);
	/* Optional.  Learn what `map` needs for this window, such as the layout of a
	 * part that is not open yet.  May block on I/O; idempotent. */
	int (*prepare)(struct files *f, uint64_t node, uint64_t off,
		       uint64_t len, struct error *err);
	/* Append the extents from byte `off` on until the plan is full.  The caller has
	 * clamped the window to the file.  Pure: no I/O, no lock, no allocation. */
	int (*map)(const struct files *f, uint64_t node, uint64_t off,
		   struct plan *p, struct error *err);
	/* Optional.  Return the width in bytes of the file's numbers if they are stored
	 * in the opposite byte order, so that each is reversed when it is read; 0 if
	 * they are not.  The numbers begin at byte *from and go to the end of the file,
	 * which has whole numbers only.  Pure. */
	unsigned (*reversed)(const struct files *f, uint64_t node,
			     uint64_t *from);
	/* Optional.  Write the value of xattr `key` (without "user.tensorfs.") and
	 * return its length in bytes; with n = 0 only return it.  Otherwise -ENODATA,
	 * -ERANGE or another -errno.  May block. */
	ssize_t (*xattr)(struct files *f, uint64_t node, const char *key,
			 struct pinner *p, char *buf, size_t n);
	/* Return the keys of this node, each ending in NUL as in listxattr, without
	 * prefix; *len is their length in bytes.  NULL if there are none. */
	const char *(*xattr_keys)(const struct files *f, uint64_t node,
				  size_t *len);
	/* Optional.  Return what is known of a directory that is not a tensor, as a
	 * JSON object (text that the caller frees), like tensor_ops.about.  NULL with a
	 * sentence if that failed.  Blocks. */
	char *(*about)(struct files *f, uint64_t node, struct error *err);
	/* Optional.  Return the target of a symlink; NULL if the node is not one. */
	const char *(*link)(const struct files *f, uint64_t node);
	/* Optional.  Extended attributes that the archive stores, under their whole
	 * names; as getxattr and listxattr (n = 0: return only the length). */
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
