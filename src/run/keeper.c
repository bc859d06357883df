/* SPDX-License-Identifier: BSD-2-Clause */
/* The keeper of a run: it makes the place, starts the helpers, and cleans up. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "app/daemon.h"
#include "base/cleanup.h"
#include "run/run.h"

/* The run is over: processes that still run get SIGTERM, and SIGKILL after so many
 * milliseconds. */
#define GRACE_MS 500

struct keeper {
	struct run *run;
	/* .fd is the pipe for its report, -1 when it was read */
	struct daemon daemon;
	int signals;
};

static void close_end(int *fd)
{
	close(steal_fd(fd));
}

static int start_escort(struct keeper *k, struct error *err)
{
	struct run *r = k->run;
	pid_t pid = fork();

	if (pid < 0)
		return error_errno(err, -errno, "cannot start a process");
	if (pid == 0) {
		close_end(&r->life[1]);
		close_end(&r->alive[1]);
		run_escort(r);
	}
	r->shared->escort = pid;
	close_end(&r->control[1]);
	return 0;
}

static int start_daemon(struct keeper *k, struct error *err)
{
	struct run *r = k->run;
	int report[2];
	pid_t pid;

	if (pipe2(report, O_CLOEXEC) < 0)
		return error_errno(err, -errno, "cannot create a pipe");
	pid = fork();
	if (pid == 0) {
		close(report[0]);
		close(k->signals);
		close_end(&r->life[1]);
		close_end(&r->alive[1]);
		_exit(run_daemon(r, report[1]));
	}
	close(report[1]);
	close_end(&r->alive[0]);
	if (pid < 0) {
		int code = error_errno(err, -errno, "cannot start a process");

		close(report[0]);
		return code;
	}
	r->shared->daemon = pid;
	k->daemon = (struct daemon){.fd = report[0], .pid = (int)pid};
	return 0;
}

static int keeper_start(struct keeper *k, struct error *err)
{
	int r = start_escort(k, err);

	/* From here on, signals that kill the user's session do not reach this process;
	 * only from here on there is something to clean up. */
	setsid();
	run_release_stdio();
	if (r == 0)
		r = run_place_make(k->run, err);
	return r < 0 ? r : start_daemon(k, err);
}

static void hear_report(struct keeper *k)
{
	struct run *r = k->run;
	struct error err;
	int code = daemon_wait(&k->daemon, CLI_MOUNT, &err);

	if (code == 0) {
		run_send(r->life[1], RUN_READY, 0);
		return;
	}
	r->shared->daemon = 0;
	cli_say(r->c, "%s", err.text);
	run_send(r->life[1], RUN_FAILED, code);
}

/* Serve until front ends the run (true) or is gone (false). */
static bool keeper_serve(struct keeper *k)
{
	struct run *r = k->run;
	struct run_children *kids = &r->children;
	struct signalfd_siginfo info;

	for (;;) {
		struct pollfd p[] = {{.fd = r->life[1], .events = POLLIN},
				     {.fd = k->daemon.fd, .events = POLLIN},
				     {.fd = k->signals, .events = POLLIN}};
		struct run_message m;

		if (poll(p, 3, -1) < 0)
			continue;
		if (p[0].revents)
			return run_receive(r->life[1], &m);
		if (p[1].revents)
			hear_report(k);
		if (p[2].revents && read(k->signals, &info, sizeof info) < 0)
			continue;
		/* hear_report deals with a daemon that ended before it reported. */
		if (k->daemon.fd >= 0)
			continue;
		run_reap(r);
		if (kids->daemon_ended) {
			kids->daemon_ended = false;
			run_send(r->life[1], RUN_DAEMON_ENDED,
				 kids->daemon_status);
		}
	}
}

int run_keeper(struct run *r)
{
	struct keeper k = {.run = r, .daemon = {.fd = -1}};
	struct error err = {0};
	sigset_t child;
	unsigned left;
	bool asked;

	prctl(PR_SET_NAME, "tensorfs-keeper");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	k.signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	if (keeper_start(&k, &err) < 0) {
		cli_say(r->c, "%s", err.text);
		run_send(r->life[1], RUN_FAILED,
			 err.code == -ENOMEM ? CLI_MEMORY : CLI_MOUNT);
	}
	asked = keeper_serve(&k);
	left = run_clean(r, asked ? GRACE_MS : 0);
	if (asked) {
		run_escort_end(r);
	} else {
		/* The command may have been a run itself, of which all processes were
		 * killed. */
		run_place_sweep();
		if (r->shared->escort)
			kill(r->shared->escort, SIGKILL);
	}
	run_send(r->life[1], RUN_DONE, (int)left);
	return CLI_DONE;
}
