/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of `pack`: its lists, its report, shards and rechunking. */
#ifndef APP_PACK_H
#define APP_PACK_H

#include "app/cli.h"
#include "app/progress.h"
#include "pack/shards/shards.h"

/* Set the defaults that depend on the machine and on where `top` is: threads, jobs,
 * memory. */
void pack_defaults(struct settings *s, const char *top);

/* The lines of a file (with `null`, its texts that end with NUL); "-" is standard input. */
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
/* Set the options of the scan and of the feed from the settings.  The caller frees
 * `lists`, also after a failure.  Return 0, or an exit code after a sentence on stderr. */
int pack_options(const struct command *c, const struct settings *s,
		 const char *out, struct scan_options *scan,
		 struct feed_options *feed, struct pack_lists *lists);
void pack_lists_free(struct pack_lists *l);

/* What pack did, to be printed for people or as JSON. */
struct pack_report {
	const char *output, *format;
	const struct scan *scan;
	struct sink_result result; /* but its strings are copied here: */
	char codec[64];
	char *index; /* the index file of a tar; owned; NULL if there is none */
	const struct shards_result *shards; /* NULL if the output is one file */
	double seconds;
	bool verified;
	uint64_t differences; /* differences that --verify found */
};
/* Print problems on stderr, and the summary where the settings want it.  Return the exit
 * code. */
int pack_say(const struct command *c, const struct settings *s,
	     const struct pack_report *r);
/* Return the exit code for a failure to write. */
int pack_exit(int code);
/* Print why pack ended early.  `made`: the output is complete and has its name, but was
 * not wholly verified. */
void pack_say_end(const struct command *c, const char *output, bool made,
		  int code, const struct error *why);

/* Check that the disk returns the bytes that were written.  A function for
 * sink_args.check. */
int pack_check_bytes(const struct settings *s, const char *path, int fd,
		     const uint64_t xxh3[2], struct error *err);
/* Compare the output with the directory, through the readers of tensorfs.  Prints the
 * differences, and returns their number; -errno with a sentence if it could not compare. */
int64_t pack_verify(const struct command *c, struct settings *s,
		    const char *top, struct scan *scan,
		    const struct feed_options *feed, const struct sink_args *a,
		    const struct sink_ops *ops, struct error *err);
/* Run `pack SOURCE[:PATH] OUT.h5`.  Return an exit code. */
int pack_rechunk(const struct command *c, struct settings *s,
		 const char *source, const char *out);
/* pack_wants_shards returns whether the settings ask for shards; pack_shards then makes
 * them, and returns an exit code. */
bool pack_wants_shards(const struct settings *s);
int pack_shards(const struct command *c, struct settings *s, const char *top,
		const char *pattern, const struct sink_ops *ops);

/* Return whether --chunk=sample was given: one chunk for each sample. */
bool pack_chunk_is_sample(const struct settings *s);

#endif
