/* SPDX-License-Identifier: BSD-2-Clause */
/* Macros for the rows of option tables, and the setters and rows that several tables
 * share. */
#ifndef CLI_OPTION_ROWS_H
#define CLI_OPTION_ROWS_H

#include "cli/options.h"

#define AT(member) offsetof(struct settings, member)
#define FLAG(name, key, member, help)                                       \
	{                                                                   \
		name, key, OPTION_FLAG, NULL, NULL, help, AT(member), 0, 0, \
			NULL                                                \
	}
#define CALL(name, key, arg, fallback, help, fn)                         \
	{                                                                \
		name, key, OPTION_CALL, arg, fallback, help, 0, 0, 0, fn \
	}
#define UINT(name, arg, fallback, help, member, min, max)                   \
	{                                                                   \
		name, 0, OPTION_UINT, arg, fallback, help, AT(member), min, \
			max, NULL                                           \
	}
#define END                                                           \
	{                                                             \
		NULL, 0, OPTION_FLAG, NULL, NULL, NULL, 0, 0, 0, NULL \
	}

int option_set_cache(struct settings *s, const char *value, struct error *err);
int option_set_reserve(struct settings *s, const char *value,
		       struct error *err);
int option_set_views(struct settings *s, const char *value, struct error *err);
int option_set_sample_axes(struct settings *s, const char *value,
			   struct error *err);
int option_set_shards(struct settings *s, const char *value, struct error *err);
int option_set_shard_size(struct settings *s, const char *value,
			  struct error *err);
int option_set_shard_count(struct settings *s, const char *value,
			   struct error *err);
int option_set_dtype_order(struct settings *s, const char *value,
			   struct error *err);
int option_set_concat(struct settings *s, const char *value, struct error *err);
int option_set_zarr_root(struct settings *s, const char *value,
			 struct error *err);
int option_set_raw(struct settings *s, const char *value, struct error *err);
#define OPTION_LABELS                                                     \
	{                                                                 \
		"labels", 0, OPTION_TEXT, "PATH",                         \
			"a dataset labels, targets or y next to it",      \
			"labels of the samples: a dataset, an attribute " \
			"(OBJECT@NAME), or a "                            \
			"CSV file (label, or row,label)",                 \
			AT(views.labels), 0, 0, NULL                      \
	}
#define OPTION_RAW                                                      \
	CALL("raw", 0, "DESCRIPTION", NULL,                             \
	     "files are raw records: dtype=u2,shape=256x256,header=64," \
	     "footer=0,offset=1024,order=C,count=N",                    \
	     option_set_raw)
int option_set_ext(struct settings *s, const char *value, struct error *err);
#define OPTION_EXT                                                          \
	CALL("ext", 0, "EXT", "by their first bytes",                       \
	     "suffix of the files of a binary column; COLUMN:EXT, several " \
	     "with +: of one column, which may be text",                    \
	     option_set_ext)
int option_set_prefetch(struct settings *s, const char *value,
			struct error *err);
int option_set_order(struct settings *s, const char *value, struct error *err);
int option_set_missing(struct settings *s, const char *value,
		       struct error *err);

#endif
