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
	TEXT("shape", "N,...", NULL, "shape of the whole tensor", pack.shape),
	TEXT("block", "K", NULL, "rows of a part, along the first axis",
	     pack.block),
	TEXT("dtype", "TYPE", NULL,
	     "NumPy data type: float32, <u2, complex64, ...", pack.dtype),
	TEXT("chunk", "N,...", "a part", "shape of a chunk", pack.chunk),
	CALL("comp", 0, "CODEC[:LEVEL]", "lzf",
	     "compression of chunks: lzf, gzip, zstd, lz4, none",
	     create_set_comp),
	UINT("jobs", "N", "16", "threads that make files", pack.jobs, 1, 256),
	FLAG("force", 0, pack.force, "replace existing files"),
	FLAG("json", 0, json, "print a summary as JSON"),
	FLAG("quiet", 'q', quiet, "print nothing but errors"),
	END};

static const struct option options_write[] = {
	TEXT("rows", "B:E", "all", "rows to write; E is not written",
	     pack.rows),
	CALL("block", 0, "K", NULL, "write the rows of part K, counted from 0",
	     set_block),
	TEXT("flag", "WORD", "as it is",
	     "flag to give these rows once they are safely stored", pack.flag),
	FLAG("no-lock", 0, pack.no_lock,
	     "for files that cannot be locked: you ensure that no two "
	     "processes write one part"),
	{"threads", 0, OPTION_UINT, "N", "cores", "threads that compress",
	 AT(threads), 1, 1024, NULL},
	{"memory", 0, OPTION_SIZE, "SIZE", "25%", "memory for data in transit",
	 AT(pack.memory), 0, 0, NULL},
	FLAG("json", 0, json, "print a summary as JSON"),
	END};

const struct option *const tables_create[] = {options_create, options_common,
					      NULL};
const struct option *const tables_write[] = {options_write, options_progress,
					     options_common, NULL};
