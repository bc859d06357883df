/* SPDX-License-Identifier: BSD-2-Clause */
/* Serving a FUSE mount: from INIT to the end. */
/*
 *     INIT is answered alone  ->  ready()  ->  loop until exit  ->  unmount
 *
 * When `ready` is called the kernel has its answer, so the first open() does not wait.
 *
 * The loop (fuse/loop.c) ends on unmount, on SIGINT, SIGTERM or SIGHUP (libfuse's handlers
 * set a flag, and the signal interrupts the serving thread), or when the watcher thread
 * finds that nothing was open and nothing was asked for `timeout` seconds.  The watcher
 * unmounts, and the kernel ends the session; if a container has a copy of the mount in its
 * namespace, that copy is served until it is gone, too.  A mount that cannot be unmounted
 * (/dev/fd/N) stays: the watcher signals the serving thread until the loop has noticed.
 *
 * Not used:
 *
 *	- A larger read_ahead_kb of the mount's backing device.  Only root can set it, and it
 *	  made no difference above the noise for sequential reads.
 *	- A descriptor of /dev/fuse for each worker (clone_fd).  It made no difference either,
 *	  and /dev/fuse would have to be opened after the mount, where a container may lack it.
 *	- FUSE passthrough (Linux 6.9, libfuse 3.17), by which the kernel reads a file from a
 *	  backing file of the daemon.  Registering one needs CAP_SYS_ADMIN on the machine, which
 *	  our users lack.  A backing file is used from its first byte, without an offset, but
 *	  members and chunks lie inside of files and are mostly compressed.  It is chosen in the
 *	  answer to OPEN, so each open would cost a request.  It would save only the requests
 *	  of the first read, because pages are kept.
 *	- FUSE over io_uring: see fuse/uring.c.
 */
#include "fuse/fuse.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "fuse/private.h"

const char *fuse_face_version(void)
{
	return fuse_pkgversion();
}

/* ---- serving ------------------------------------------------------------ */

enum idle_end {
	IDLE_BUSY, /* the mount is in use, or its path is not found */
	/* the kernel ends the session, now or with the last copy of the mount */
	IDLE_UNMOUNTED,
	IDLE_LEAVE /* this process cannot unmount it; the mount ends with the process */
};

/* Unmount unless the mount is in use.  A working directory in it is not an open file, so
 * only the kernel knows. */
static enum idle_end unmount_idle(struct fuse_face *f)
{
	int r;

	if (fuse_face_on_fd(f->mountpoint))
		return IDLE_LEAVE;
	if (!fuse_face_find(f))
		return IDLE_BUSY;
	r = fuse_unmount_path(f->mountpoint, false);
	return r == 0 ? IDLE_UNMOUNTED : r == -EBUSY ? IDLE_BUSY : IDLE_LEAVE;
}

/* The watcher thread: ends an idle session; checks once a second. */
static void *watch_idle(void *arg)
{
	enum idle_end end = IDLE_BUSY;
	struct fuse_face *f = arg;
	unsigned idle = 0;

	lock_scope(&f->lock);
	while (!f->finished) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec++;
		pthread_cond_timedwait(&f->wake, &f->lock, &until);
		if (atomic_exchange(&f->active, false) ||
		    atomic_load(&f->opens))
			idle = 0;
		else
			idle++;
		if (f->finished || idle < f->timeout || end == IDLE_UNMOUNTED)
			continue;
		if (end == IDLE_BUSY) {
			pthread_mutex_unlock(&f->lock);
			end = unmount_idle(f);
			pthread_mutex_lock(&f->lock);
			idle = end == IDLE_BUSY ? 0 : idle;
			if (end != IDLE_BUSY)
				log_info("idle for %u s: unmounting %s",
					 f->timeout, f->mountpoint);
		}
		if (end != IDLE_LEAVE)
			continue;
		fuse_session_exit(f->session);
		pthread_kill(f->server, SIGTERM);
	}
	return NULL;
}

static int watch_start(struct fuse_face *f, struct error *err)
{
	sigset_t all, old;
	int r;

	f->server = pthread_self();
	f->finished = false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&f->watcher, NULL, watch_idle, f);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r ? error_errno(err, -r, "cannot start a thread") : 0;
}

static void watch_stop(struct fuse_face *f)
{
	pthread_mutex_lock(&f->lock);
	f->finished = true;
	pthread_cond_signal(&f->wake);
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->watcher, NULL);
}

static int serve_loop(struct fuse_face *f)
{
	int r = fuse_loop(f->session, f->threads);

	/* The parent was told that the mount is ready, so this thread serves it. */
	if (r == -ENOMEM) {
		log_warn("no memory for threads: requests are answered one at "
			 "a time");
		r = fuse_loop_alone(f->session, &f->first, NULL);
	}
	return r;
}

/* Start reading files ahead.  A mount that cannot start it serves all the same. */
static void ahead_begin(struct fuse_face *f)
{
	struct error err = {0};

	if (!f->prefetch || f->threads == 1)
		return;
	f->room = room_new(NULL, NULL);
	/* A mount that was passed as a descriptor has no path for the helper. */
	if (f->room && !fuse_face_on_fd(f->mountpoint) &&
	    (readahead_new(&f->readahead, fs_tree(f->fs), f->mountpoint,
			   f->device, &err) < 0 ||
	     guess_new(&f->guess, f->fs, f->room, readahead_files, f->readahead,
		       &err) < 0))
		log_info("files are not read ahead: %s", err.text);
	if (f->room && f->order &&
	    follow_new(&f->follow, f->fs, f->order, f->room,
		       f->readahead ? readahead_files : NULL, f->readahead,
		       &err) < 0)
		log_warn("order: %s", err.text);
}

/* End reading ahead.  The workers have answered all requests that they took.  A request
 * that no worker took does not keep a killed process waiting.  So the helper ends, and
 * the threads that wait for it return. */
static void ahead_end(struct fuse_face *f)
{
	follow_stop(f->follow);
	readahead_stop(f->readahead);
	/* No reader waits for what is still being decoded. */
	fuse_face_unmount(f);
	follow_free(f->follow);
	guess_free(f->guess);
	readahead_free(f->readahead);
	room_free(f->room);
	f->follow = NULL;
	f->guess = NULL;
	f->readahead = NULL;
	f->room = NULL;
}

int fuse_face_serve(struct fuse_face *f, void (*ready)(void *), void *ctx,
		    struct error *err)
{
	bool watched = false;
	int r;

	if (fuse_set_signal_handlers(f->session) < 0) {
		fuse_face_unmount(f);
		return error_set(err, -EIO, "cannot set signal handlers");
	}
	/* Answer requests up to and including INIT. */
	r = fuse_loop_alone(f->session, &f->first, &f->connected);
	if (r == 0 && f->connected) {
		if (f->timeout) {
			r = watch_start(f, err);
			watched = r == 0;
		}
		if (r == 0)
			ahead_begin(f);
		if (r == 0 && ready)
			ready(ctx);
		if (r == 0)
			r = serve_loop(f);
		if (watched)
			watch_stop(f);
		ahead_end(f);
	}
	free(f->first.mem);
	f->first.mem = NULL;
	fuse_face_unmount(f);
	fuse_remove_signal_handlers(f->session);
	/* A positive number is the signal that ended the session, which is not an error. */
	if (r >= 0)
		return 0;
	if (r == -EPERM && !f->connected && fuse_face_on_fd(f->mountpoint))
		return error_set(err, r,
				 "nothing is mounted with the descriptor %s: "
				 "call mount(2) first",
				 f->mountpoint);
	if (err && !err->code)
		error_errno(err, r, "the connection to the kernel broke");
	return r;
}
