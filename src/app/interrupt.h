/* SPDX-License-Identifier: BSD-2-Clause */
/* Signals that end long work: the work notices them, cleans up, and then dies of them. */
#ifndef APP_INTERRUPT_H
#define APP_INTERRUPT_H

/* After interrupt_catch, SIGINT, SIGTERM, SIGHUP and SIGPIPE (those that are not
 * ignored) set `interrupted` to their number, and calls that wait return EINTR. A second
 * signal of the same kind ends the process at once. */
extern _Atomic int interrupted;
void interrupt_catch(void);
/* Die of the signal that was caught; return if there was none. */
void interrupt_die(void);

#endif
