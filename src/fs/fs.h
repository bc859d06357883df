/* SPDX-License-Identifier: BSD-2-Clause */
/* The file system as functions: 0 or -errno, no FUSE types. */
#ifndef FS_FS_H
#define FS_FS_H

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>

#include "store/store.h"
#include "tree/tree.h"

struct fs_options {
	uid_t uid; /* owner of files without a stored owner; */
	gid_t gid;
	bool uid_given, gid_given;    /* ... of all files */
	bool shared;                  /* other users may read the mount */
	mode_t fmask, dmask;          /* permission bits taken away */
	bool owner_only;              /* 0400/0500 instead of 0444/0555 */
	uint64_t bytes, inodes;       /* of the sources, for statfs */
	const char *version, *config; /* for xattrs of the root; borrowed */
};
struct fs;
/* Make a file system of a tree and a store, which must outlive it. */
int fs_new(struct fs **out, struct tree *t, struct store *s,
	   const struct fs_options *o, struct error *err);
void fs_free(struct fs *fs);

struct entry {
	struct stat st;      /* complete, st_ino included */
	bool attr_known;     /* false from readdir where attributes are slow */
	uint32_t generation; /* as in struct attr */
};
int fs_lookup(struct fs *fs, uint64_t parent, const char *name,
	      struct entry *out);
int fs_getattr(struct fs *fs, uint64_t ino, struct entry *out);
int fs_readlink(struct fs *fs, uint64_t ino, const char **target);
/* Call `emit` for each entry from position `pos` on (0 and 1 are "." and "..") until it
 * returns false, because its buffer is full.  With `attrs`, entry.st is filled in wholly
 * unless that is slow. */
typedef bool fs_emit(void *ctx, const char *name, const struct entry *e,
		     uint64_t next_pos);
int fs_readdir(struct fs *fs, uint64_t ino, uint64_t pos, bool attrs,
	       fs_emit *emit, void *ctx);
/* Get entry *i of a directory as tree_entry does, or the next one that exists; *i is set
 * to its position.  -ENOENT at the end.  May block. */
int fs_next_entry(struct fs *fs, uint64_t dir, uint64_t *i, struct node *out,
		  char name[FILES_NAME_MAX + 1]);

/* A read is whole, up to the end of the file, or an error.  The reply owns its pins and
 * its buffer until fs_release. */
#define REPLY_IOV 256
#define REPLY_PINS 64
struct reply {
	size_t len;    /* bytes in the reply */
	uint64_t size; /* of the whole file, in bytes; fs_read sets it */
	/* The chunk that has the last byte; NULL if no chunk has it. */
	const struct chunk_set *set;
	uint64_t index;
	unsigned niov;
	struct iovec iov[REPLY_IOV];
	unsigned npins;
	struct span pins[REPLY_PINS];
	struct buf *gathered;
	unsigned char scratch[PLAN_SCRATCH];
};
int fs_read(struct fs *fs, uint64_t ino, uint64_t off, size_t len,
	    struct reply *out);
void fs_release(struct fs *fs, struct reply *r);
/* Set *out as lseek with SEEK_DATA or SEEK_HOLE does: to the first byte from `off` on that
 * is data, or in a hole (the end of the file counts as one).  -ENXIO if there is none.
 * Blocks. */
int fs_seek(struct fs *fs, uint64_t ino, uint64_t off, int whence,
	    uint64_t *out);
/* Copy a window to `buf`; return the bytes read (fewer than `len` only at the end of the
 * file) or -errno.  For `cat` and tests. */
ssize_t fs_read_copy(struct fs *fs, uint64_t ino, uint64_t off, void *buf,
		     size_t len);

/* As getxattr(2) and listxattr(2); return the length or -errno. */
ssize_t fs_getxattr(struct fs *fs, uint64_t ino, const char *name, char *buf,
		    size_t n);
ssize_t fs_listxattr(struct fs *fs, uint64_t ino, char *buf, size_t n);
int fs_statfs(struct fs *fs, struct statvfs *out);
/* Return counters and the use of cache and handles as a JSON object (malloc'ed text);
 * NULL when out of memory. */
char *fs_stats_json(struct fs *fs);
/* Copy the sentence of the last error of a read of `ino` to `buf`, "" if there was none. */
void fs_last_error(struct fs *fs, uint64_t ino, char *buf, size_t n);
struct tree *fs_tree(struct fs *fs);

#endif
