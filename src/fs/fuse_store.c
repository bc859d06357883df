/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes for the kernel's page cache that it did not ask for: FUSE_NOTIFY_STORE. */
/*
 * Storing waits, uninterruptibly, for a page that a READ has locked.  Alive, we answer
 * the READ.  But when the process is killed, the one thread that waits keeps it from
 * dying, so that /dev/fuse stays open, the READ is never answered, and its reader hangs
 * for good with our thread.  Two things see to it that this does not happen:
 *
 *   a table     The storing thread has descriptors of its own: a clone of the
 *     of its    connection, and not the connection itself.  That is then closed with
 *     own       the others' table, which fails the READs that were being answered.
 *   a guard     A small process has the clone, too.  Told by a pipe that the table of
 *               the others is gone, it fails what is asked from then on, also by
 *               readers who try again, until another pipe tells it that the storing
 *               thread is gone; the connection ends with the guard.
 *
 *     daemon   [ workers ... ] /dev/fuse, alive        storing thread   clone, storing
 *     guard    clone, other ends of alive and storing
 *
 * Only the guard has those other ends, so that the storing thread sees when it is gone,
 * and stores no more.  Where a clone cannot be had (no /dev/fuse in this container)
 * nothing is stored.  When daemon and guard are killed at one instant while a READ that
 * no worker has taken is waited for, nobody is left to fail it: then the connection has
 * to be aborted from outside.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/descriptors.h"
#include "fs/fuse_private.h"

/* Of iovecs: a whole small file in one piece is all that is pushed. */
#define PIECES 8

struct fuse_store {
	int clone;
	int alive[2];   /* the second is open as long as the workers are */
	int storing[2]; /* ... as the storing thread */
	bool apart;     /* it has its own table */
	pid_t guard;
};

/* ---- the guard: forked among threads, it only makes system calls ------------ */

/* Fail one request. */
static void refuse(int clone, void *request)
{
	const struct fuse_in_header *in = request;
	struct fuse_out_header out = {.len = sizeof out, .error = -ENOTCONN};
	ssize_t n = read(clone, request, FUSE_FACE_REQUEST_MAX);

	if (n < (ssize_t)sizeof *in || in->opcode == FUSE_FORGET ||
	    in->opcode == FUSE_BATCH_FORGET || in->opcode == FUSE_INTERRUPT)
		return;
	out.unique = in->unique;
	/* Of no use to anybody when it fails. */
	n = write(clone, &out, sizeof out);
	(void)n;
}

static bool has_ended(int fd, int wait)
{
	struct pollfd p = {.fd = fd};

	return poll(&p, 1, wait) == 1 && (p.revents & POLLHUP);
}

static void guard(const struct fuse_store *s)
{
	const int keep[] = {s->clone, s->alive[0], s->storing[0]};
	void *request =
		mmap(NULL, FUSE_FACE_REQUEST_MAX, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	/* What is sent to the daemon's group is not for it. */
	setsid();
	if (!descriptors_keep_only(keep, 3, 0))
		_exit(1);
	while (!has_ended(s->alive[0], -1))
		;
	while (request != MAP_FAILED && !has_ended(s->storing[0], 0)) {
		struct pollfd p[] = {{.fd = s->clone, .events = POLLIN},
				     {.fd = s->storing[0]}};

		if (poll(p, 2, -1) < 0 || p[0].revents & POLLERR)
			break;
		if (p[0].revents & POLLIN)
			refuse(s->clone, request);
	}
	_exit(0);
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* No signal is for it: it ends when the daemon has.  It has its name from the
 * beginning, so that nobody takes it for the daemon. */
static int start_guard(struct fuse_store *s, struct error *err)
{
	sigset_t all, old;
	char name[16];

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	prctl(PR_GET_NAME, name);
	prctl(PR_SET_NAME, "tensorfs-guard");
	s->guard = fork();
	if (s->guard == 0)
		guard(s);
	prctl(PR_SET_NAME, name);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (s->guard < 0)
		return error_errno(err, -errno, "cannot fork");
	close_one(&s->alive[0]);
	close_one(&s->storing[0]);
	return 0;
}

/* ---- storing --------------------------------------------------------------- */

/* The calling thread leaves the table of the others. */
static int step_apart(struct fuse_store *s)
{
	const int keep[] = {s->clone, s->storing[1]};

	if (close_range(UINT32_MAX, UINT32_MAX, CLOSE_RANGE_UNSHARE) < 0 &&
	    unshare(CLONE_FILES) < 0)
		return -errno;
	if (!descriptors_keep_only(keep, 2, 3))
		return -EIO;
	s->apart = true;
	return 0;
}

/* While somebody waits for an answer, that comes first; not for ever.  False: there is
 * no guard any more, who alone read the pipe. */
static bool after_requests(const struct fuse_store *s)
{
	struct pollfd p[] = {{.fd = s->clone, .events = POLLIN},
			     {.fd = s->storing[1]}};

	for (unsigned i = 0; i < 8 && poll(p, 2, 0) > 0; i++) {
		if (p[1].revents)
			return false;
		sched_yield();
	}
	return true;
}

int fuse_store_put(void *ctx, uint64_t ino, uint64_t off,
		   const struct iovec *iov, unsigned niov)
{
	struct fuse_store *s = ctx;
	struct fuse_notify_store_out store = {.nodeid = fuse_nodeid(ino),
					      .offset = off};
	struct fuse_out_header out = {.error = FUSE_NOTIFY_STORE};
	struct iovec v[PIECES + 2];
	size_t len = 0;
	int r;

	if (!s->apart) {
		r = step_apart(s);
		if (r < 0)
			return r == -ENOENT ? -EIO : r;
	}
	if (niov > PIECES)
		return -EINVAL;
	v[0] = (struct iovec){&out, sizeof out};
	v[1] = (struct iovec){&store, sizeof store};
	for (unsigned i = 0; i < niov; i++) {
		v[2 + i] = iov[i];
		len += iov[i].iov_len;
	}
	if (len > UINT32_MAX / 2)
		return -EINVAL;
	store.size = (uint32_t)len;
	out.len = (uint32_t)(sizeof out + sizeof store + len);
	if (!after_requests(s))
		return -EOWNERDEAD;
	return writev(s->clone, v, (int)niov + 2) < 0 ? -errno : 0;
}

/* ---- life ------------------------------------------------------------------ */

void fuse_store_free(struct fuse_store *s)
{
	if (!s)
		return;
	/* In this order: the guard is to find that there is nothing to do. */
	close_one(&s->storing[1]);
	close_one(&s->alive[1]);
	close_one(&s->storing[0]);
	close_one(&s->alive[0]);
	close_one(&s->clone);
	while (s->guard > 0 && waitpid(s->guard, NULL, 0) < 0 && errno == EINTR)
		;
	free(s);
}

/* Reading it never waits: what poll saw may be gone again, and the guard has more to
 * watch.  Stores do wait. */
static int open_clone(int connection)
{
	uint32_t master = (uint32_t)connection;
	cleanup_close int fd =
		open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || ioctl(fd, FUSE_DEV_IOC_CLONE, &master) < 0)
		return -errno;
	return steal_fd(&fd);
}

int fuse_store_new(struct fuse_store **out, int connection, struct error *err)
{
	struct fuse_store *s = calloc(1, sizeof *s);
	int r;

	*out = NULL;
	if (!s)
		return error_set(err, -ENOMEM, "out of memory");
	s->alive[0] = s->alive[1] = s->storing[0] = s->storing[1] = -1;
	s->clone = open_clone(connection);
	if (s->clone < 0)
		r = error_errno(err, s->clone,
				"/dev/fuse cannot be opened again");
	else if (pipe2(s->alive, O_CLOEXEC) < 0 ||
		 pipe2(s->storing, O_CLOEXEC) < 0)
		r = error_errno(err, -errno, "cannot make a pipe");
	else
		r = start_guard(s, err);
	if (r < 0) {
		fuse_store_free(s);
		return r;
	}
	*out = s;
	return 0;
}
