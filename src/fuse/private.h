/* SPDX-License-Identifier: BSD-2-Clause */
/* What fuse.c (the session), mount.c, where.c, loop.c and ops.c share. */
#ifndef FUSE_PRIVATE_H
#define FUSE_PRIVATE_H

#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdatomic.h>

#include "fuse/fuse.h"
#include "readahead/follow.h"
#include "readahead/guess.h"
#include "readahead/readahead.h"

/* The largest READ in bytes; the kernel's own limit is 256 pages. */
#define FUSE_FACE_READ_MAX (1u << 20)
/* The buffer in bytes that the kernel demands for a read(2) of /dev/fuse: the largest
 * request with its headers. */
#define FUSE_FACE_REQUEST_MAX (FUSE_FACE_READ_MAX + 8192)

struct fuse_face {
	struct fs *fs;
	struct fuse_session *session;
	char *mountpoint; /* absolute, or /dev/fd/N */
	dev_t device;     /* device number of our mount; 0 if not known */
	unsigned threads, timeout;
	bool debug, mounted, prefetch;
	bool moved; /* a directory above the mount point was renamed */
	/* the buffer of the thread that answers requests before the workers start */
	struct fuse_buf first;
	/* Set while the mount is served; NULL if files are not read ahead. */
	struct room *room;
	struct readahead *readahead;
	struct guess *guess;
	struct follow *follow;
	const struct follow_order *order; /* NULL if the order is not known */
	bool stateless;                   /* opens are answered with ENOSYS */
	bool connected;                   /* INIT was received */
	_Atomic unsigned opens;           /* files and directories open now */
	_Atomic bool active; /* a request came since the watcher last checked */
	/* A free buffer of FUSE_FACE_READ_MAX bytes for the next listing; NULL if it is
	 * in use or not yet allocated. */
	_Atomic(char *) listing;
	/* The watcher that ends an idle session. */
	pthread_mutex_t lock; /* protects `finished` */
	pthread_cond_t wake;
	bool finished;
	pthread_t watcher, server;
};

/* The number by which the kernel calls the inode `ino`, and back: it is its own inverse,
 * and the root stays 1.  The kernel finds inodes by a hash that barely stirs the upper
 * bits, and the first nodes of all directories (tree.h) have equal lower ones: listing
 * 20 000 data sets took 16 s of system time in its chains. */
static inline uint64_t fuse_nodeid(uint64_t ino)
{
	return ino ^ ino >> 40;
}

/* Return whether the mount point is an open descriptor, /dev/fd/N. */
bool fuse_face_on_fd(const char *mountpoint);
/* Return whether our mount is at the mount point now.  Asks no daemon, so it does not
 * block. */
bool fuse_face_is_there(const struct fuse_face *f);
/* Find our mount, also after a rename; f->mountpoint is updated.  Return false if it is
 * nowhere. */
bool fuse_face_find(struct fuse_face *f);
/* Unmount what is at `path`.  Return 0; -EBUSY if it is in use; -ENOENT if this process
 * may not unmount and there is no fusermount3. */
int fuse_unmount_path(const char *path, bool lazy);
/* Unmount unless it is unmounted already. */
void fuse_face_unmount(struct fuse_face *f);

/* Receive a request, which the caller passes to fuse_session_process_buf.  buf->mem is
 * malloc'ed if it is NULL, and kept for the next request.  Blocks.  Return its size in
 * bytes, 0 if the mount was unmounted, or -EINTR, -EAGAIN, -ENOMEM or another -errno. */
int fuse_receive(struct fuse_session *session, struct fuse_buf *buf);
/* Answer requests in the calling thread until the session ends, or *enough is true after
 * a request (`enough` may be NULL).  Return 0 or -errno. */
int fuse_loop_alone(struct fuse_session *session, struct fuse_buf *buf,
		    const bool *enough);
/* Answer requests with up to `threads` threads until the session ends; every request
 * that was received is answered by then.  Return 0; -ENOMEM if no thread had memory;
 * another -errno if the connection broke. */
int fuse_loop(struct fuse_session *session, unsigned threads);

/* The operations; their user data is the struct fuse_face. */
extern const struct fuse_lowlevel_ops fuse_face_ops;

#endif
