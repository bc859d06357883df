/* SPDX-License-Identifier: BSD-2-Clause */
/* The escort of a run: the parent of the command, and of all that it starts. */

/*
 *	start     the child makes its own process group and waits
 *	go        (front has given it the terminal) it executes the command
 *	leader    the command ends or stops; signals are passed on to its group
 *	group     if the command has ended by itself, the others may finish; if by a
 *	          signal, they get SIGTERM, and after GROUP_MS SIGKILL
 *	rest      processes that left the group (daemons) would lose the mount: they get
 *	          SIGTERM, and after REST_MS SIGKILL
 *
 * Signals go to the group as long as a process lives in it, which keeps its number from
 * becoming that of another group.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "run/run.h"

#define GROUP_MS 500
#define REST_MS 1000
/* Milliseconds that children get to end by themselves. */
#define LINGER_MS 100
/* Milliseconds between looks for members of the group that are not children of this
 * process. */
#define LOOK_MIN_MS 5
#define LOOK_MAX_MS 1000

struct escort {
	struct run *run;
	pid_t keeper;
	int signals; /* signalfd */
	int go;      /* the child waits for a byte from the other end */
	/* where the child writes why exec failed; -1: exec succeeded */
	int exec;
	/* process group of the command; 0: none, or no process is left in it */
	pid_t group;
	/* when to kill the group, in milliseconds of clock_ms(); 0: do not end it */
	uint64_t kill_at;
	bool killed;
};

static void end_group(struct escort *e)
{
	if (!e->group || e->kill_at)
		return;
	kill(-e->group, SIGTERM);
	kill(-e->group, SIGCONT);
	e->kill_at = clock_ms() + GROUP_MS;
}

static void become_command(struct escort *e, int go, int failed)
{
	struct run *r = e->run;
	char **argv;
	char byte;

	setpgid(0, 0);
	/* Closed without a byte: there is nothing to start any more. */
	if (read(go, &byte, 1) != 1)
		_exit(0);
	argv = run_command_args(r->s->command, r->shared->view);
	if (argv && setenv("TENSORFS_MOUNT", r->shared->view, 1) == 0) {
		run_signals_restore(r);
		execvp(argv[0], argv);
	}
	byte = (char)errno;
	while (write(failed, &byte, 1) < 0 && errno == EINTR)
		;
	_exit(127);
}

static bool escort_start_command(struct escort *e)
{
	int go[2], failed[2];
	pid_t pid;

	if (pipe2(go, O_CLOEXEC) < 0 || pipe2(failed, O_CLOEXEC) < 0)
		return false;
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		become_command(e, go[0], failed[1]);
	}
	close(go[0]);
	close(failed[1]);
	if (pid < 0)
		return false;
	setpgid(pid, pid);
	e->go = go[1];
	e->exec = failed[0];
	e->group = e->run->children.leader = pid;
	run_release_stdio();
	run_send(e->run->control[1], RUN_STARTED, pid);
	return true;
}

/* Clean up when front is gone and no process waits for the command.  The keeper cleans
 * up; if it is gone as well, and has not done so, this process does. */
static _Noreturn void escort_clean_alone(struct escort *e)
{
	struct pollfd p = {.fd = e->run->alive[0], .events = POLLIN};

	run_tree_end(e->run, 0);
	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
	run_wait_gone(e->keeper);
	run_clean(e->run, 0);
	_exit(CLI_INCOMPLETE);
}

/* Stay until the process that cleans up kills this one; if the others are killed
 * meanwhile, clean up instead. */
static _Noreturn void escort_stay(struct escort *e)
{
	struct run_message m;

	while (run_receive(e->run->control[1], &m))
		;
	escort_clean_alone(e);
}

/* Act on a message of front; return false if the run is over. */
static bool escort_obey(struct escort *e)
{
	struct run_message m;

	if (!run_receive(e->run->control[1], &m))
		escort_clean_alone(e);
	if (m.kind == RUN_START) {
		int error;

		if (escort_start_command(e))
			return true;
		error = errno;
		run_send(e->run->control[1], RUN_NO_EXEC, error);
		return false;
	}
	if (m.kind == RUN_GO && write(e->go, "", 1) == 1)
		close(steal_fd(&e->go));
	if (m.kind == RUN_SIGNAL && e->group &&
	    (!e->run->children.leader_ended || run_group_lives(e->group)))
		kill(-e->group, m.value);
	if (m.kind == RUN_END) {
		if (!e->group)
			return false;
		end_group(e);
	}
	return true;
}

/* Find out whether the child has become the command, before its end is noticed.  Return
 * false if it has not, and the run is over. */
static bool hear_exec(struct escort *e)
{
	unsigned char error;

	if (read(e->exec, &error, 1) == 1) {
		run_send(e->run->control[1], RUN_NO_EXEC, error);
		return false;
	}
	close(steal_fd(&e->exec));
	return true;
}

/* Handle messages of front, children, and the result of exec, waiting for up to `ms`
 * milliseconds (-1: for ever).  Return false if the run is over. */
static bool escort_handle_events(struct escort *e, int ms)
{
	struct pollfd p[] = {{.fd = e->run->control[1], .events = POLLIN},
			     {.fd = e->signals, .events = POLLIN},
			     {.fd = e->exec, .events = POLLIN}};
	struct signalfd_siginfo info;
	struct run_children *k = &e->run->children;

	if (poll(p, 3, ms) > 0) {
		if (p[0].revents && !escort_obey(e))
			return false;
		if (p[1].revents && read(e->signals, &info, sizeof info) < 0)
			return false;
		if (p[2].revents && !hear_exec(e))
			return false;
	}
	run_reap(e->run);
	if (k->leader_ended && e->exec >= 0 && !hear_exec(e))
		return false;
	if (k->stopped) {
		run_send(e->run->control[1],
			 k->stopped == SIGCONT ? RUN_CONTINUED : RUN_STOPPED,
			 k->stopped);
		k->stopped = 0;
	}
	if (e->kill_at && !e->killed && clock_ms() >= e->kill_at && e->group) {
		kill(-e->group, SIGKILL);
		e->killed = true;
	}
	return true;
}

static bool wait_leader(struct escort *e)
{
	const struct run_children *k = &e->run->children;

	while (!k->leader_ended)
		if (!escort_handle_events(e, e->kill_at ? LOOK_MIN_MS : -1))
			return false;
	return true;
}

static bool wait_group(struct escort *e)
{
	int ms = LOOK_MIN_MS;

	if (WIFSIGNALED(e->run->children.leader_status))
		end_group(e);
	else if (run_group_lives(e->group))
		/* A stopped process would have no shell to continue it any more. */
		kill(-e->group, SIGCONT);
	while (run_group_lives(e->group)) {
		if (!escort_handle_events(e, ms))
			return false;
		if (e->kill_at)
			ms = LOOK_MIN_MS;
		else if (ms < LOOK_MAX_MS)
			ms *= 2;
	}
	e->group = 0;
	return true;
}

static void end_rest(struct escort *e)
{
	uint64_t end = clock_ms() + LINGER_MS;
	unsigned n;

	while ((n = run_tree_count(e->run)) > 0 && clock_ms() < end)
		poll(NULL, 0, LOOK_MIN_MS);
	if (n == 0)
		return;
	cli_say(e->run->c,
		"%u process%s of the command %s still running outside of its "
		"process group: ended, because the mount ends with the command",
		n, n > 1 ? "es" : "", n > 1 ? "were" : "was");
	n = run_tree_end(e->run, REST_MS);
	if (n > 0)
		cli_say(e->run->c, "%u of them cannot be ended", n);
}

void run_escort(struct run *r)
{
	struct escort e = {.run = r, .keeper = getppid(), .go = -1, .exec = -1};
	sigset_t child;

	r->shared->escort = getpid();
	prctl(PR_SET_NAME, "tensorfs-escort");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	setpgid(0, 0);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	e.signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	while (!r->children.leader)
		if (!escort_handle_events(&e, -1))
			escort_stay(&e);
	if (wait_leader(&e) && wait_group(&e)) {
		end_rest(&e);
		run_send(r->control[1], RUN_ENDED, r->children.leader_status);
	}
	escort_stay(&e);
}
