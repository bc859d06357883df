/* SPDX-License-Identifier: BSD-2-Clause */
/* How far long work is: a line that moves, plain lines, or nothing. */
#ifndef APP_PROGRESS_H
#define APP_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	enum { PROGRESS_NONE, PROGRESS_PLAIN, PROGRESS_LINE } kind;
	const char *what;
	uint64_t total;     /* bytes; 0: not known */
	double began, last; /* seconds */
	bool shown;         /* a line that must be wiped */
};
/* `mode`: "auto" (a line if stderr is a terminal), "plain", "none". */
void progress_init(struct progress *p, const char *mode, const char *what,
		   uint64_t total);
/* Call as often as you like, from one thread at a time. */
void progress_update(struct progress *p, uint64_t done);
/* Wipe the moving line, before other output and at the end. */
void progress_clear(struct progress *p);
double progress_seconds(const struct progress *p);

#endif
