/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the threads that answer requests. */
/*
 * libfuse has such a loop, and fuse_session_receive_buf.  Both drop a request that was
 * taken just before the end (seen in 3.14).  The process that waits for it then hears of the
 * end of the connection only; but ahead_end waits for one such process, the helper
 * (readahead.c), before that end.  Here a worker ends only between two requests.  A request
 * that no worker took stays in the queue, and the process that waits for it can be killed.
 *
 * A worker waits in read(2), where the kernel wakes one for each request (from poll(2) it
 * would wake all of them), and a signal interrupts that read.  The signal may come just
 * before the read, so it is repeated until all workers have ended.
 */
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "fuse/private.h"

#define THREADS_MAX 1024
/* The signal that interrupts a waiting worker.  It does nothing to a thread that does
 * not wait, and has no other use here. */
#define WAKE SIGURG
/* The session's end is checked this often, because a signal may come between the check
 * and the wait. */
#define LOOK_SECONDS 1
#define WAKE_NS (1000 * 1000)

struct worker {
	struct fuse_loop *loop;
	pthread_t thread;
	_Atomic bool waits; /* it waits for a request */
};
struct fuse_loop {
	struct fuse_session *session;
	sem_t ended;         /* posted once by each worker that ends */
	_Atomic int failure; /* -errno of the first worker that failed */
	struct worker worker[];
};

int fuse_receive(struct fuse_session *session, struct fuse_buf *buf)
{
	void *mem = buf->mem ? buf->mem : malloc(FUSE_FACE_REQUEST_MAX);
	ssize_t n;

	if (!mem)
		return -ENOMEM;
	*buf = (struct fuse_buf){.mem = mem};
	do
		n = read(fuse_session_fd(session), mem, FUSE_FACE_REQUEST_MAX);
	while (n < 0 && errno == ENOENT); /* the request was interrupted */
	if (n < 0)
		return errno == ENODEV ? 0 : -errno;
	buf->size = (size_t)n;
	return (int)n;
}

static void wake_up(int sig)
{
	(void)sig;
}

static void fail_loop(struct fuse_loop *l, int r)
{
	int none = 0;

	atomic_compare_exchange_strong(&l->failure, &none, r);
	fuse_session_exit(l->session);
}

/* Wait for a request on a descriptor that was opened non-blocking. */
static void wait_for_request(struct fuse_session *session)
{
	struct pollfd p = {.fd = fuse_session_fd(session), .events = POLLIN};

	poll(&p, 1, -1);
}

static void *serve_requests(void *arg)
{
	struct fuse_buf buf = {.mem = NULL};
	struct worker *w = arg;
	struct fuse_loop *l = w->loop;
	int r = 0;

	while (!fuse_session_exited(l->session)) {
		atomic_store(&w->waits, true);
		r = fuse_receive(l->session, &buf);
		if (r == -EAGAIN)
			wait_for_request(l->session);
		atomic_store(&w->waits, false);
		if (r == -EINTR || r == -EAGAIN)
			continue;
		if (r <= 0)
			break;
		fuse_session_process_buf(l->session, &buf);
	}
	free(buf.mem);
	if (r == 0) /* unmounted */
		fuse_session_exit(l->session);
	/* A worker without memory leaves the work to the others. */
	if (r < 0 && r != -EINTR && r != -EAGAIN && r != -ENOMEM)
		fail_loop(l, r);
	sem_post(&l->ended);
	return NULL;
}

/* Start the workers.  Return how many were started. */
static unsigned start_workers(struct fuse_loop *l, unsigned threads)
{
	sigset_t most, old;
	unsigned n = 0;
	char name[16];

	sigfillset(&most);
	sigdelset(&most, WAKE);
	pthread_sigmask(SIG_SETMASK, &most, &old);
	while (n < threads) {
		struct worker *w = &l->worker[n];

		w->loop = l;
		if (pthread_create(&w->thread, NULL, serve_requests, w))
			break;
		snprintf(name, sizeof name, "serve-%u", n++ % 10000);
		pthread_setname_np(w->thread, name);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return n;
}

static void stop_workers(struct fuse_loop *l, unsigned n, unsigned ended)
{
	while (ended < n) {
		struct timespec until;

		for (unsigned i = 0; i < n; i++)
			if (atomic_load(&l->worker[i].waits))
				pthread_kill(l->worker[i].thread, WAKE);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += WAKE_NS;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		while (sem_timedwait(&l->ended, &until) == 0)
			ended++;
	}
	for (unsigned i = 0; i < n; i++)
		pthread_join(l->worker[i].thread, NULL);
}

/* Wait until the session ends (by a signal, the kernel, or a worker that failed), or all
 * workers ended.  Return how many workers have ended. */
static unsigned wait_for_end(struct fuse_loop *l, unsigned n)
{
	unsigned ended = 0;

	while (ended < n && !fuse_session_exited(l->session)) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += LOOK_SECONDS;
		ended += sem_timedwait(&l->ended, &until) == 0;
	}
	return ended;
}

int fuse_loop_alone(struct fuse_session *session, struct fuse_buf *buf,
		    const bool *enough)
{
	int r = 1;

	while (r > 0 && !fuse_session_exited(session) && !(enough && *enough)) {
		r = fuse_receive(session, buf);
		if (r > 0)
			fuse_session_process_buf(session, buf);
		if (r == -EAGAIN)
			wait_for_request(session);
		if (r == -EINTR || r == -EAGAIN)
			r = 1;
	}
	return r < 0 ? r : 0;
}

int fuse_loop(struct fuse_session *session, unsigned threads)
{
	struct sigaction wake = {.sa_handler = wake_up}, before;
	struct fuse_loop *l;
	unsigned n;
	int r;

	threads = threads < THREADS_MAX ? threads : THREADS_MAX;
	l = calloc(1, sizeof *l + threads * sizeof *l->worker);
	if (!l)
		return -ENOMEM;
	l->session = session;
	sem_init(&l->ended, 0, 0);
	sigaction(WAKE, &wake, &before);
	n = start_workers(l, threads);
	stop_workers(l, n, wait_for_end(l, n));
	r = fuse_session_exited(session) ? atomic_load(&l->failure) : -ENOMEM;
	sigaction(WAKE, &before, NULL);
	sem_destroy(&l->ended);
	free(l);
	return r;
}
