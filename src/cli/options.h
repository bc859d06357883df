/* SPDX-License-Identifier: BSD-2-Clause */
/* Option tables: parser and help are made from the same rows, and a test compares the
 * manual with them. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stddef.h>

#include "app/cli.h"

enum option_kind {
	OPTION_FLAG,  /* bool */
	OPTION_TEXT,  /* const char * */
	OPTION_SIZE,  /* uint64_t, in bytes: "512M", "25%" of the memory */
	OPTION_COUNT, /* uint64_t within [min, max] */
	OPTION_UINT,  /* uint32_t within [min, max] */
	OPTION_MODE,  /* uint32_t, octal */
	OPTION_CALL   /* `set` parses and stores the value */
};
struct option {
	const char *name; /* long name; NULL ends a table */
	char key;         /* short letter, or 0 */
	enum option_kind kind;
	/* Name of the value: "SIZE"; "[MODULE]" if it may be left out; NULL: no value. */
	const char *arg;
	const char *fallback; /* default, as --help shows it, or NULL */
	const char *help;
	size_t offset; /* of the member of struct settings, in bytes */
	uint64_t min, max;
	/* `value` is NULL when an optional argument was left out. */
	int (*set)(struct settings *s, const char *value, struct error *err);
};
/* A mount option under a name that users of another program know, or that mount(8) passes
 * on. */
struct option_alias {
	const char *alias; /* a '*' at its end stands for any text */
	const char *name;  /* name in the tables; NULL: accepted and ignored */
	const char *value; /* value to use when none is given; NULL: none */
};
extern const struct option options_common[], options_mount[], options_views[],
	options_umount[], options_ls[], options_info[], options_verify[],
	options_stats[], options_archive[], options_archive_look[],
	options_progress[], options_place[], options_run[], options_first[];
/* Tables of stage, staged and unstage. */
extern const struct option *const tables_stage[],
	*const tables_staged[], *const tables_unstage[];
/* Tables of pack, create, write and merge. */
extern const struct option options_make[], options_effort[];
extern const struct option *const tables_pack[],
	*const tables_create[], *const tables_write[], *const tables_merge[];
extern const struct option_alias option_aliases[];

/*
 * Parse argv[0 .. argc): apply options to `s`, move operands to the front of argv and set
 * *operands to their number.  Return 0, -EINVAL or -ENOMEM, with a sentence.  `s` borrows
 * from argv.
 */
int options_parse(const struct command *c, struct settings *s, int argc,
		  char **argv, int *operands, struct error *err);
/* Print usage, summary and options of one command. */
void options_help(const struct command *c, FILE *out);

#endif
