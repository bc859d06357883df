/* SPDX-License-Identifier: BSD-2-Clause */
/* Become a daemon, and tell whoever waits whether that went well. */
#ifndef APP_DAEMON_H
#define APP_DAEMON_H

#include <stdbool.h>

#include "base/error.h"

struct daemon {
	int fd; /* child: where it reports; parent: where it listens; or -1 */
	int pid;
	bool keep_stderr; /* child: also when it is ready */
};
/* Fork; no thread may run yet.  The child leaves session, directory and
 * standard input and output, and logs to syslog.  0 in the child, 1 in the
 * parent, -errno. */
int daemon_fork(struct daemon *d, struct error *err);
/* Would the daemon be killed as soon as its parent exits?  True of the command
 * that a Slurm step consists of ("srun tensorfs mount"). */
bool daemon_would_die(void);
/* In the child: the parent may go; standard error is left, too, unless it is
 * to be kept. */
void daemon_ready(struct daemon *d);
/* In the child: the parent shall print the sentence and exit with `status`. */
void daemon_fail(struct daemon *d, int status, const char *sentence);
/* In the parent: wait for one of these or the child's death.  0 or the exit
 * status, with a sentence; `status_of_death` when the child just died. */
int daemon_wait(struct daemon *d, int status_of_death, struct error *err);

/* Write 's' to a FIFO once somebody reads it, without waiting here. */
void notify_ready(const char *fifo);
/* Tell systemd, if it has started us as a unit of Type=notify. */
void notify_service_manager(void);
/* Write 'f'; waits at most two seconds for a reader. */
void notify_failed(const char *fifo);

#endif
