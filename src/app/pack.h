/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of `pack`: its lists, its report, and what it does that is no plain pack. */
#ifndef APP_PACK_H
#define APP_PACK_H

#include "app/cli.h"
#include "app/progress.h"
#include "pack/shards/shards.h"

/* Defaults that depend on the machine and on where `top` is: threads, jobs, memory. */
void pack_defaults(struct settings *s, const char *top);

/* Lines (or, with `null`, texts that end with NUL) of a file, "-": standard input. */
struct pack_list {
	char *text;
	const char **at; /* NULL-terminated */
};
int pack_list_read(struct pack_list *out, const char *file, bool null,
		   struct error *err);
void pack_list_free(struct pack_list *l);

struct pack_lists {
	struct pack_list only, first;
};
/* Options of the scan and the feed as the settings have them; `lists` is to be freed.
 * 0, or an exit code with a sentence on stderr. */
int pack_options(const struct command *c, const struct settings *s,
		 const char *out, struct scan_options *scan,
		 struct feed_options *feed, struct pack_lists *lists);
void pack_lists_free(struct pack_lists *l);

/* What was done, for people or as JSON. */
struct pack_report {
	const char *output, *format;
	const struct scan *scan;
	struct sink_result result; /* but these are its strings: */
	char codec[64];
	char *index;                        /* of a tar; owned; NULL */
	const struct shards_result *shards; /* NULL: it is one file */
	double seconds;
	bool verified;
	uint64_t differences; /* that --verify found */
};
/* Problems on stderr, the summary where it belongs: the exit code. */
int pack_say(const struct command *c, const struct settings *s,
	     const struct pack_report *r);
/* The exit code for a failure to write. */
int pack_exit(int code);
/* What ended it.  `made`: the output has its name, and was about to be verified. */
void pack_say_end(const struct command *c, const char *output, bool made,
		  int code, const struct error *why);

/* Does the disk give the bytes that were written?  As sink_args.check has it. */
int pack_check_bytes(const struct settings *s, const char *path, int fd,
		     const uint64_t xxh3[2], struct error *err);
/* Compare what was packed with the directory, through our own reader.  Differences are
 * said; their number.  -errno with a sentence: it could not be done. */
int64_t pack_verify(const struct command *c, struct settings *s,
		    const char *top, struct scan *scan,
		    const struct feed_options *feed, const struct sink_args *a,
		    const struct sink_ops *ops, struct error *err);
/* `pack SOURCE[:PATH] OUT.h5`: an exit code. */
int pack_rechunk(const struct command *c, struct settings *s,
		 const char *source, const char *out);
/* Is it shards that is asked for?  Then: an exit code. */
bool pack_wants_shards(const struct settings *s);
int pack_shards(const struct command *c, struct settings *s, const char *top,
		const char *pattern, const struct sink_ops *ops);

/* --chunk=sample: a sample is a chunk. */
bool pack_chunk_is_sample(const struct settings *s);

#endif
