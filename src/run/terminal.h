/* SPDX-License-Identifier: BSD-2-Clause */
/* The terminal of a run, and which process group has it. */
#ifndef RUN_TERMINAL_H
#define RUN_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>

struct run_terminal {
	int fd;      /* /dev/tty; -1: there is none */
	pid_t group; /* the command's process group */
	bool wanted; /* the command gets the terminal whenever front has it */
	bool given;
	bool have_ours, have_theirs;
	/* modes of the terminal: of front, of the command */
	struct termios ours, theirs;
};
void run_terminal_open(struct run_terminal *t);
/* Note the command's group, and give it the terminal if it should have it at once. */
void run_terminal_start(struct run_terminal *t, pid_t group);
/* Give the terminal to a command that stopped for want of it; return true if it has it
 * now. */
bool run_terminal_grant(struct run_terminal *t);
/* Take the terminal back; `restore`: also its modes as they were before the command. */
void run_terminal_take(struct run_terminal *t, bool restore);
/* Front was continued: give the terminal back to the command if front is in the
 * foreground. */
void run_terminal_resume(struct run_terminal *t);
void run_terminal_close(struct run_terminal *t);

#endif
