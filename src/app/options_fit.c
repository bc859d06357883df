/* SPDX-License-Identifier: BSD-2-Clause */
/* Refuses options that change nothing: without another option, or for these sources. */

/* An option that has no effect was given for a reason, so it is an error.  Options for
 * the display of tensors are not checked, because any archive may hold tensors. */
#include <stdlib.h>
#include <string.h>

#include "app/options_fit.h"

int options_check(const struct command *c, const struct settings *s)
{
	if (s->stage.first == STAGE_NOT && s->stage.reserve)
		return cli_usage(c, "--reserve needs --stage");
	if (s->stage.first == STAGE_NOT && s->stage.to)
		return cli_usage(c, "--to needs --stage");
	if (!s->shm_cache && s->shm_dir)
		return cli_usage(c, "--shm-dir needs --shm-cache");
	if (s->order && s->stage.first == STAGE_ALL)
		return cli_usage(
			c, "order= has no use with --stage, which has "
			   "everything in memory; --stage=fit accepts both");
	if (s->order && s->no_prefetch)
		return cli_usage(c, "order= reads ahead, and prefetch=off "
				    "forbids it");
	if (s->order && (s->single || s->threads == 1))
		return cli_usage(c, "order= needs more than one thread");
	return 0;
}

/* The kinds of sources that an option may apply to. */
enum { OF_ARCHIVES = 1, OF_DIRECTORIES = 2, OF_FILES = 4, OF_OTHERS = 8 };

static unsigned kind_of_source(const struct source_ops *ops)
{
	return ops->archive || ops->flags & SOURCE_IN_ARCHIVE ? OF_ARCHIVES
	       : ops->flags & SOURCE_DIRECTORY                ? OF_DIRECTORIES
	       : ops->flags & SOURCE_NAMES_FILES              ? OF_FILES
							      : OF_OTHERS;
}

int options_fit(const struct settings *s, struct source *const *sources,
		size_t n, struct error *err)
{
	const struct {
		bool given;
		const char *name, *is_for;
		unsigned kinds;
	} rows[] = {
		{s->joined, "union", "archives", OF_ARCHIVES},
		{s->versions, "versions", "archives",
		 OF_ARCHIVES | OF_DIRECTORIES},
		{s->nested, "recursive (nested)", "archives",
		 OF_ARCHIVES | OF_DIRECTORIES},
		{s->index && strcmp(s->index, "none"), "index=", "archives",
		 OF_ARCHIVES | OF_DIRECTORIES},
		{s->prefix, "prefix=", "HDF5 files",
		 OF_ARCHIVES | OF_DIRECTORIES | OF_FILES},
	};
	unsigned kinds = 0;

	if (s->shared) /* another source may use the option */
		return 0;
	for (size_t i = 0; i < n; i++)
		kinds |= kind_of_source(sources[i]->ops);
	for (size_t i = 0; i < sizeof rows / sizeof *rows && !s->as_is; i++)
		if (rows[i].given && !(kinds & rows[i].kinds))
			return error_set(
				err, SOURCE_USAGE,
				"%s is for %s, and the sources have none",
				rows[i].name, rows[i].is_for);
	return 0;
}
