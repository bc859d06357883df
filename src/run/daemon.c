/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon of a run: it opens the sources, mounts and serves them. */

/*
 * It ends when it is unmounted, and not by signals that are meant for the command: a
 * batch system sends them to every process of a step, and the command may have to go on
 * reading to save its work.  When front and keeper are gone, it unmounts by itself.
 * While it opens sources, an end of file of `alive` raises a signal that kills it,
 * because no thread may run then; while it serves, a thread waits for the end of file.
 *
 * r->shared->view is the path that the command gets: the mount, or what was staged.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "app/daemon.h"
#include "app/mountinfo.h"
#include "app/serving.h"
#include "app/stage_first.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/system.h"
#include "run/run.h"

/* Seconds in which the daemon may free its memory before it is killed. */
#define END_SECONDS 2

struct serving {
	struct run *run;
	struct daemon daemon;
	struct session *session;
	struct fuse_face *face;
	struct stage_first first;
};

static void daemon_tell_ready(struct serving *v, const char *view)
{
	if (chdir("/") < 0)
		log_warn("cannot change to /: %s", strerror(errno));
	snprintf(v->run->shared->view, sizeof v->run->shared->view, "%s", view);
	v->run->shared->ready = true;
	daemon_ready(&v->daemon);
}

static void daemon_on_ready(void *ctx)
{
	struct serving *v = ctx;

	daemon_tell_ready(v, v->run->shared->point);
}

/* Wait for the end of file of `alive`; no process ever writes to it. */
static void daemon_wait_for_end(const struct run *r)
{
	struct pollfd p = {.fd = r->alive[0], .events = POLLIN};

	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
}

static void daemon_stop_sigio(const struct run *r)
{
	int fd = r->alive[0];

	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_ASYNC);
}

static void *daemon_watch_main(void *arg)
{
	struct serving *v = arg;
	struct error err;

	daemon_wait_for_end(v->run);
	/* If the keeper has unmounted already, the daemon is about to end. */
	if (mount_detach(v->run->shared->point, true, &err) < 0) {
		sleep(END_SECONDS);
		kill(getpid(), SIGKILL);
	}
	return NULL;
}

static int daemon_watch_start(struct serving *v, struct error *err)
{
	pthread_t thread;
	sigset_t all, old;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&thread, NULL, daemon_watch_main, v);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r)
		return error_errno(err, -r, "cannot start a thread");
	pthread_detach(thread);
	daemon_stop_sigio(v->run);
	return 0;
}

/* Hold what was staged; nothing is served.  Ends when the process is killed by another
 * one that then sweeps, or when no process is left that could do that. */
static int hold_staged(struct serving *v)
{
	v->run->shared->staged = true;
	daemon_stop_sigio(v->run);
	daemon_tell_ready(v, v->first.held.path);
	daemon_wait_for_end(v->run);
	stage_first_release(&v->first);
	return 0;
}

/* Return an exit code; 0 if the mount was served until it was unmounted. */
static int open_and_serve(struct serving *v, struct error *err)
{
	struct run *run = v->run;
	int r;

	signal(SIGIO, stage_interrupt);
	r = stage_first(&v->first, run->c, run->s, run->sources, run->n_sources,
			err);
	if (r == 0 && v->first.active)
		return hold_staged(v);
	signal(SIGIO, SIG_DFL);
	if (stage_signal())
		return CLI_INCOMPLETE;
	if (r == 0)
		r = mount_open(run->s, run->sources, run->n_sources,
			       run->shared->point, &v->session, &v->face, err);
	if (r != 0)
		return r;
	r = source_isolate(true, err);
	if (r == 0)
		r = session_start(v->session, err);
	if (r == 0)
		r = daemon_watch_start(v, err);
	if (r == 0)
		r = fuse_face_serve(v->face, daemon_on_ready, v, err);
	if (r < 0)
		return r == -ENOMEM         ? CLI_MEMORY
		       : run->shared->ready ? CLI_INCOMPLETE
					    : CLI_MOUNT;
	return 0;
}

/* Set up signals.  From here on SIGIO kills the daemon when front and keeper are gone. */
static void daemon_prepare(struct run *r)
{
	static const int ignored[] = {
		SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,   SIGPIPE, SIGTSTP,
		SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2,   SIGALRM, SIGXFSZ,
		SIGABRT, SIGPROF, SIGXCPU, SIGVTALRM, SIGPWR,  SIGSTKFLT};
	int fd = r->alive[0];
	struct pollfd gone = {.fd = fd, .events = POLLIN};
	sigset_t none;

	prctl(PR_SET_NAME, "tensorfs-daemon");
	setsid();
	r->shared->group = getpid();
	run_release_stdio();
	for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
		signal(ignored[i], SIG_IGN);
	for (int i = SIGRTMIN; i <= SIGRTMAX; i++)
		signal(i, SIG_IGN);
	signal(SIGIO, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	fcntl(fd, F_SETOWN, getpid());
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC);
	if (poll(&gone, 1, 0) != 0)
		_exit(CLI_INCOMPLETE);
}

int run_daemon(struct run *r, int report)
{
	struct serving v = {.run = r,
			    .daemon = {.fd = report, .keep_stderr = true}};
	struct error err = {0};
	int code;

	r->shared->daemon = getpid();
	daemon_prepare(r);
	code = open_and_serve(&v, &err);
	if (!r->shared->ready)
		daemon_fail(&v.daemon, code ? code : CLI_MOUNT,
			    code ? err.text
				 : "the mount was removed before it was ready");
	else if (code)
		log_error("%s", err.text);
	fuse_face_free(v.face);
	session_free(v.session);
	/* The keeper removes the place, too, and reports if it cannot; but it may be
	 * killed just before. */
	if (r->shared->ready)
		run_place_remove(r->shared, &err);
	return code;
}
