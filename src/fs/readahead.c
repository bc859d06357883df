/* SPDX-License-Identifier: BSD-2-Clause */
/* Have the kernel read files of our own mount ahead of their readers. */
/*
 *	daemon    paths of files ---socket---> helper   open, posix_fadvise(WILLNEED), close
 *	  ^                                       |
 *	  '------------ READs, asynchronous ------'     of which nobody waits for one
 *
 * The helper is a process of its own, because a thread that waits for an answer of its own
 * process cannot be killed with it: the kernel lets nobody leave who waits for a request
 * that was taken, and /dev/fuse is closed, which would end the wait, when the last thread
 * is gone.  The helper has no descriptor of /dev/fuse and shares no table of descriptors
 * with us.  So whatever is killed when, we end without it, our end closes the connection,
 * and that ends every wait of the helper and of readers.
 *
 * It holds no file and no directory between two files, or the mount could not be unmounted:
 * each is opened by its path from the root.  While it has one open (10 us) umount(2) says
 * EBUSY.  What it opens is of the user's own mount, or, if he has moved that, whatever he
 * put there: so nothing is opened that waits or is a terminal.
 */
#include "fs/readahead.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/counters.h"
#include "base/descriptors.h"
#include "base/log.h"

/* Bytes of one message: paths, each with its NUL. */
#define MESSAGE 4096
/* Bytes of messages that wait, as the kernel counts them: about a hundred files. */
#define WAITING 8192

struct readahead {
	const struct tree *tree;
	pid_t pid;
	int socket;
	_Atomic bool gone;
};

/* ---- the helper: forked among threads, it only makes system calls ----------- */

/* What fails is for its reader to find out. */
static void ask_kernel(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW |
				    O_CLOEXEC);

	if (fd < 0)
		return;
	posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED);
	close(fd);
}

static void help(int fd, const char *mountpoint)
{
	char message[MESSAGE], path[PATH_MAX + MESSAGE];
	size_t root = strlen(mountpoint);
	ssize_t n;

	/* What is sent to the daemon's group is not for it; nor is its directory. */
	setsid();
	if (!descriptors_keep_only(&fd, 1, 0) || chdir("/") < 0 ||
	    root > PATH_MAX)
		_exit(1);
	memcpy(path, mountpoint, root);
	while ((n = recv(fd, message, sizeof message, 0)) > 0) {
		size_t len;

		for (char *p = message; p < message + n; p += len + 1) {
			len = strnlen(p, (size_t)(message + n - p));
			memcpy(path + root, p, len);
			path[root + len] = '\0';
			ask_kernel(path);
		}
	}
	_exit(0);
}

/* No signal is for it: it ends when the daemon has.  It has its name from the
 * beginning, so that nobody takes it for the daemon. */
static int start(struct readahead *r, int theirs, const char *mountpoint,
		 struct error *err)
{
	sigset_t all, old;
	char name[16];

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	prctl(PR_GET_NAME, name);
	prctl(PR_SET_NAME, "tensorfs-ahead");
	r->pid = fork();
	if (r->pid == 0)
		help(theirs, mountpoint);
	prctl(PR_SET_NAME, name);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r->pid < 0 ? error_errno(err, -errno, "cannot fork") : 0;
}

/* ---- the daemon -------------------------------------------------------------- */

static int send_message(struct readahead *r, const char *message, size_t n)
{
	ssize_t sent;

	if (!n)
		return 0;
	do
		sent = send(r->socket, message, n, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent >= 0)
		return 0;
	if (!atomic_exchange(&r->gone, true))
		log_warn("files are not read ahead any more: tensorfs-ahead, "
			 "the process that does it, is gone");
	return -EPIPE;
}

int readahead_files(void *ctx, const uint64_t *ino, unsigned n)
{
	struct readahead *r = ctx;
	char message[MESSAGE];
	size_t used = 0;
	int code = 0;

	for (unsigned i = 0; i < n && code == 0; i++) {
		char path[MESSAGE];
		size_t len;

		if (tree_path(r->tree, ino[i], path, sizeof path) < 0)
			continue;
		len = strlen(path) + 1;
		if (used + len > sizeof message) {
			code = send_message(r, message, used);
			used = 0;
		}
		memcpy(message + used, path, len);
		used += len;
	}
	if (code == 0)
		code = send_message(r, message, used);
	if (code == 0)
		counter_add(COUNT_FILES_AHEAD, n);
	return code;
}

bool readahead_sent(const struct readahead *r, pid_t pid)
{
	return r && pid == r->pid;
}

void readahead_stop(struct readahead *r)
{
	if (!r)
		return;
	atomic_store(&r->gone, true);
	kill(r->pid, SIGKILL);
	shutdown(r->socket, SHUT_RDWR);
}

void readahead_free(struct readahead *r)
{
	if (!r)
		return;
	readahead_stop(r);
	while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
		;
	close(r->socket);
	free(r);
}

int readahead_new(struct readahead **out, const struct tree *tree,
		  const char *mountpoint, struct error *err)
{
	struct readahead *r = calloc(1, sizeof *r);
	const int waiting = WAITING;
	cleanup_close int theirs = -1;
	int pair[2], code;

	*out = NULL;
	if (!r)
		return error_set(err, -ENOMEM, "out of memory");
	r->tree = tree;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		code = error_errno(err, -errno, "cannot make a socket");
		free(r);
		return code;
	}
	r->socket = pair[0];
	theirs = pair[1];
	setsockopt(r->socket, SOL_SOCKET, SO_SNDBUF, &waiting, sizeof waiting);
	code = start(r, theirs, mountpoint, err);
	if (code < 0) {
		close(r->socket);
		free(r);
		return code;
	}
	*out = r;
	return 0;
}
