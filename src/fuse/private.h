/* SPDX-License-Identifier: BSD-2-Clause */
/* What the session (fuse.c), the mount and the requests share. */
#ifndef FUSE_PRIVATE_H
#define FUSE_PRIVATE_H

#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdatomic.h>

#include "fuse/fuse.h"
#include "readahead/follow.h"
#include "readahead/guess.h"
#include "readahead/readahead.h"

/* One request at most; the kernel's own limit is 256 pages. */
#define FUSE_FACE_READ_MAX (1u << 20)
/* What the kernel wants to see in a read(2) of /dev/fuse: that, and headers. */
#define FUSE_FACE_REQUEST_MAX (FUSE_FACE_READ_MAX + 8192)

struct fuse_face {
	struct fs *fs;
	struct fuse_session *session;
	char *mountpoint; /* absolute, or /dev/fd/N */
	dev_t device;     /* of our mount; 0: unknown */
	unsigned threads, timeout;
	bool debug, mounted, prefetch;
	bool moved; /* a directory above the mount point was renamed */
	struct fuse_buf first; /* of the thread that serves before others do */
	/* While it serves; NULL: files are not read ahead. */
	struct room *room;
	struct readahead *readahead;
	struct guess *guess;
	struct follow *follow;
	const struct follow_order *order; /* NULL: none is known */
	bool stateless;                   /* opens are answered ENOSYS */
	bool connected;                   /* INIT came */
	_Atomic unsigned opens;           /* files and directories open now */
	_Atomic bool active; /* a request since the watcher looked */
	/* FUSE_FACE_READ_MAX bytes for who lists next; NULL: in use, or not yet there. */
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

/* Is the mount point an opened descriptor, /dev/fd/N? */
bool fuse_face_on_fd(const char *mountpoint);
/* Is it our mount that is at the mount point now?  Asks nobody's daemon. */
bool fuse_face_is_there(const struct fuse_face *f);
/* The same, wherever it is now: f->mountpoint follows it. */
bool fuse_face_find(struct fuse_face *f);
/* Unmount what is at `path`.  0; -EBUSY; -ENOENT: we may not, and there is no
 * fusermount3. */
int fuse_unmount_path(const char *path, bool lazy);
/* Unmount unless that was done. */
void fuse_face_unmount(struct fuse_face *f);

/* Take a request, which fuse_session_process_buf then answers; buf->mem is malloc'ed for
 * the first.  Bytes; 0: unmounted; -EINTR, -EAGAIN, -ENOMEM, another -errno. */
int fuse_receive(struct fuse_session *session, struct fuse_buf *buf);
/* Answer requests in the calling thread until the session ends, or after one of them
 * *enough (NULL: never).  0; -errno. */
int fuse_loop_alone(struct fuse_session *session, struct fuse_buf *buf,
		    const bool *enough);
/* Answer requests with so many threads until the session ends; by then each that was
 * taken is answered.  0; -ENOMEM: not one thread had memory; another -errno: the
 * connection broke. */
int fuse_loop(struct fuse_session *session, unsigned threads);

/* The requests; user data is the struct fuse_face. */
extern const struct fuse_lowlevel_ops fuse_face_ops;

#endif
