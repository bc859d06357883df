/* SPDX-License-Identifier: BSD-2-Clause */
/* The FUSE face of the file system; the only code that knows libfuse. */
#ifndef FUSE_FUSE_H
#define FUSE_FUSE_H

#include "fs/fs.h"
#include "readahead/follow.h"

struct fuse_face_options {
	const char *mountpoint; /* a directory, or /dev/fd/N */
	const char *fsname;     /* what mount(8) shows as source */
	bool allow_other, allow_root;
	/* the kernel enforces owner and modes; without it, every user who may enter may
	 * read all files, which saves 0.3 us for each open */
	bool check_modes;
	bool debug;    /* libfuse prints its trace of requests on stderr */
	bool prefetch; /* push small files into the page cache */
	/* The order in which samples will be read, NULL if not known.  Borrowed. */
	const struct follow_order *order;
	unsigned threads; /* 1: one thread answers all requests */
	/* idle seconds until it unmounts itself; 0: never, and then opens cause no
	 * requests */
	unsigned timeout;
};
struct fuse_face;
/* Ask the kernel for the mount; starts no thread.  Return 0; -ENODEV if there is no
 * /dev/fuse; -EPERM, -EBUSY, ...  Each failure has a sentence that says what to do. */
int fuse_face_mount(struct fuse_face **out, const struct fuse_face_options *o,
		    struct fs *fs, struct error *err);
/* Serve until the mount is unmounted or idle for `timeout`, or SIGINT, SIGTERM or SIGHUP
 * comes.  Calls `ready` once the kernel's INIT has been answered (the mount is usable).
 * Unmounts before it returns.  May be called in a child of the process that mounted.
 * Return 0, or -errno when the session broke. */
int fuse_face_serve(struct fuse_face *f, void (*ready)(void *), void *ctx,
		    struct error *err);
/* Free the face; unmounts if it is still mounted. */
void fuse_face_free(struct fuse_face *f);
/* Return whether this process may mount: by itself, or with fusermount3. */
bool fuse_face_may_mount(void);
/* Return libfuse's version, for --version. */
const char *fuse_face_version(void);

#endif
