/* SPDX-License-Identifier: BSD-2-Clause */
/* Shows the progress of long work: a line that is rewritten, plain lines, or nothing. */
#ifndef APP_PROGRESS_H
#define APP_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	enum { PROGRESS_NONE, PROGRESS_PLAIN, PROGRESS_LINE } kind;
	const char *what;
	uint64_t total;     /* in bytes; 0 if not known */
	double began, last; /* seconds */
	bool shown;         /* a line is on the terminal and must be wiped */
};
/* `mode`: "auto" (a line if stderr is a terminal), "plain", "none". */
void progress_init(struct progress *p, const char *mode, const char *what,
		   uint64_t total);
/* Report that `done` bytes are done.  Cheap to call often; calls must not overlap. */
void progress_update(struct progress *p, uint64_t done);
/* Wipe the line, before other output and at the end. */
void progress_clear(struct progress *p);
double progress_seconds(const struct progress *p);

#endif
