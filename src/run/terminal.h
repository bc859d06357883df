/* SPDX-License-Identifier: BSD-2-Clause */
/* The terminal of a run: whose it is. */
#ifndef RUN_TERMINAL_H
#define RUN_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>

struct run_terminal {
	int fd;      /* /dev/tty; -1: there is none */
	pid_t group; /* the command's */
	bool wanted; /* the command gets it whenever we have it */
	bool given;
	bool have_ours, have_theirs;
	struct termios ours, theirs; /* modes */
};
void run_terminal_open(struct run_terminal *t);
/* The command has been made; gives it the terminal if it should have it at once. */
void run_terminal_start(struct run_terminal *t, pid_t group);
/* The command stopped for want of the terminal: true if it has it now. */
bool run_terminal_grant(struct run_terminal *t);
/* Take it back; `restore`: its modes as they were before the command, too. */
void run_terminal_take(struct run_terminal *t, bool restore);
/* We were continued: give it back to the command if we are in the foreground. */
void run_terminal_resume(struct run_terminal *t);
void run_terminal_close(struct run_terminal *t);

#endif
