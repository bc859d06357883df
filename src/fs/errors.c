/* SPDX-License-Identifier: BSD-2-Clause */
/* The last failures of readers, found by inode. */
/*
 * A program that reads a bad file gets an errno only.  The sentence goes to the log and
 * into this ring, from which the xattrs user.tensorfs.error of the file and
 * user.tensorfs.errors of the root are made.
 *
 * A training job reads a bad block again in every epoch and every worker.  So a repeated
 * failure (equal inode, code and sentence) is one entry with a count, which becomes the
 * newest again: 256 entries are 256 different failures.  The ring is small and failures
 * are rare, so each search scans it.
 *
 *     at:  | .. | oldest | ...... | newest | free .. |
 *               seq is larger the newer an entry is; 0: free
 */
#include "fs/errors.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"

struct failure {
	uint64_t seq; /* 0: free */
	uint64_t ino;
	uint64_t times;
	time_t when; /* the last time */
	int code;
	char text[sizeof((struct error *)0)->text];
};

struct errors {
	pthread_mutex_t lock; /* protects everything below */
	uint64_t seq;
	uint64_t total;
	struct failure at[ERRORS_MAX];
};

struct errors *errors_new(void)
{
	struct errors *e = calloc(1, sizeof *e);

	if (e)
		pthread_mutex_init(&e->lock, NULL);
	return e;
}

void errors_free(struct errors *e)
{
	if (!e)
		return;
	pthread_mutex_destroy(&e->lock);
	free(e);
}

/* Return the entry for a failure: the one of an equal failure (with `any`, of any failure
 * of `ino`), else a free one, else the oldest. */
static struct failure *failure_slot(struct errors *e, uint64_t ino, int code,
				    const char *text, bool any)
{
	struct failure *f, *oldest = &e->at[0];

	for (f = e->at; f < e->at + ERRORS_MAX; f++) {
		if (f->seq && f->ino == ino && f->code == code &&
		    !strcmp(f->text, text))
			return f;
		if (any && f->seq && f->ino == ino) {
			oldest = f;
			break;
		}
		if (f->seq < oldest->seq)
			oldest = f;
	}
	oldest->times = 0;
	oldest->ino = ino;
	oldest->code = code;
	snprintf(oldest->text, sizeof oldest->text, "%s", text);
	return oldest;
}

static void errors_note(struct errors *e, uint64_t ino, int code,
			const char *text, bool any)
{
	time_t now = time(NULL);
	struct failure *f;

	lock_scope(&e->lock);
	f = failure_slot(e, ino, code, text, any);
	f->seq = ++e->seq;
	f->when = now;
	f->times++;
	e->total++;
}

void errors_add(struct errors *e, uint64_t ino, int code, const char *text)
{
	errors_note(e, ino, code, text, false);
}

void errors_replace(struct errors *e, uint64_t ino, int code, const char *text)
{
	errors_note(e, ino, code, text, true);
}

bool errors_find(struct errors *e, uint64_t ino, char *buf, size_t n)
{
	const struct failure *f, *best = NULL;

	lock_scope(&e->lock);
	for (f = e->at; f < e->at + ERRORS_MAX; f++)
		if (f->seq && f->ino == ino && (!best || f->seq > best->seq))
			best = f;
	if (n)
		snprintf(buf, n, "%s", best ? best->text : "");
	return best != NULL;
}

/* Copy the newest entry whose seq is below `before`; return false if there is none. */
static bool failure_before(struct errors *e, uint64_t before,
			   struct failure *out)
{
	const struct failure *f, *best = NULL;

	lock_scope(&e->lock);
	for (f = e->at; f < e->at + ERRORS_MAX; f++)
		if (f->seq && f->seq < before && (!best || f->seq > best->seq))
			best = f;
	if (best)
		*out = *best;
	return best != NULL;
}

size_t errors_print(struct errors *e, char *buf, size_t n,
		    void (*path)(void *ctx, uint64_t ino, char *buf, size_t n),
		    void *ctx)
{
	uint64_t before = UINT64_MAX;
	struct failure f;
	size_t used = 0;

	if (n)
		buf[0] = '\0';
	while (failure_before(e, before, &f)) {
		char when[32], name[1024], times[32] = "";
		struct tm tm;
		int len;

		before = f.seq;
		if (!gmtime_r(&f.when, &tm) ||
		    !strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &tm))
			snprintf(when, sizeof when, "-");
		path(ctx, f.ino, name, sizeof name);
		if (f.times > 1)
			snprintf(times, sizeof times, " (%llu times)",
				 (unsigned long long)f.times);
		len = snprintf(buf + used, n - used, "%s %s %s: %s%s\n", when,
			       error_name(f.code), name, f.text, times);
		if (len < 0 || (size_t)len >= n - used) {
			if (n > used)
				buf[used] = '\0';
			break;
		}
		used += (size_t)len;
	}
	return used;
}
