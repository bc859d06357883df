/* SPDX-License-Identifier: BSD-2-Clause */
/* What the processes of a run share: messages, signals, children, cleaning up. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "app/stage_first.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "run/run.h"

/* Milliseconds in which the daemon ends by itself when it is unmounted; it does not if a
 * process holds a file open. */
#define HELPER_MS 300
/* Milliseconds in which a killed process ends, unless it is stuck in the kernel. */
#define HELPER_KILLED_MS 2000

void run_send(int fd, enum run_message_kind kind, int value)
{
	const struct run_message m = {(int)kind, value};

	while (fd >= 0 && send(fd, &m, sizeof m, MSG_NOSIGNAL) < 0 &&
	       errno == EINTR)
		;
}

bool run_receive(int fd, struct run_message *m)
{
	ssize_t n;

	do
		n = recv(fd, m, sizeof *m, 0);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof *m;
}

/* Signals whose action could hide the end of children, end this process, or keep it from
 * stopping. */
static const int changed[] = {SIGCHLD, SIGPIPE, SIGTSTP,
			      SIGTTIN, SIGTTOU, SIGXFSZ};

void run_signals_block(struct run *r)
{
	sigset_t all;

	for (int i = 1; i < NSIG; i++)
		sigaction(i, NULL, &r->actions[i]);
	for (size_t i = 0; i < sizeof changed / sizeof *changed; i++)
		signal(changed[i], SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	/* main() ignores it for the sake of other commands. */
	r->actions[SIGXFSZ].sa_handler = SIG_DFL;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &r->mask);
}

void run_signals_restore(const struct run *r)
{
	for (size_t i = 0; i < sizeof changed / sizeof *changed; i++)
		sigaction(changed[i], &r->actions[changed[i]], NULL);
	sigprocmask(SIG_SETMASK, &r->mask, NULL);
}

void run_release_stdio(void)
{
	cleanup_close int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return;
	dup2(fd, STDIN_FILENO);
	dup2(fd, STDOUT_FILENO);
}

void run_reap(struct run *r)
{
	struct run_children *k = &r->children;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) >
	       0) {
		if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
			if (pid == k->leader)
				k->stopped = WIFSTOPPED(status)
						     ? WSTOPSIG(status)
						     : SIGCONT;
		} else if (pid == k->leader) {
			k->leader_ended = true;
			k->leader_status = status;
		} else if (pid == r->shared->daemon) {
			k->daemon_ended = true;
			k->daemon_status = status;
			r->shared->daemon = 0;
		} else if (pid == r->shared->escort) {
			r->shared->escort = 0;
		}
	}
}

/* Return true when the process has ended; it was reaped if it is a child of this
 * process. */
static bool wait_helper(struct run *r, volatile pid_t *pid, int ms)
{
	const struct timespec moment = {0, 2000000};
	uint64_t end = clock_ms() + (unsigned)ms;

	for (;;) {
		run_reap(r);
		if (!*pid || !run_process_lives(*pid))
			return true;
		if (clock_ms() > end)
			return false;
		nanosleep(&moment, NULL);
	}
}

void run_wait_gone(pid_t pid)
{
	const struct timespec moment = {0, 1000000};
	uint64_t end = clock_ms() + HELPER_KILLED_MS;

	while (run_process_lives(pid) && clock_ms() < end)
		nanosleep(&moment, NULL);
}

static bool end_helper(struct run *r, volatile pid_t *pid)
{
	if (wait_helper(r, pid, HELPER_MS))
		return true;
	kill(*pid, SIGKILL);
	return wait_helper(r, pid, HELPER_KILLED_MS);
}

/* End the processes that the daemon has started.  They have what it had, among it the
 * locks of what is staged, for a moment or until they notice that the daemon is gone. */
static void end_daemons_group(pid_t group)
{
	const struct timespec moment = {0, 1000000};
	uint64_t begun = clock_ms();
	bool killed = false;

	while (group && run_group_lives(group)) {
		uint64_t past = clock_ms() - begun;

		if (past > HELPER_MS && !killed) {
			kill(-group, SIGKILL);
			killed = true;
		}
		if (past > HELPER_KILLED_MS)
			return;
		nanosleep(&moment, NULL);
	}
}

unsigned run_clean(struct run *r, int grace)
{
	struct run_shared *p = r->shared;
	struct error err = {0};
	unsigned left = run_tree_end(r, grace);

	/* A daemon that still opens sources has nothing to unmount, nor has one that
	 * holds staged files. */
	if ((!p->ready || p->staged) && p->daemon)
		kill(p->daemon, SIGKILL);
	if (!run_place_remove(p, &err)) {
		cli_say(r->c, "%s", err.text);
		left++;
	}
	left += !end_helper(r, &p->daemon);
	end_daemons_group(p->group);
	stage_first_sweep(r->s);
	return left;
}

void run_escort_end(struct run *r)
{
	volatile pid_t *escort = &r->shared->escort;

	if (*escort)
		kill(*escort, SIGKILL);
	wait_helper(r, escort, HELPER_KILLED_MS);
}
