/* SPDX-License-Identifier: BSD-2-Clause */
/* The terminal of a run, and which process group has it. */

/*
 * The command has a process group of its own, and a terminal has one foreground group.
 * It becomes the command's
 *
 *  - at once, when the user typed the run at a shell and it is not part of a pipeline
 *    (front leads its group, input and output are the terminal);
 *  - else when the command wants it, which it shows by stopping: reading, or changing
 *    modes, from the background raises SIGTTIN or SIGTTOU.
 *
 * So in `run ... | less` the terminal stays with less, and in a script ^C reaches the
 * script, too, as it should; front passes it on.  In the background front never touches
 * the terminal.
 */
#include "run/terminal.h"

#include <fcntl.h>
#include <unistd.h>

/* SIGTTOU is blocked, so that the calls below are permitted from the background. */
static bool in_foreground(const struct run_terminal *t)
{
	return t->fd >= 0 && tcgetpgrp(t->fd) == getpgrp();
}

void run_terminal_open(struct run_terminal *t)
{
	*t = (struct run_terminal){.fd = open("/dev/tty", O_RDWR | O_CLOEXEC)};
	if (!in_foreground(t))
		return;
	t->have_ours = tcgetattr(t->fd, &t->ours) == 0;
	t->wanted = getpid() == getpgrp() && isatty(STDIN_FILENO) &&
		    isatty(STDOUT_FILENO);
}

static void terminal_give(struct run_terminal *t)
{
	t->given = tcsetpgrp(t->fd, t->group) == 0 || t->given;
}

void run_terminal_start(struct run_terminal *t, pid_t group)
{
	t->group = group;
	if (t->wanted && in_foreground(t))
		terminal_give(t);
}

bool run_terminal_grant(struct run_terminal *t)
{
	t->wanted = true;
	if (!in_foreground(t))
		return false;
	if (!t->have_ours)
		t->have_ours = tcgetattr(t->fd, &t->ours) == 0;
	terminal_give(t);
	return true;
}

void run_terminal_take(struct run_terminal *t, bool restore)
{
	if (!t->given)
		return;
	t->have_theirs = tcgetattr(t->fd, &t->theirs) == 0;
	tcsetpgrp(t->fd, getpgrp());
	t->given = false;
	if (restore && t->have_ours)
		tcsetattr(t->fd, TCSADRAIN, &t->ours);
}

void run_terminal_resume(struct run_terminal *t)
{
	if (!t->wanted || !t->group || !in_foreground(t))
		return;
	if (t->have_theirs)
		tcsetattr(t->fd, TCSADRAIN, &t->theirs);
	terminal_give(t);
}

void run_terminal_close(struct run_terminal *t)
{
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
}
