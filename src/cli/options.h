/* SPDX-License-Identifier: BSD-2-Clause */
/* Option tables: one row makes the parser, the help and the manual's test. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stddef.h>

#include "app/cli.h"

enum option_kind {
	OPTION_FLAG,  /* bool */
	OPTION_TEXT,  /* const char * */
	OPTION_SIZE,  /* uint64_t: "512M", "25%" of the memory */
	OPTION_COUNT, /* uint64_t within [min, max] */
	OPTION_UINT,  /* uint32_t within [min, max] */
	OPTION_MODE,  /* uint32_t, octal */
	OPTION_CALL   /* `set` does it */
};
struct option {
	const char *name; /* long name; NULL ends a table */
	char key;         /* short letter, or 0 */
	enum option_kind kind;
	const char *arg;      /* "SIZE"; NULL: none; "[MODULE]": optional */
	const char *fallback; /* default, as --help shows it, or NULL */
	const char *help;
	size_t offset; /* of the member of struct settings */
	uint64_t min, max;
	/* `value` is NULL when an optional argument was left out. */
	int (*set)(struct settings *s, const char *value, struct error *err);
};
/* A mount option that another program's users know, or that mount(8) passes. */
struct option_alias {
	const char *alias; /* a '*' at its end stands for anything */
	const char *name;  /* ours, or NULL: accepted and ignored */
	const char *value; /* what it means when it brings no value */
};
extern const struct option options_common[], options_mount[], options_views[],
	options_umount[], options_ls[], options_info[], options_verify[],
	options_stats[], options_archive[], options_archive_look[],
	options_progress[], options_place[], options_run[], options_first[];
/* stage, staged, unstage */
extern const struct option *const tables_stage[],
	*const tables_staged[], *const tables_unstage[];
/* pack, create, write, merge */
extern const struct option options_make[], options_effort[];
extern const struct option *const tables_pack[],
	*const tables_create[], *const tables_write[], *const tables_merge[];
extern const struct option_alias option_aliases[];

/*
 * Parse argv[0 .. argc): options are applied to `s`, operands moved to the
 * front; *operands says how many.  -EINVAL with a sentence.
 */
int options_parse(const struct command *c, struct settings *s, int argc,
		  char **argv, int *operands, struct error *err);
/* Usage, summary and options of one command. */
void options_help(const struct command *c, FILE *out);

#endif
