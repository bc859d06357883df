/* SPDX-License-Identifier: BSD-2-Clause */
/* Front, the process that the user started: messages, signals, job control. */

/*
 * The phase is OPENING until the mount is there, RUNNING until the command has ended,
 * ENDING until everything is cleaned up.  All signals are blocked and are read from a
 * signalfd; signals that stop a process are unblocked for the moment when front means to
 * stop.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "run/run.h"
#include "run/terminal.h"

/* Milliseconds between SIGTERM and SIGKILL; the same as in keeper.c. */
#define GRACE_MS 500

struct front {
	struct run *run;
	struct run_terminal tty;
	enum { OPENING, RUNNING, ENDING, OVER } phase;
	int signals; /* signalfd */
	pid_t keeper;
	bool keeper_gone; /* its children are now children of front */
	bool typed;       /* ^C was typed, if that is what ended the command */
	int status;       /* the exit status */
	int killed_by;    /* the signal that ended the command, or 0 */
};

/* ---- the end ------------------------------------------------------------- */

static void front_finish(struct front *f, int status)
{
	if (f->phase >= ENDING)
		return;
	f->phase = ENDING;
	f->status = status;
	run_terminal_take(&f->tty, f->killed_by || status == CLI_INCOMPLETE);
	run_send(f->run->control[0], RUN_END, 0);
	if (!f->keeper_gone) {
		run_send(f->run->life[0], RUN_FINISH, 0);
		return;
	}
	if (run_clean(f->run, GRACE_MS) && f->status == CLI_DONE)
		f->status = CLI_INCOMPLETE;
	run_escort_end(f->run);
	f->phase = OVER;
}

static void daemon_ended(struct front *f, int status)
{
	if (f->phase != RUNNING)
		return;
	if (WIFSIGNALED(status) && f->run->shared->staged)
		cli_say(f->run->c,
			"the daemon was killed by signal %d (%s): the staged "
			"files are no longer locked, and the command is ended",
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (WIFSIGNALED(status))
		cli_say(f->run->c,
			"the daemon was killed by signal %d (%s): the mount "
			"is dead, and the command is ended",
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		cli_say(f->run->c, "'%s' was unmounted: the command is ended",
			f->run->shared->point);
	f->status = CLI_INCOMPLETE;
	run_send(f->run->control[0], RUN_END, 0);
}

static void keeper_ended(struct front *f)
{
	close(steal_fd(&f->run->life[0]));
	run_wait_gone(f->keeper);
	f->keeper_gone = true;
	if (f->phase == RUNNING)
		return;
	if (f->phase == OPENING) {
		cli_say(f->run->c, "a helper process was killed before the "
				   "mount was ready");
		f->status = CLI_INCOMPLETE;
	}
	f->phase = RUNNING;
	front_finish(f, f->status);
}

static void command_ended(struct front *f, int status)
{
	if (WIFSIGNALED(status))
		f->killed_by = WTERMSIG(status);
	f->typed |= f->tty.given;
	/* If front has ended the command, the reason was reported and sets the status. */
	if (f->status == CLI_DONE)
		f->status =
			f->killed_by ? 128 + f->killed_by : WEXITSTATUS(status);
	front_finish(f, f->status);
}

/* ---- stopping and going on ----------------------------------------------- */

static void front_resume(struct front *f)
{
	run_terminal_resume(&f->tty);
	run_send(f->run->control[0], RUN_SIGNAL, SIGCONT);
}

/* While front is stopped, messages of the others raise SIGCONT (or, off, do not any
 * more). */
static void wake_by_messages(const struct front *f, bool on)
{
	const int fds[] = {f->run->life[0], f->run->control[0]};

	for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
		int flags = fcntl(fds[i], F_GETFL);

		fcntl(fds[i], F_SETOWN, getpid());
		fcntl(fds[i], F_SETSIG, SIGCONT);
		fcntl(fds[i], F_SETFL, on ? flags | O_ASYNC : flags & ~O_ASYNC);
	}
}

static bool has_messages(const struct front *f)
{
	struct pollfd p[] = {{.fd = f->run->life[0], .events = POLLIN},
			     {.fd = f->run->control[0], .events = POLLIN}};

	return poll(p, 2, 0) > 0;
}

/* Stop by signal `stop` until SIGCONT.  Return false if there were messages already.  A
 * signal that stops makes the kernel discard a pending SIGCONT, so that is looked for
 * just before; a SIGCONT that comes later makes it discard the stop. */
static bool stay_stopped(struct front *f, int stop)
{
	const struct timespec now = {0, 0};
	sigset_t set, pending;
	bool messages;

	sigemptyset(&set);
	sigaddset(&set, stop);
	sigpending(&pending);
	if (sigismember(&pending, SIGCONT))
		return true;
	raise(stop);
	messages = f->phase == RUNNING && has_messages(f);
	if (messages) {
		sigtimedwait(&set, NULL, &now);
	} else {
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		/* The process is stopped between these two calls. */
		sigprocmask(SIG_BLOCK, &set, NULL);
	}
	return !messages;
}

/* Stop as the command did.  The kernel refuses where no shell could continue this
 * process; then the command goes on, as it would have without tensorfs.  This process
 * goes on when it is continued, when the command is, and when there is something to
 * do. */
static void stop_self(struct front *f, int sig)
{
	const struct timespec now = {0, 0};
	siginfo_t info;
	bool waited, by_message;
	sigset_t set;

	run_terminal_take(&f->tty, true);
	if (f->phase == RUNNING)
		wake_by_messages(f, true);
	waited = stay_stopped(f, sig == SIGSTOP ? SIGTSTP : sig);
	wake_by_messages(f, false);
	sigemptyset(&set);
	sigaddset(&set, SIGCONT);
	if (sigtimedwait(&set, &info, &now) == SIGCONT) {
		by_message =
			info.si_code == SI_SIGIO ||
			(info.si_code >= POLL_IN && info.si_code <= POLL_HUP);
		if (!by_message)
			front_resume(f);
	} else if (waited && sig != SIGSTOP) {
		front_resume(f);
	}
}

static void command_stopped(struct front *f, int sig)
{
	if ((sig == SIGTTIN || sig == SIGTTOU) && run_terminal_grant(&f->tty)) {
		run_send(f->run->control[0], RUN_SIGNAL, SIGCONT);
		return;
	}
	stop_self(f, sig);
}

/* Return true if the signal would do nothing to a process that has no handler for it. */
static bool is_ignored(const struct run *r, int sig)
{
	return sig == SIGCHLD || sig == SIGURG || sig == SIGWINCH ||
	       sig == SIGCONT || r->actions[sig].sa_handler == SIG_IGN ||
	       sigismember(&r->mask, sig);
}

static void front_heed_signal(struct front *f, int sig)
{
	if (is_ignored(f->run, sig))
		return;
	if (sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU) {
		stop_self(f, sig);
		return;
	}
	f->killed_by = sig;
	front_finish(f, 128 + sig);
}

static void front_pass_signal_on(struct front *f, int sig)
{
	/* Another process of this group wants the terminal, so all of the group has to
	 * stop; it is not the command that wants it. */
	if (sig == SIGTTIN || sig == SIGTTOU)
		sig = is_ignored(f->run, sig) ? 0 : SIGTSTP;
	if (sig == SIGCONT)
		front_resume(f);
	else if (sig)
		run_send(f->run->control[0], RUN_SIGNAL, sig);
}

static void front_take_signal(struct front *f,
			      const struct signalfd_siginfo *info)
{
	int sig = (int)info->ssi_signo;

	/* SIGPIPE because nothing reads front's own output does not concern the
	 * command. */
	if (sig == SIGCHLD ||
	    (info->ssi_code == SI_USER && (pid_t)info->ssi_pid == getpid()))
		return;
	if (sig == SIGINT && info->ssi_code == SI_KERNEL)
		f->typed = true;
	if (f->phase == OPENING)
		front_heed_signal(f, sig);
	else if (f->phase == RUNNING)
		front_pass_signal_on(f, sig);
}

/* ---- events -------------------------------------------------------------- */

static void hear_keeper(struct front *f)
{
	struct run_message m;

	if (!run_receive(f->run->life[0], &m)) {
		keeper_ended(f);
	} else if (m.kind == RUN_READY && f->phase == OPENING) {
		f->phase = RUNNING;
		run_send(f->run->control[0], RUN_START, 0);
	} else if (m.kind == RUN_FAILED) {
		front_finish(f, m.value);
	} else if (m.kind == RUN_DAEMON_ENDED) {
		daemon_ended(f, m.value);
	} else if (m.kind == RUN_DONE) {
		if (m.value && f->status == CLI_DONE)
			f->status = CLI_INCOMPLETE;
		f->phase = OVER;
	}
}

static void escort_ended(struct front *f)
{
	close(steal_fd(&f->run->control[0]));
	if (f->phase == RUNNING)
		cli_say(f->run->c, "a helper process was killed: the command "
				   "is ended");
	front_finish(f, CLI_INCOMPLETE);
}

static void hear_escort(struct front *f)
{
	struct run *r = f->run;
	struct run_message m;

	if (!run_receive(r->control[0], &m)) {
		escort_ended(f);
	} else if (m.kind == RUN_STARTED) {
		run_terminal_start(&f->tty, m.value);
		run_release_stdio();
		run_send(r->control[0], RUN_GO, 0);
	} else if (m.kind == RUN_NO_EXEC) {
		front_finish(
			f, run_command_failed(r->c, r->s->command[0], m.value));
	} else if (m.kind == RUN_STOPPED) {
		command_stopped(f, m.value);
	} else if (m.kind == RUN_CONTINUED) {
		run_terminal_resume(&f->tty);
	} else if (m.kind == RUN_ENDED) {
		command_ended(f, m.value);
	}
}

static void hear_signal(struct front *f)
{
	struct signalfd_siginfo info;

	while (f->phase < ENDING &&
	       read(f->signals, &info, sizeof info) == (ssize_t)sizeof info)
		front_take_signal(f, &info);
	if (!f->keeper_gone)
		return;
	run_reap(f->run);
	if (f->run->children.daemon_ended) {
		f->run->children.daemon_ended = false;
		daemon_ended(f, f->run->children.daemon_status);
	}
}

/* ---- start --------------------------------------------------------------- */

static int front_start_keeper(struct front *f)
{
	const int how = SOCK_SEQPACKET | SOCK_CLOEXEC;
	struct run *r = f->run;
	pid_t pid;

	r->shared = mmap(NULL, sizeof *r->shared, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (r->shared == MAP_FAILED ||
	    socketpair(AF_UNIX, how, 0, r->life) < 0 ||
	    socketpair(AF_UNIX, how, 0, r->control) < 0 ||
	    pipe2(r->alive, O_CLOEXEC) < 0)
		return -errno;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		close(steal_fd(&r->life[0]));
		close(steal_fd(&r->control[0]));
		_exit(run_keeper(r));
	}
	f->keeper = pid;
	close(steal_fd(&r->life[1]));
	close(steal_fd(&r->control[1]));
	close(steal_fd(&r->alive[0]));
	return 0;
}

/* Die of SIGINT if the command died of a ^C.  A loop or a script around this process ends
 * then, but would go on after an exit status. */
static void die_of_interrupt(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	signal(SIGINT, SIG_DFL);
	fflush(NULL);
	raise(SIGINT);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* Open standard streams that are closed, or sockets would get their numbers. */
static void front_occupy_streams(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int run_front(struct run *r)
{
	struct front f = {.run = r, .tty = {.fd = -1}};
	sigset_t all;
	int code;

	front_occupy_streams();
	r->pid = getpid();
	run_tree_begin(r);
	run_signals_block(r);
	/* A fault in this process ends it although its signal is blocked. */
	sigfillset(&all);
	f.signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	code = f.signals < 0 ? -errno : front_start_keeper(&f);
	if (code < 0) {
		cli_say(r->c, "cannot start: %s", strerror(-code));
		return CLI_MEMORY;
	}
	run_terminal_open(&f.tty);
	while (f.phase != OVER) {
		struct pollfd p[] = {{.fd = r->life[0], .events = POLLIN},
				     {.fd = r->control[0], .events = POLLIN},
				     {.fd = f.signals, .events = POLLIN}};

		if (f.phase == ENDING)
			p[1].fd = p[2].fd = -1;
		if (poll(p, 3, -1) < 0)
			continue;
		if (p[1].revents)
			hear_escort(&f);
		else if (p[0].revents)
			hear_keeper(&f);
		else if (p[2].revents)
			hear_signal(&f);
	}
	while (!f.keeper_gone && waitpid(f.keeper, NULL, 0) < 0 &&
	       errno == EINTR)
		;
	run_terminal_close(&f.tty);
	free(r->strangers);
	if (f.killed_by == SIGINT && f.typed)
		die_of_interrupt();
	return f.status;
}
