/* SPDX-License-Identifier: BSD-2-Clause */
/* Signals that end long work: it notices, cleans up, and dies of them then. */
#ifndef APP_INTERRUPT_H
#define APP_INTERRUPT_H

/* From now on SIGINT, SIGTERM, SIGHUP and SIGPIPE (those that are not ignored) set this to
 * their number; calls that wait return EINTR.  A second one of the same kind ends the process at once. */
extern _Atomic int interrupted;
void interrupt_catch(void);
/* As if the signal had not been caught; returns when there was none. */
void interrupt_die(void);

#endif
