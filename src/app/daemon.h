/* SPDX-License-Identifier: BSD-2-Clause */
/* Become a daemon, and report to the waiting parent whether that succeeded. */
#ifndef APP_DAEMON_H
#define APP_DAEMON_H

#include <stdbool.h>

#include "base/error.h"

struct daemon {
	int fd; /* the pipe: the child writes, the parent reads; -1 if closed */
	int pid;
	bool keep_stderr; /* child: keep stderr after daemon_ready */
};
/* Fork; no thread may run yet.  The child leaves its session, its directory and standard
 * input and output, and logs to syslog.  Return 0 in the child, 1 in the parent, or
 * -errno. */
int daemon_fork(struct daemon *d, struct error *err);
/* Return true if the daemon would be killed as soon as its parent exits: this process is
 * the first of a Slurm task ("srun tensorfs mount"). */
bool daemon_would_die(void);
/* In the child: let the parent exit with success.  Also redirects standard error to
 * /dev/null unless keep_stderr is set. */
void daemon_ready(struct daemon *d);
/* In the child: make the parent print the sentence and exit with `status`. */
void daemon_fail(struct daemon *d, int status, const char *sentence);
/* In the parent: wait until the child calls daemon_ready or daemon_fail, or dies.  Return
 * 0, or the exit status with a sentence; `status_of_death` if the child died without a
 * report. */
int daemon_wait(struct daemon *d, int status_of_death, struct error *err);

/* Write 's' to a FIFO once another process reads it; a thread waits for that, not the
 * caller. */
void notify_ready(const char *fifo);
/* Tell systemd that the mount is ready, if it started this process as a unit of
 * Type=notify. */
void notify_service_manager(void);
/* Write 'f' to a FIFO; wait at most two seconds for a reader. */
void notify_failed(const char *fifo);

#endif
