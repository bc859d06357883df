/* SPDX-License-Identifier: BSD-2-Clause */
/* The option table of stats. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "cli/option_rows.h"

static int parse_seconds(const char *value, double *out, struct error *err)
{
	char *end;

	*out = strtod(value, &end);
	if (end == value || *end || !(*out >= 0.1) || *out > 86400)
		return error_set(err, -EINVAL,
				 "'%s' is not a number of seconds from 0.1 to "
				 "86400",
				 value);
	return 0;
}

static int set_watch(struct settings *s, const char *value, struct error *err)
{
	s->watch = true;
	return value ? parse_seconds(value, &s->interval, err) : 0;
}

static int set_wait_seconds(struct settings *s, const char *value,
			    struct error *err)
{
	return parse_seconds(value, &s->wait_seconds, err);
}

/* Add a NAME=N to wait for.  Only the daemon can tell whether NAME exists. */
static int set_wait(struct settings *s, const char *value, struct error *err)
{
	struct stats_wait *grown =
		realloc(s->waits, (s->n_waits + 1) * sizeof *grown);
	char *name, *equals;

	if (grown)
		s->waits = grown;
	name = grown ? settings_keep(s, value) : NULL;
	if (!name)
		return error_no_memory(err, "the counters of --wait");
	equals = strchr(name, '=');
	if (!equals || equals == name)
		return error_set(err, -EINVAL,
				 "'%s' is not NAME=N, as in "
				 "chunks_decoded=100",
				 value);
	*equals = '\0';
	grown[s->n_waits].name = name;
	if (parse_count(equals + 1, 0, INT64_MAX, &grown[s->n_waits].least,
			err) < 0)
		return err->code;
	s->n_waits++;
	return 0;
}

const struct option options_stats[] = {
	FLAG("json", 0, json, "print the daemon's JSON"),
	FLAG("prometheus", 0, prometheus, "print the Prometheus text format"),
	CALL("watch", 0, "[SECONDS]", "1", "print repeatedly, with rates",
	     set_watch),
	{"count", 0, OPTION_COUNT, "N", "0, no limit",
	 "with --watch: stop after N times", AT(count), 0, UINT32_MAX, NULL},
	CALL("wait", 0, "NAME=N", NULL,
	     "first wait until the number NAME, as --json spells it, is N or "
	     "more; repeated: until all are",
	     set_wait),
	CALL("timeout", 0, "SECONDS", "no limit",
	     "with --wait: fail when it takes longer", set_wait_seconds),
	END};
