/* SPDX-License-Identifier: BSD-2-Clause */
/* tensorfs stats: print counters of a running mount, as a table, JSON or Prometheus
 * text. */

/*
 * The daemon answers with one flat JSON object, an extended attribute of the mount's
 * root.  Its numbers are counters, which only grow (those of counter_info, and a few of
 * the cache), or gauges.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "app/cli.h"
#include "app/mountinfo.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/counters.h"
#include "base/parse.h"

#define STATS "user.tensorfs.stats"
#define VALUE_MAX 65536

static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig)
{
	(void)sig;
	interrupted = 1;
}

/* Return the attribute's text (malloc'ed), or NULL after printing a sentence. */
static char *read_stats(const struct command *c, const char *mount)
{
	cleanup_free char *text = malloc(VALUE_MAX + 1);
	ssize_t n;

	if (!text) {
		cli_say(c, "out of memory for the counters");
		return NULL;
	}
	n = getxattr(mount, STATS, text, VALUE_MAX);
	if (n >= 0) {
		text[n] = '\0';
		return steal_pointer(&text);
	}
	if (errno == ENODATA || errno == ENOTSUP)
		cli_say(c, "'%s' is not the root of a tensorfs mount", mount);
	else if (mount_has_died(errno))
		cli_say(c,
			"the daemon of '%s' is dead; remove the mount with: "
			"tensorfs umount '%s'",
			mount, mount);
	else
		cli_say(c, "'%s': %s", mount, strerror(errno));
	return NULL;
}

static json_t *parse_stats(const struct command *c, const char *text)
{
	json_error_t why;
	json_t *o = json_loads(text, 0, &why);

	if (o && json_is_object(o))
		return o;
	cli_say(c, "the daemon's answer is not a JSON object: %s",
		o ? "another value" : why.text);
	json_decref(o);
	return NULL;
}

static const struct counter_info *counter_named(const char *name)
{
	for (int i = 0; i < COUNTER_COUNT; i++)
		if (!strcmp(counter_info[i].name, name))
			return &counter_info[i];
	return NULL;
}

static bool only_grows(const char *name)
{
	return counter_named(name) || !strcmp(name, "cache_hits") ||
	       !strcmp(name, "cache_misses") ||
	       !strcmp(name, "cache_evictions");
}

static bool is_bytes(const char *name)
{
	size_t n = strlen(name);

	return !strncmp(name, "bytes_", 6) || !strcmp(name, "cache_budget") ||
	       !strcmp(name, "shared_budget") ||
	       (n > 6 && !strcmp(name + n - 6, "_bytes"));
}

static const char *stats_help_of(const char *name)
{
	static const char *const others[][2] = {
		{"uptime_seconds", "seconds since the mount"},
		{"read_amplification", "bytes decoded for each byte served"},
		{"cache_budget", "limit of the cache in bytes"},
		{"cache_bytes", "bytes in the cache"},
		{"cache_beside_bytes", "bytes that count towards its limit: "
				       "idle decoders, first-pass caches"},
		{"cache_entries", "chunks in the cache"},
		{"cache_evictions", "chunks evicted to make room"},
		{"cache_hits", "chunks found in the cache"},
		{"cache_misses", "chunks not found in the cache"},
		{"shared_budget",
		 "limit of the chunks in shared memory, in bytes"},
		{"shared_bytes", "bytes in shared memory, of all mounts"},
		{"shared_entries", "chunks in shared memory, of all mounts"},
		{"shared_mapped_bytes",
		 "bytes of shared chunks that this mount uses"},
		{"handles_open", "backing files open now"},
		{"handles_limit", "backing files that may be open"},
		{"source_files", "backing files known"},
		{"directories", "directories in memory"},
		{"directory_bytes", "bytes of memory that directories take"},
		{"resident_bytes", "resident memory of the daemon"}};
	const struct counter_info *info = counter_named(name);

	if (info)
		return info->help;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (!strcmp(others[i][0], name))
			return others[i][1];
	return "";
}

/* Print a label value with backslash, quote and newline escaped, as the Prometheus text
 * format requires. */
static void stats_print_label(const char *s)
{
	for (; *s; s++) {
		if (*s == '\n')
			fputs("\\n", stdout);
		else if (*s == '\\' || *s == '"')
			printf("\\%c", *s);
		else
			putchar(*s);
	}
}

static void print_prometheus(json_t *o, const char *mount)
{
	const char *key;
	json_t *v;

	json_object_foreach(o, key, v)
	{
		bool grows = only_grows(key);
		const char *suffix = grows ? "_total" : "";

		if (!json_is_number(v))
			continue;
		printf("# HELP tensorfs_%s%s %s\n", key, suffix,
		       stats_help_of(key));
		printf("# TYPE tensorfs_%s%s %s\n", key, suffix,
		       grows ? "counter" : "gauge");
		printf("tensorfs_%s%s{mount=\"", key, suffix);
		stats_print_label(mount);
		if (json_is_integer(v))
			printf("\"} %" JSON_INTEGER_FORMAT "\n",
			       json_integer_value(v));
		else
			printf("\"} %.9g\n", json_real_value(v));
	}
}

static void value_text(const char *key, double v, char *buf, size_t n)
{
	if (is_bytes(key))
		format_size(v > 0 ? (uint64_t)v : 0, buf, n);
	else
		snprintf(buf, n, "%.*f", v < 100 && v != floor(v) ? 2 : 0, v);
}

/* Print a line for each number, with its rate if `before`, the values `seconds` ago, is
 * not NULL. */
static void stats_print_table(json_t *o, json_t *before, double seconds)
{
	const char *key;
	json_t *v;

	json_object_foreach(o, key, v)
	{
		char now[48], rate[48] = "";
		json_t *old = before ? json_object_get(before, key) : NULL;

		if (!json_is_number(v)) {
			if (json_is_string(v))
				printf("%-20s %14s\n", key,
				       json_string_value(v));
			continue;
		}
		value_text(key, json_number_value(v), now, sizeof now);
		if (old && seconds > 0 && only_grows(key)) {
			double d =
				json_number_value(v) - json_number_value(old);

			value_text(key, d / seconds, rate, sizeof rate - 2);
			strcat(rate, "/s");
		}
		printf("%-20s %14s %14s  %s\n", key, now, rate,
		       stats_help_of(key));
	}
}

static void pause_for(double seconds)
{
	struct timespec t = {(time_t)seconds,
			     (long)((seconds - floor(seconds)) * 1e9)};

	nanosleep(&t, NULL);
}

static void stats_print_once(const struct settings *s, const char *mount,
			     const char *text, json_t *o, json_t *before,
			     double seconds)
{
	if (s->json)
		printf("%s\n", text);
	else if (s->prometheus)
		print_prometheus(o, mount);
	else
		stats_print_table(o, before, seconds);
}

/* Print again and again until an interrupt, --count, or the end of the mount, which is a
 * failure.  Return an exit code whose sentence has been printed. */
static int stats_watch(const struct command *c, const struct settings *s,
		       const char *mount)
{
	struct sigaction act = {.sa_handler = on_interrupt};
	bool screen = isatty(STDOUT_FILENO) && !s->json && !s->prometheus;
	json_t *before = NULL;
	double then = 0;
	int r = CLI_DONE;

	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	for (uint64_t i = 0; !interrupted && (!s->count || i < s->count); i++) {
		cleanup_free char *text = NULL;
		double now;
		json_t *o;

		if (i > 0)
			pause_for(s->interval);
		if (interrupted)
			break;
		text = read_stats(c, mount);
		now = clock_seconds();
		o = text ? parse_stats(c, text) : NULL;
		if (!o) {
			r = CLI_INCOMPLETE;
			break;
		}
		if (screen)
			printf("\033[H\033[J%s, every %g s\n\n", mount,
			       s->interval);
		else if (i > 0 && !s->json && !s->prometheus)
			putchar('\n');
		stats_print_once(s, mount, text, o, before, now - then);
		json_decref(before);
		before = o;
		then = now;
		r = cli_flush(c);
		if (r != CLI_DONE)
			break;
	}
	json_decref(before);
	return r;
}

/* ---- waiting --------------------------------------------------------------- */

/*
 * A daemon that is stopped does not answer, and a thread that waits for its answer cannot
 * be woken.  So another thread watches --timeout, and ends the process when it expires.
 */
#define WAIT_PAUSE_MIN 0.001 /* seconds between the first two requests */
#define WAIT_PAUSE_MAX 0.05  /* seconds between later requests, at most */

struct waiting {
	const struct command *c;
	const struct settings *s;
	const char *mount;
	pthread_mutex_t lock; /* protects `seen` and `over` */
	pthread_cond_t ended;
	struct timespec until;
	json_t *seen; /* the daemon's last answer; NULL before the first one */
	bool over; /* waiting has ended: the timeout must not end the process any more */
};

static bool is_reached(const struct stats_wait *wanted, const json_t *o)
{
	const json_t *v = json_object_get(o, wanted->name);

	if (json_is_integer(v))
		return json_integer_value(v) >= (json_int_t)wanted->least;
	return json_is_real(v) && json_real_value(v) >= (double)wanted->least;
}

static bool all_are_reached(const struct waiting *w)
{
	for (size_t i = 0; i < w->s->n_waits; i++)
		if (!is_reached(&w->s->waits[i], w->seen))
			return false;
	return true;
}

/* Print a sentence for each number that is still too small.  The caller holds w->lock. */
static void say_what_is_missing(const struct waiting *w, const char *when)
{
	for (size_t i = 0; i < w->s->n_waits; i++) {
		const struct stats_wait *wanted = &w->s->waits[i];

		if (!is_reached(wanted, w->seen))
			cli_say(w->c,
				"'%s' was %.15g %s, but %" PRIu64
				" or more was wanted",
				wanted->name,
				json_number_value(
					json_object_get(w->seen, wanted->name)),
				when, wanted->least);
	}
}

/* Thread: end the process with a sentence unless waiting ends before the timeout. */
static void *keep_timeout(void *ctx)
{
	struct waiting *w = ctx;
	char when[48];

	lock_scope(&w->lock);
	while (!w->over && pthread_cond_timedwait(&w->ended, &w->lock,
						  &w->until) != ETIMEDOUT)
		;
	if (w->over)
		return NULL;
	snprintf(when, sizeof when, "after %g s", w->s->wait_seconds);
	if (w->seen)
		say_what_is_missing(w, when);
	else
		cli_say(w->c, "'%s' did not answer within %g s", w->mount,
			w->s->wait_seconds);
	_exit(CLI_INCOMPLETE);
}

/* Return CLI_USAGE, after printing a sentence, if the mount has no number of a given
 * name; else CLI_DONE. */
static int check_waited_names(const struct waiting *w)
{
	for (size_t i = 0; i < w->s->n_waits; i++) {
		const char *name = w->s->waits[i].name;

		if (!json_is_number(json_object_get(w->seen, name)))
			return cli_usage(
				w->c,
				"the mount has no counter '%s'; 'tensorfs "
				"stats %s' lists those it has",
				name, w->mount);
	}
	return CLI_DONE;
}

/* Take over the daemon's answer (NULL: the mount has gone away).  Set w->over if there is
 * nothing left to wait for.  Return CLI_DONE, or an exit code whose sentence has been
 * printed. */
static int judge_stats(struct waiting *w, json_t *answer)
{
	bool first = !w->seen;
	int r = CLI_DONE;

	lock_scope(&w->lock);
	if (answer) {
		json_decref(w->seen);
		w->seen = answer;
		if (first)
			r = check_waited_names(w);
		w->over = r != CLI_DONE || all_are_reached(w);
		return r;
	}
	if (w->seen)
		say_what_is_missing(w, "before that");
	w->over = true;
	return CLI_INCOMPLETE;
}

/* Ask the daemon until all numbers are large enough and set *text to that answer
 * (malloc'ed).  Return CLI_DONE, or an exit code whose sentence has been printed if the
 * mount goes away.  Blocks. */
static int poll_stats(struct waiting *w, char **text)
{
	double seconds = WAIT_PAUSE_MIN;

	for (;;) {
		cleanup_free char *answer = read_stats(w->c, w->mount);
		int r = judge_stats(w,
				    answer ? parse_stats(w->c, answer) : NULL);

		if (w->over) {
			*text = steal_pointer(&answer);
			return r;
		}
		pause_for(seconds);
		seconds = fmin(2 * seconds, WAIT_PAUSE_MAX);
	}
}

static int start_timeout(struct waiting *w, pthread_t *thread)
{
	pthread_condattr_t attr;
	double whole;
	double part = modf(w->s->wait_seconds, &whole);
	int r;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->ended, &attr);
	pthread_condattr_destroy(&attr);
	w->until = clock_after((uint64_t)(part * 1e9));
	w->until.tv_sec += (time_t)whole;
	r = pthread_create(thread, NULL, keep_timeout, w);
	if (r == 0)
		return CLI_DONE;
	cli_say(w->c, "cannot start the thread for --timeout: %s", strerror(r));
	pthread_cond_destroy(&w->ended);
	return CLI_INCOMPLETE;
}

/* As poll_stats, but end the process when --timeout expires. */
static int wait_for_stats(const struct command *c, const struct settings *s,
			  const char *mount, char **text)
{
	struct waiting w = {.c = c,
			    .s = s,
			    .mount = mount,
			    .lock = PTHREAD_MUTEX_INITIALIZER};
	bool limited = s->wait_seconds > 0;
	pthread_t thread;
	int r = limited ? start_timeout(&w, &thread) : CLI_DONE;

	if (r != CLI_DONE)
		return r;
	r = poll_stats(&w, text);
	if (limited) {
		pthread_mutex_lock(&w.lock);
		pthread_cond_signal(&w.ended);
		pthread_mutex_unlock(&w.lock);
		pthread_join(thread, NULL);
		pthread_cond_destroy(&w.ended);
	}
	json_decref(w.seen);
	return r;
}

int cmd_stats(const struct command *c, struct settings *s, int argc,
	      char **argv)
{
	cleanup_free char *text = NULL;
	json_t *o;
	int r;

	(void)argc;
	if (s->json && s->prometheus)
		return cli_usage(c, "--json or --prometheus, not both");
	if (s->count && !s->watch)
		return cli_usage(c, "--count needs --watch");
	if (s->wait_seconds > 0 && !s->n_waits)
		return cli_usage(c, "--timeout needs --wait");
	r = s->n_waits ? wait_for_stats(c, s, argv[0], &text) : CLI_DONE;
	if (r != CLI_DONE)
		return r;
	if (s->watch)
		return stats_watch(c, s, argv[0]);
	if (!text)
		text = read_stats(c, argv[0]);
	o = text ? parse_stats(c, text) : NULL;
	if (!o)
		return CLI_INCOMPLETE;
	stats_print_once(s, argv[0], text, o, NULL, 0);
	json_decref(o);
	return cli_flush(c);
}
