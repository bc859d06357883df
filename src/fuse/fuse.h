/* SPDX-License-Identifier: BSD-2-Clause */
/* The FUSE face: the only code that knows libfuse. */
#ifndef FUSE_FUSE_H
#define FUSE_FUSE_H

#include "fs/fs.h"
#include "readahead/follow.h"

struct fuse_face_options {
	const char *mountpoint; /* a directory, or /dev/fd/N */
	const char *fsname;     /* what mount(8) shows as source */
	bool allow_other, allow_root;
	bool check_modes; /* the kernel enforces owner and modes; without, who
			     may enter at all may read all, which saves 0.3 us
			     an open */
	bool debug;       /* libfuse's own request trace, on stderr */
	bool prefetch;    /* push small files into the page cache */
	/* In which samples will be read; NULL: nobody knows.  Borrowed. */
	const struct follow_order *order;
	unsigned threads; /* 1: single-threaded loop */
	unsigned timeout; /* idle seconds until unmount; 0: never, and
	                           the mount is stateless (no opens) */
};
struct fuse_face;
/* Ask the kernel for the mount.  No thread is started.  -ENODEV: no /dev/fuse;
 * -EPERM, -EBUSY, ... each with a sentence that says what to do. */
int fuse_face_mount(struct fuse_face **out, const struct fuse_face_options *o,
		    struct fs *fs, struct error *err);
/* Serve until unmounted, idle for `timeout`, or SIGINT, SIGTERM, SIGHUP; calls
 * `ready` once the kernel's INIT has been answered (the mount is usable).
 * Unmounts before it returns.  May be called in a child of the process that
 * mounted.  0, or -errno when the session broke. */
int fuse_face_serve(struct fuse_face *f, void (*ready)(void *), void *ctx,
		    struct error *err);
/* Unmounts if still mounted. */
void fuse_face_free(struct fuse_face *f);
/* May this process mount as it is: by itself, or with fusermount3? */
bool fuse_face_may_mount(void);
/* libfuse's version, for --version. */
const char *fuse_face_version(void);

#endif
