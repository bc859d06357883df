/* SPDX-License-Identifier: BSD-2-Clause */
/* The option tables of create and write. */
#include <errno.h>

#include "base/parse.h"
#include "cli/option_rows.h"
#include "pack/comp.h"

static int create_set_comp(struct settings *s, const char *value,
			   struct error *err)
{
	s->pack.comp_given = true;
	return comp_parse(value, &s->pack.comp, err);
}

static int set_block(struct settings *s, const char *value, struct error *err)
{
	s->pack.block_given = true;
	return parse_count(value, 0, UINT64_MAX, &s->pack.block_number, err);
}

#define TEXT(name, arg, fallback, help, member)                              \
	{                                                                    \
		name, 0, OPTION_TEXT, arg, fallback, help, AT(member), 0, 0, \
			NULL                                                 \
	}

static const struct option options_create[] = {
	TEXT("shape", "N,...", NULL, "of the whole tensor", pack.shape),
	TEXT("block", "K", NULL, "rows (of the first axis) of a part",
	     pack.block),
	TEXT("dtype", "TYPE", NULL, "NumPy's: float32, <u2, complex64, ...",
	     pack.dtype),
	TEXT("chunk", "N,...", "a part", "shape of a chunk", pack.chunk),
	CALL("comp", 0, "CODEC[:LEVEL]", "lzf", "lzf, gzip, zstd, lz4, none",
	     create_set_comp),
	UINT("jobs", "N", "16", "threads that make files", pack.jobs, 1, 256),
	FLAG("force", 0, pack.force, "replace what is there"),
	FLAG("json", 0, json, "a summary as JSON"),
	FLAG("quiet", 'q', quiet, "nothing but what is wrong"),
	END};

static const struct option options_write[] = {
	TEXT("rows", "B:E", "all", "these rows, E exclusive", pack.rows),
	CALL("block", 0, "K", NULL, "the rows of part K, from 0 on", set_block),
	TEXT("flag", "WORD", "as it is",
	     "what the flags of these rows become, once they are safe",
	     pack.flag),
	FLAG("no-lock", 0, pack.no_lock,
	     "where files cannot be locked: you see to it that no two write a "
	     "part"),
	{"threads", 0, OPTION_UINT, "N", "cores", "threads that compress",
	 AT(threads), 1, 1024, NULL},
	{"memory", 0, OPTION_SIZE, "SIZE", "25%",
	 "memory for what is on its way", AT(pack.memory), 0, 0, NULL},
	FLAG("json", 0, json, "a summary as JSON"),
	END};

const struct option *const tables_create[] = {options_create, options_common,
					      NULL};
const struct option *const tables_write[] = {options_write, options_progress,
					     options_common, NULL};
