/* SPDX-License-Identifier: BSD-2-Clause */
/* Has the kernel read files of the daemon's own mount before readers ask for them. */
/*
 *	daemon    paths of files ---socket---> helper   open, fadvise(WILLNEED), close
 *	  ^                                       |
 *	  '------------ READs, asynchronous ------'     for which no process waits
 *
 * The helper is a process of its own, because a thread that waits for an answer of its
 * own process cannot be killed with it.  A thread cannot leave the kernel while it waits
 * for a request that a worker has taken.  The wait would end when /dev/fuse is closed;
 * but that is closed when the last thread of the process has left.  The helper has no
 * descriptor of /dev/fuse and shares no table of descriptors with the daemon.  So
 * whichever of the two is killed, and when, the daemon ends without the helper; its end
 * closes the connection; and that ends every wait of the helper and of readers.
 *
 * The helper holds no file and no directory between two files, because then the mount
 * could not be unmounted: each file is opened by its path from the root.  While a file is
 * open, mostly for 10 us, umount(2) returns EBUSY.  If the mount is moved, the path leads
 * to something else, which the device number shows: then the helper ends.  Until that is
 * known it may have opened one file there, but none that blocks or becomes its terminal.
 */
#include "readahead/readahead.h"

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
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/counters.h"
#include "base/descriptors.h"
#include "base/log.h"

/* Most bytes and files of one message, which consists of paths, each with its NUL. */
#define MESSAGE 4096
#define MESSAGE_FILES 16
/* Bytes of queued messages, as the kernel counts them (twice the bytes, and 256 or more
 * for each message): at most 13 messages, with fewer files than COURSE_SENDING. */
#define WAITING 8192
/* Seconds after which a helper that takes no message is given up. */
#define PATIENCE 10
/* Most bytes that the kernel reads for one advice: the readahead of a FUSE mount. */
#define ADVICE (128 << 10)
/* How many times to check for the end of a killed helper, and nanoseconds between two
 * checks. */
#define END_LOOKS 200
#define END_PAUSE (10 * 1000 * 1000)

struct readahead {
	const struct tree *tree;
	pid_t pid;
	int socket;
	_Atomic bool gone;
};

/* ---- the helper: forked among threads, it only makes system calls ----------- */

/* Ask the kernel to read a file; one that cannot be opened is left to its reader.
 * Returns false if the mount is not there any more. */
static bool ask_kernel(const char *path, const char *mountpoint, dev_t device)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW |
				    O_CLOEXEC);

	if (fd < 0)
		return stat(mountpoint, &st) == 0 &&
		       (!device || st.st_dev == device);
	if (fstat(fd, &st) < 0 || (device && st.st_dev != device)) {
		close(fd);
		return false;
	}
	for (off_t at = 0; S_ISREG(st.st_mode) && at < st.st_size; at += ADVICE)
		posix_fadvise(fd, at, ADVICE, POSIX_FADV_WILLNEED);
	close(fd);
	return true;
}

static void helper_run(int fd, const char *mountpoint, dev_t device,
		       pid_t daemon)
{
	char message[MESSAGE], path[PATH_MAX + MESSAGE + 1];
	size_t root = strlen(mountpoint);
	ssize_t n;

	/* Without this, a helper that is stopped would outlive the daemon. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Signals to the daemon's process group are not for the helper, nor may it hold
	 * the daemon's working directory. */
	setsid();
	if (getppid() != daemon || !descriptors_keep_only(&fd, 1, 0) ||
	    chdir("/") < 0 || root > PATH_MAX)
		_exit(1);
	memcpy(path, mountpoint, root);
	while ((n = recv(fd, message, sizeof message, 0)) > 0) {
		size_t len;

		for (char *p = message; p < message + n; p += len + 1) {
			len = strnlen(p, (size_t)(message + n - p));
			memcpy(path + root, p, len);
			path[root + len] = '\0';
			if (!ask_kernel(path, mountpoint, device))
				_exit(0);
		}
	}
	_exit(0);
}

/* Fork the helper with all signals blocked: it ends when the daemon has.  It has its own
 * name from the beginning, so that it is not taken for the daemon. */
static int helper_start(struct readahead *r, int theirs, const char *mountpoint,
			dev_t device, struct error *err)
{
	const struct sigaction reaped = {.sa_handler = SIG_DFL};
	pid_t daemon = getpid();
	sigset_t all, old;
	char name[16];

	/* With SIGCHLD at its default the kernel keeps the helper's process number until
	 * it is waited for. */
	sigaction(SIGCHLD, &reaped, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	prctl(PR_GET_NAME, name);
	prctl(PR_SET_NAME, "tensorfs-ahead");
	r->pid = fork();
	if (r->pid == 0)
		helper_run(theirs, mountpoint, device, daemon);
	prctl(PR_SET_NAME, name);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r->pid < 0 ? error_errno(err, -errno, "cannot fork") : 0;
}

/* ---- the daemon -------------------------------------------------------------- */

static int send_message(struct readahead *r, const char *message, size_t n,
			unsigned files)
{
	ssize_t sent;

	if (!n)
		return 0;
	do
		sent = send(r->socket, message, n, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent >= 0)
		counter_add(COUNT_FILES_AHEAD, files);
	/* If there is no memory for the message, its files are left to their readers. */
	if (sent >= 0 || errno == ENOBUFS || errno == ENOMEM)
		return 0;
	if (!atomic_exchange(&r->gone, true))
		log_warn("files are not read ahead any more: the helper "
			 "process tensorfs-ahead has ended");
	return -EPIPE;
}

int readahead_files(void *ctx, const uint64_t *ino, unsigned n)
{
	struct readahead *r = ctx;
	unsigned files = 0;
	char message[MESSAGE];
	size_t used = 0;
	int code = 0;

	for (unsigned i = 0; i < n && code == 0; i++) {
		char path[MESSAGE];
		size_t len;

		if (tree_path(r->tree, ino[i], path, sizeof path) < 0)
			continue;
		len = strlen(path) + 1;
		if (used + len > sizeof message || files == MESSAGE_FILES) {
			code = send_message(r, message, used, files);
			used = files = 0;
		}
		memcpy(message + used, path, len);
		used += len;
		files++;
	}
	return code < 0 ? code : send_message(r, message, used, files);
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
	const struct timespec pause = {.tv_nsec = END_PAUSE};

	if (!r)
		return;
	readahead_stop(r);
	for (int i = 0; i < END_LOOKS && waitpid(r->pid, NULL, WNOHANG) == 0;
	     i++)
		nanosleep(&pause, NULL);
	close(r->socket);
	free(r);
}

int readahead_new(struct readahead **out, const struct tree *tree,
		  const char *mountpoint, dev_t device, struct error *err)
{
	struct readahead *r = calloc(1, sizeof *r);
	const struct timeval patience = {.tv_sec = PATIENCE};
	const int waiting = WAITING;
	cleanup_close int theirs = -1;
	int pair[2], code;

	*out = NULL;
	if (!r)
		return error_no_memory(err, "reading files ahead");
	r->tree = tree;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		code = error_errno(err, -errno, "cannot make a socket");
		free(r);
		return code;
	}
	r->socket = pair[0];
	theirs = pair[1];
	setsockopt(r->socket, SOL_SOCKET, SO_SNDBUF, &waiting, sizeof waiting);
	setsockopt(r->socket, SOL_SOCKET, SO_SNDTIMEO, &patience,
		   sizeof patience);
	code = helper_start(r, theirs, mountpoint, device, err);
	if (code < 0) {
		close(r->socket);
		free(r);
		return code;
	}
	*out = r;
	return 0;
}
