/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes in which libhdf5 may crash without taking the mount with it. */
/*
 * libhdf5 crashes, or never returns, on some damaged files.  In a mount of a
 * thousand good parts that must cost one error.  So a mount asks the library in
 * worker processes:
 *
 *     daemon, many threads       zygote, one thread         worker
 *       isolate_start --fork-----> waits
 *       SPAWN, a socket ---------> fork ------------------> serves the socket
 *       request <-----------------------------------------> answer
 *                                                           crashes
 *       end of file
 *       REAP, a pid -------------> waitpid
 *             <-- wait status ----
 *
 * The zygote is forked when the tree is built and no thread runs yet.  It and its
 * children are copies of the daemon at that time, so an address of something in the
 * tree means the same in all of them.  A process with threads cannot be
 * forked safely; the zygote can, at any time.
 *
 * Descriptors of source files stay open in the zygote, for its copy of the
 * table of handles knows their numbers.  All else is closed, the FUSE device
 * above all: the kernel ends a mount when the last holder of it is gone.
 *
 * Each process exits at the end of file of its socket.  For the zygote that is when
 * the daemon has ended in any way; the zygote then kills the workers and reaps them.
 * The zygote and the workers ignore signals to the process group, which would end
 * them before the daemon has unmounted.  A pid is reaped only when the daemon no longer
 * uses it, so that a signal never reaches an unrelated process.
 */
#include "formats/hdf5/worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "base/system.h"

/* A worker that is silent for this time counts as lost. */
#define SILENCE_MS 60000
/* Memory that damaged data may talk the library into asking for. */
#define WORKER_GROWTH (UINT64_C(1) << 30)

enum { SPAWN, REAP };
struct question {
	int what;
	pid_t pid; /* REAP */
};
struct answer {
	pid_t pid; /* SPAWN: or -errno */
	int status;
};

/* ---- either side --------------------------------------------------------- */

bool hdf5_read_all(int fd, void *data, size_t n)
{
	char *at = data;

	while (n) {
		ssize_t got = read(fd, at, n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		at += got;
		n -= (size_t)got;
	}
	return true;
}

bool hdf5_write_all(int fd, const void *data, size_t n)
{
	const char *at = data;

	while (n) {
		ssize_t put = send(fd, at, n, MSG_NOSIGNAL);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return false;
		at += put;
		n -= (size_t)put;
	}
	return true;
}

/* ---- the zygote ---------------------------------------------------------- */

static const char title[] = "tensorfs: libhdf5";

/* Show another name than the daemon's in lists of processes: overwrite the
 * arguments, which begin where the program's name is. */
static void zygote_set_title(void)
{
	cleanup_close int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	char *args = program_invocation_name, is[4096];
	ssize_t n = fd < 0 ? -1 : read(fd, is, sizeof is);

	prctl(PR_SET_NAME, "tensorfs-hdf5");
	if (n <= (ssize_t)sizeof title || memcmp(args, is, (size_t)n))
		return;
	if ((size_t)n == sizeof is) /* there is more: show what fits */
		n--;
	memset(args, 0, (size_t)n);
	memcpy(args, title, sizeof title);
}

/* Close all descriptors but standard streams, source files, directories and
 * `control`. */
static void zygote_close_others(int control)
{
	DIR *d;
	struct dirent *e;
	struct stat st;

	closelog();
	d = opendir("/proc/self/fd");
	while (d && (e = readdir(d))) {
		int fd = atoi(e->d_name);

		if (fd <= STDERR_FILENO || fd == control || fd == dirfd(d) ||
		    fstat(fd, &st) < 0 || S_ISREG(st.st_mode) ||
		    S_ISDIR(st.st_mode))
			continue;
		close(fd);
	}
	if (d)
		closedir(d);
}

static void redirect_to_null(int first, int last)
{
	cleanup_close int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = first; fd >= 0 && i <= last; i++)
		dup2(fd, i);
}

static void zygote_init(int control, bool keep_stderr)
{
	static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT,
				      SIGPIPE};
	const struct rlimit none = {0, 0};

	for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
		signal(ignored[i], SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	setrlimit(RLIMIT_CORE, &none);
	redirect_to_null(STDIN_FILENO,
			 keep_stderr ? STDOUT_FILENO : STDERR_FILENO);
	zygote_close_others(control);
	zygote_set_title();
}

/* Receive a question and, for SPAWN, its socket. Return false at the end of file. */
static bool zygote_receive(int control, struct question *q, int *fd)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} u;
	struct iovec io = {q, sizeof *q};
	struct msghdr m = {.msg_iov = &io,
			   .msg_iovlen = 1,
			   .msg_control = &u,
			   .msg_controllen = sizeof u};
	struct cmsghdr *c;
	ssize_t n;

	do
		n = recvmsg(control, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	*fd = -1;
	c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(c), sizeof *fd);
	return n == (ssize_t)sizeof *q;
}

static pid_t zygote_spawn_worker(int control, int fd)
{
	pid_t zygote = getpid(), pid;

	if (fd < 0)
		return -EMFILE;
	pid = fork();
	if (pid)
		return pid < 0 ? -errno : pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(control);
	system_limit_growth(WORKER_GROWTH);
	if (getppid() == zygote)
		hdf5_worker_serve(fd);
	_exit(0);
}

/* Wait for a child whose socket is closed or that was killed. It ends at once unless
 * it waits for a file system that does not answer, so give up after a second. */
static int reap_child(pid_t pid)
{
	const struct timespec pause = {0, 5000000};
	int status = 0;

	for (int i = 0; i < 200; i++) {
		if (waitpid(pid, &status, WNOHANG) != 0)
			return status;
		nanosleep(&pause, NULL);
	}
	return 0;
}

static _Noreturn void zygote_run(int control)
{
	pid_t live[HDF5_WORKERS_MAX] = {0};
	struct question q;
	int fd;

	while (zygote_receive(control, &q, &fd)) {
		pid_t from = q.what == SPAWN ? 0 : q.pid, to = 0;
		struct answer a = {0, 0};

		if (q.what == SPAWN)
			a.pid = to = zygote_spawn_worker(control, fd);
		else
			a.status = reap_child(q.pid);
		for (int i = 0; i < HDF5_WORKERS_MAX; i++)
			if (live[i] == from) {
				live[i] = to > 0 ? to : 0;
				break;
			}
		if (fd >= 0)
			close(fd);
		send(control, &a, sizeof a, MSG_NOSIGNAL);
	}
	for (int i = 0; i < HDF5_WORKERS_MAX; i++)
		if (live[i] > 0) {
			kill(live[i], SIGKILL);
			reap_child(live[i]);
		}
	_exit(0);
}

/* ---- the daemon ---------------------------------------------------------- */

static struct {
	pthread_mutex_t lock; /* guards `worker[].busy` */
	pthread_cond_t freed;
	/* Held while the zygote is asked: it answers without I/O on sources. */
	pthread_mutex_t asking;
	int control; /* -1: calls are made in this process */
	pid_t zygote;
	unsigned n;
	struct hdf5_worker worker[HDF5_WORKERS_MAX];
} iso = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.freed = PTHREAD_COND_INITIALIZER,
	.asking = PTHREAD_MUTEX_INITIALIZER,
	.control = -1,
};

bool hdf5_isolated(void)
{
	return iso.control >= 0;
}

int hdf5_isolate_start(bool keep_stderr, struct error *err)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return error_errno(err, -errno, "cannot make a socket");
	fflush(NULL);
	pid = fork();
	if (pid < 0) {
		int r = error_errno(err, -errno, "cannot fork");

		close(pair[0]);
		close(pair[1]);
		return r;
	}
	if (pid == 0) {
		close(pair[0]);
		zygote_init(pair[1], keep_stderr);
		zygote_run(pair[1]);
	}
	close(pair[1]);
	iso.zygote = pid;
	iso.n = (unsigned)min_u64(system_cores(), HDF5_WORKERS_MAX);
	for (unsigned i = 0; i < HDF5_WORKERS_MAX; i++)
		iso.worker[i] = (struct hdf5_worker){.fd = -1};
	iso.control = pair[0];
	return 0;
}

void hdf5_isolate_stop(void)
{
	if (iso.control < 0)
		return;
	for (unsigned i = 0; i < iso.n; i++)
		if (iso.worker[i].fd >= 0)
			close(iso.worker[i].fd);
	close(iso.control);
	iso.control = -1;
	while (waitpid(iso.zygote, NULL, 0) < 0 && errno == EINTR)
		;
}

/* Ask the zygote; pass it a descriptor if fd >= 0. */
static int ask_zygote(const struct question *q, int fd, struct answer *a)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} u = {.space = {0}};
	struct iovec io = {(void *)q, sizeof *q};
	struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1};
	ssize_t n;

	if (fd >= 0) {
		m.msg_control = &u;
		m.msg_controllen = sizeof u;
		u.head.cmsg_level = SOL_SOCKET;
		u.head.cmsg_type = SCM_RIGHTS;
		u.head.cmsg_len = CMSG_LEN(sizeof fd);
		memcpy(CMSG_DATA(&u.head), &fd, sizeof fd);
	}
	lock_scope(&iso.asking);
	do
		n = sendmsg(iso.control, &m, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	do
		n = recv(iso.control, a, sizeof *a, 0);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof *a ? 0 : -EPIPE;
}

static int worker_start(struct hdf5_worker *w, struct error *err)
{
	const struct question q = {SPAWN, 0};
	struct answer a;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return error_errno(err, -EIO,
				   "cannot make a socket to read HDF5 files");
	r = ask_zygote(&q, pair[1], &a);
	close(pair[1]);
	if (r == 0 && a.pid < 0)
		r = a.pid;
	if (r < 0) {
		close(pair[0]);
		return r == -EPIPE || r == -ECONNRESET
			       ? error_set(err, -EIO,
					   "the process that starts readers of "
					   "HDF5 files is gone: mount again")
			       : error_set(err, r == -ENOMEM ? r : -EIO,
					   "cannot start a process to read "
					   "HDF5 files: %s",
					   strerror(-r));
	}
	w->fd = pair[0];
	w->pid = a.pid;
	return 0;
}

/* Return a free place, preferably one with a running process; NULL if all are busy. */
static struct hdf5_worker *worker_free(void)
{
	struct hdf5_worker *found = NULL;

	for (unsigned i = 0; i < iso.n; i++) {
		struct hdf5_worker *w = &iso.worker[i];

		if (!w->busy && (!found || found->fd < 0))
			found = w;
	}
	return found;
}

int hdf5_worker_take(struct hdf5_worker **out, struct error *err)
{
	struct hdf5_worker *w;
	int r;

	pthread_mutex_lock(&iso.lock);
	while (!(w = worker_free()))
		pthread_cond_wait(&iso.freed, &iso.lock);
	w->busy = true;
	pthread_mutex_unlock(&iso.lock);
	r = w->fd < 0 ? worker_start(w, err) : 0;
	if (r < 0)
		hdf5_worker_give(w);
	else
		*out = w;
	return r;
}

void hdf5_worker_give(struct hdf5_worker *w)
{
	lock_scope(&iso.lock);
	w->busy = false;
	pthread_cond_signal(&iso.freed);
}

void hdf5_worker_end(struct hdf5_worker *w, char *how, size_t n)
{
	const struct question q = {REAP, w->pid};
	struct answer a = {0, 0};

	/* A worker that crashed is a zombie by now and keeps its own signal. */
	kill(w->pid, SIGKILL);
	close(w->fd);
	if (ask_zygote(&q, -1, &a) < 0)
		a.status = 0;
	if (how && WIFSIGNALED(a.status))
		snprintf(how, n, "%s", strsignal(WTERMSIG(a.status)));
	else if (how)
		snprintf(how, n, "it ended");
	w->fd = -1;
	hdf5_worker_give(w);
}

void hdf5_isolate_let_go(void)
{
	for (unsigned i = 0; i < iso.n; i++) {
		struct hdf5_worker *w = &iso.worker[i];
		bool idle;

		pthread_mutex_lock(&iso.lock);
		idle = !w->busy && w->fd >= 0;
		w->busy = w->busy || idle;
		pthread_mutex_unlock(&iso.lock);
		if (idle)
			hdf5_worker_end(w, NULL, 0);
	}
}

int hdf5_worker_send(struct hdf5_worker *w, const void *data, size_t n)
{
	return hdf5_write_all(w->fd, data, n) ? 0 : -EPIPE;
}

int hdf5_worker_receive(struct hdf5_worker *w, void *data, size_t n)
{
	char *at = data;

	while (n) {
		struct pollfd p = {w->fd, POLLIN, 0};
		int r = poll(&p, 1, SILENCE_MS);
		ssize_t got;

		if (r == 0)
			return -ETIMEDOUT;
		if (r < 0 && errno != EINTR)
			return -EPIPE;
		got = r < 0 ? -1 : recv(w->fd, at, n, MSG_DONTWAIT);
		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got <= 0)
			return -EPIPE;
		at += got;
		n -= (size_t)got;
	}
	return 0;
}
