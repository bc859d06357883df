/* SPDX-License-Identifier: BSD-2-Clause */
/* Shows bytes done, rate and time left on stderr. */
#include "app/progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"

void progress_init(struct progress *p, const char *mode, const char *what,
		   uint64_t total)
{
	memset(p, 0, sizeof *p);
	if (!strcmp(mode, "plain"))
		p->kind = PROGRESS_PLAIN;
	else if (!strcmp(mode, "auto") && isatty(STDERR_FILENO))
		p->kind = PROGRESS_LINE;
	else
		p->kind = PROGRESS_NONE;
	p->what = what;
	p->total = total;
	p->began = p->last = clock_seconds();
}

double progress_seconds(const struct progress *p)
{
	return clock_seconds() - p->began;
}

static void show_progress_line(struct progress *p, uint64_t done,
			       double elapsed)
{
	char have[32], all[32], rate[32], left[48] = "";
	double speed = elapsed > 0 ? (double)done / elapsed : 0;

	format_size(done, have, sizeof have);
	format_size(p->total, all, sizeof all);
	format_size((uint64_t)speed, rate, sizeof rate);
	if (speed > 0 && done <= p->total) {
		double rest = (double)(p->total - done) / speed;
		unsigned s = rest < 1e6 ? (unsigned)rest : 1000000;

		snprintf(left, sizeof left, ", %u:%02u:%02u left", s / 3600,
			 s / 60 % 60, s % 60);
	}
	fprintf(stderr, "%s%s: %s of %s (%.0f %%), %s/s%s%s",
		p->kind == PROGRESS_LINE ? "\r" : "", p->what, have, all,
		p->total ? 100.0 * (double)done / (double)p->total : 100.0,
		rate, left, p->kind == PROGRESS_LINE ? "\033[K" : "\n");
	fflush(stderr);
	p->shown = p->kind == PROGRESS_LINE;
}

void progress_update(struct progress *p, uint64_t done)
{
	double every = p->kind == PROGRESS_LINE ? 0.2 : 10;
	double now;

	if (p->kind == PROGRESS_NONE)
		return;
	now = clock_seconds();
	if (now - p->last < every)
		return;
	p->last = now;
	show_progress_line(p, done, now - p->began);
}

void progress_clear(struct progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
	p->shown = false;
}
