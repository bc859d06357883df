/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints what `pack` did. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "app/pack.h"
#include "base/parse.h"

/* The largest number of problems printed on stderr; further ones are counted. */
#define PROBLEMS_SHOWN 100

int pack_exit(int code)
{
	switch (code) {
	case -ENOMEM:
		return CLI_MEMORY;
	case -EINVAL:
	case -EEXIST:
	case -EISDIR:
		return CLI_USAGE;
	case -EBADMSG:
	case -ENODATA:
	case -ENOTSUP:
		return CLI_SOURCE;
	default:
		return CLI_INCOMPLETE;
	}
}

void pack_say_end(const struct command *c, const char *output, bool made,
		  int code, const struct error *why)
{
	bool stopped = code == -EINTR;

	if (made)
		cli_say(c, "%s: '%s' was made, but not all of it was verified",
			stopped ? "interrupted" : why->text, output);
	else
		cli_say(c, "%s",
			stopped ? "interrupted: nothing was left behind"
				: why->text);
}

static void say_problems(const struct command *c, const struct scan *s)
{
	uint64_t n = 0;

	for (size_t at = 0; at < s->problems.n && n < PROBLEMS_SHOWN; n++) {
		cli_say(c, "%s", s->problems.at + at);
		at += strlen(s->problems.at + at) + 1;
	}
	if (n < s->n_problems)
		cli_say(c, "and %" PRIu64 " more", s->n_problems - n);
	if (s->sockets)
		cli_say(c, "%" PRIu64 " sockets were left out", s->sockets);
	if (s->indexes)
		cli_say(c,
			"%" PRIu64 " index files of archives (*.tfsidx) were "
			"left out: they are made anew where they are missing",
			s->indexes);
}

/* The contents of the output; entries that could not be read are not counted. */
struct packed {
	uint64_t entries, files, bytes;
};
static struct packed count_packed(const struct pack_report *r)
{
	const struct scan *s = r->scan;
	struct packed n = {0};

	for (size_t i = 0; i < s->list.n; i++) {
		const struct scan_entry *e = &s->list.at[i];

		if (e->left_out)
			continue;
		n.entries++;
		n.files += S_ISREG(e->mode);
		/* In shards each name of a file with several names has its own copy of
		 * the bytes. */
		if (S_ISREG(e->mode) && (r->shards || e->same_as == i))
			n.bytes += e->size;
	}
	return n;
}

/* Return the number of samples in the shards; samples that could not be read are not
 * counted. */
static uint64_t count_samples(const struct shards_result *r)
{
	uint64_t n = 0;

	for (size_t k = 0; k < r->plan.list.n; k++)
		n += r->shards[k].samples;
	return n;
}

static void print_shards(const struct shards_result *r)
{
	printf(", \"index\": ");
	cli_json_string(stdout, r->index);
	printf(", \"shards\": %zu, \"samples\": %" PRIu64
	       ", \"left_out\": %" PRIu64,
	       r->plan.list.n, count_samples(r),
	       r->plan.others + r->plan.not_files + r->plan.n_links);
}

static void print_pack_json(const struct pack_report *r)
{
	const struct scan *s = r->scan;
	const struct packed n = count_packed(r);

	printf("{\"output\": ");
	cli_json_string(stdout, r->output);
	printf(", \"format\": ");
	cli_json_string(stdout, r->format);
	printf(", \"codec\": ");
	cli_json_string(stdout, r->codec);
	printf(", \"entries\": %" PRIu64 ", \"files\": %" PRIu64
	       ", \"bytes\": %" PRIu64 ", \"stored\": %" PRIu64
	       ", \"seconds\": %.3f",
	       n.entries, n.files, n.bytes, r->result.stored, r->seconds);
	if (r->shards)
		print_shards(r->shards);
	if (r->index) {
		printf(", \"index\": ");
		cli_json_string(stdout, r->index);
	}
	if (r->result.xxh3[0] || r->result.xxh3[1])
		printf(", \"xxh3_128\": \"%016" PRIx64 "%016" PRIx64 "\"",
		       r->result.xxh3[0], r->result.xxh3[1]);
	printf(", \"verified\": %s, \"differences\": %" PRIu64
	       ", \"problems\": [",
	       r->verified ? "true" : "false", r->differences);
	for (size_t at = 0; at < s->problems.n;) {
		if (at)
			printf(", ");
		cli_json_string(stdout, s->problems.at + at);
		at += strlen(s->problems.at + at) + 1;
	}
	printf("]}\n");
}

static void print_pack_summary(const struct command *c,
			       const struct pack_report *r)
{
	const struct packed n = count_packed(r);
	char bytes[32], stored[32], shards[80] = "";

	if (r->shards)
		snprintf(shards, sizeof shards,
			 "%zu shards, %" PRIu64 " samples, ",
			 r->shards->plan.list.n, count_samples(r->shards));
	format_size(n.bytes, bytes, sizeof bytes);
	format_size(r->result.stored, stored, sizeof stored);
	cli_say(c, "%s: %s%" PRIu64 " files, %s in %s (%s), %.1f s%s",
		r->output, shards, n.files, bytes, stored, r->codec, r->seconds,
		r->verified ? ", verified" : "");
}

int pack_say(const struct command *c, const struct settings *s,
	     const struct pack_report *r)
{
	int flushed;

	say_problems(c, r->scan);
	if (s->json)
		print_pack_json(r);
	else if (!s->quiet)
		print_pack_summary(c, r);
	flushed = cli_flush_report(c);
	return r->scan->n_problems || r->differences ? CLI_INCOMPLETE : flushed;
}
