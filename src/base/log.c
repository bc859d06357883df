/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines for people: stderr or syslog, levels, repeats folded. */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

/*
 * A training job that meets one bad chunk asks for it again and again, from many
 * processes, and for a second bad chunk in between.  So the last RECENT lines are
 * remembered, not just the last one: a line that was printed less than FOLD seconds ago
 * is only counted.  The count is printed, with the line, when the next line is logged
 * after that time, or when the line must make room for another.
 *
 * The text may hold names out of untrusted files: control characters become '?', so that
 * a name can neither forge a line nor drive the terminal.  A line is one write(2), so
 * lines of threads and processes do not mix.  No lock is held while writing.
 */
#define LINE_BYTES 1024
#define RECENT 16
#define FOLD 60

struct recent {
	bool used;
	enum log_level level;
	time_t printed;
	uint64_t repeats;
	char text[LINE_BYTES];
};

static pthread_mutex_t recent_lock = PTHREAD_MUTEX_INITIALIZER;
static struct recent recent[RECENT]; /* under recent_lock */

static _Atomic int level_now = LOG_LEVEL_WARN;
static _Atomic bool use_syslog;
static char syslog_ident[64];

unsigned log_debug_mask;
static const char *const module_names[DEBUG_MODULES] = {
	[DEBUG_CACHE] = "cache",       [DEBUG_ARCHIVE] = "archive",
	[DEBUG_HDF5] = "hdf5",         [DEBUG_FUSE] = "fuse",
	[DEBUG_PREFETCH] = "prefetch",
};

void log_to_syslog(const char *ident)
{
	snprintf(syslog_ident, sizeof syslog_ident, "%s", ident);
	openlog(syslog_ident, LOG_PID, LOG_DAEMON);
	atomic_store(&use_syslog, true);
}

void log_set_level(enum log_level level)
{
	atomic_store(&level_now, level);
}

const char *log_modules(void)
{
	return "archive,cache,hdf5,fuse,prefetch";
}

int log_set_debug(const char *modules)
{
	unsigned mask = 0;

	for (const char *p = modules; *p;) {
		size_t n = strcspn(p, ",");
		unsigned m;

		for (m = 0; m < DEBUG_MODULES; m++)
			if (strlen(module_names[m]) == n &&
			    !memcmp(module_names[m], p, n))
				break;
		if (m < DEBUG_MODULES)
			mask |= 1u << m;
		else if (n == 3 && !memcmp(p, "all", n))
			mask |= (1u << DEBUG_MODULES) - 1;
		else
			return -1;
		p += n + (p[n] == ',');
	}
	log_debug_mask = mask;
	return 0;
}

/* Write one line to syslog or stderr.  `text` has no control characters. */
static void log_emit(int priority, const char *kind, const char *text)
{
	char line[LINE_BYTES + 64];
	ssize_t done;
	int n;

	if (atomic_load(&use_syslog)) {
		syslog(priority, "%s%s", kind, text);
		return;
	}
	n = snprintf(line, sizeof line, "tensorfs: %s%s\n", kind, text);
	if (n >= (int)sizeof line) {
		n = sizeof line - 1;
		line[n - 1] = '\n';
	}
	/* There is nowhere to report that stderr cannot be written to. */
	done = write(STDERR_FILENO, line, (size_t)n);
	(void)done;
}

static void log_emit_level(enum log_level level, const char *text)
{
	static const struct {
		int priority;
		const char *kind;
	} how[] = {
		[LOG_LEVEL_ERROR] = {LOG_ERR, "error: "},
		[LOG_LEVEL_WARN] = {LOG_WARNING, "warning: "},
		[LOG_LEVEL_INFO] = {LOG_INFO, ""},
	};

	log_emit(how[level].priority, how[level].kind, text);
}

static void log_emit_repeats(const struct recent *r)
{
	char text[LINE_BYTES + 48];

	snprintf(text, sizeof text, "message repeated %llu times: %s",
		 (unsigned long long)r->repeats, r->text);
	log_emit_level(r->level, text);
}

static bool log_line_is_old(const struct recent *r, time_t now)
{
	return now - r->printed >= FOLD;
}

/* Forget remembered lines that are old.  Return true if one of them, now in *out, has
 * repeats to be printed; the caller then calls again. */
static bool log_forget_old_line(time_t now, struct recent *out)
{
	bool found = false;

	pthread_mutex_lock(&recent_lock);
	for (unsigned i = 0; i < RECENT && !found; i++) {
		struct recent *r = &recent[i];

		if (!r->used || !log_line_is_old(r, now))
			continue;
		r->used = false;
		found = r->repeats > 0;
		if (found)
			*out = *r;
	}
	pthread_mutex_unlock(&recent_lock);
	return found;
}

/* Return true if the line was printed lately; its repeat is counted.  Otherwise remember
 * it and return false; *out is the line that had to make room, with its repeats. */
static bool log_count_repeat(enum log_level level, const char *text, time_t now,
			     struct recent *out)
{
	struct recent *slot = NULL;
	bool folded = false;

	out->repeats = 0;
	pthread_mutex_lock(&recent_lock);
	for (unsigned i = 0; i < RECENT && !folded; i++) {
		struct recent *r = &recent[i];

		if (r->used && r->level == level && !strcmp(r->text, text)) {
			r->repeats++;
			folded = true;
		} else if (!slot || (slot->used && !r->used) ||
			   (slot->used && r->printed < slot->printed)) {
			slot = r;
		}
	}
	if (!folded) {
		if (slot->used)
			*out = *slot;
		slot->used = true;
		slot->level = level;
		slot->printed = now;
		slot->repeats = 0;
		memcpy(slot->text, text, strlen(text) + 1);
	}
	pthread_mutex_unlock(&recent_lock);
	return folded;
}

/* Format the line and replace control characters with '?'. */
static void format_clean(char text[LINE_BYTES], const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));
static void format_clean(char text[LINE_BYTES], const char *fmt, va_list ap)
{
	vsnprintf(text, LINE_BYTES, fmt, ap);
	for (unsigned char *p = (unsigned char *)text; *p; p++)
		if (*p < 0x20 || *p == 0x7f)
			*p = '?';
}

static void log_line(enum log_level level, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));
static void log_line(enum log_level level, const char *fmt, va_list ap)
{
	char text[LINE_BYTES];
	struct timespec ts;
	struct recent old;

	if ((int)level > atomic_load_explicit(&level_now, memory_order_relaxed))
		return;
	format_clean(text, fmt, ap);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	while (log_forget_old_line(ts.tv_sec, &old))
		log_emit_repeats(&old);
	if (log_count_repeat(level, text, ts.tv_sec, &old))
		return;
	if (old.repeats)
		log_emit_repeats(&old);
	log_emit_level(level, text);
}

void log_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_line(LOG_LEVEL_ERROR, fmt, ap);
	va_end(ap);
}

void log_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_line(LOG_LEVEL_WARN, fmt, ap);
	va_end(ap);
}

void log_info(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_line(LOG_LEVEL_INFO, fmt, ap);
	va_end(ap);
}

void log_debug_line(enum log_module m, const char *fmt, ...)
{
	char text[LINE_BYTES], kind[48];
	va_list ap;

	va_start(ap, fmt);
	format_clean(text, fmt, ap);
	va_end(ap);
	snprintf(kind, sizeof kind, "%s[%d]: ", module_names[m], (int)gettid());
	log_emit(LOG_DEBUG, kind, text);
}
