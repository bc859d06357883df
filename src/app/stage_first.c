/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements --stage of `run` and `mount`. */

/* The caller holds the staged tree with a lock that ends with its process.  The tree is
 * transient unless `tensorfs stage` made it before: it is removed when no process holds
 * it.  If several ranks of a job stage the same thing, the first makes it, the others
 * wait, and the last removes it. */
#include "app/stage_first.h"

#include <inttypes.h>

#include "base/number.h"
#include "base/parse.h"
#include "base/system.h"

/* The share of free memory for the cache; the page cache and the command need memory,
 * too. */
#define CACHE_SHARE 2

static void mount_instead(const struct command *c, struct settings *s,
			  const struct error *why)
{
	struct system_headroom room;
	uint64_t most;
	char text[32];

	system_headroom(&room);
	most = min_u64(room.left, system_memory()) / CACHE_SHARE;
	if (!s->stage.cache_given && most > 0)
		s->cache_size = most;
	format_size(s->cache_size, text, sizeof text);
	if (!s->quiet)
		cli_say(c, "%s; mounting instead, with a cache of %s",
			why->text, text);
}

int stage_first(struct stage_first *f, const struct command *c,
		struct settings *s, char *const *sources, size_t n,
		struct error *err)
{
	const struct stage_request q = {
		.sources = sources, .n_sources = n, .transient = true};
	struct settings how = *s;
	int r;

	f->active = false;
	if (s->stage.first == STAGE_NOT)
		return CLI_DONE;
	stage_defaults(&how);
	r = stage_request(c, &how, &q, &f->place, &f->held, err);
	f->active = r == CLI_DONE;
	if (f->active && s->order) {
		if (!s->quiet)
			cli_say(c, "note: order= has no effect: everything is "
				   "in memory");
		s->order = NULL;
	}
	if (f->active || s->stage.first != STAGE_IF_IT_FITS ||
	    (r != CLI_MEMORY && !f->held.no_place))
		return r;
	mount_instead(c, s, err);
	return CLI_DONE;
}

void stage_first_settings(struct settings *s)
{
	s->zarr_root = s->dataset = s->prefix = s->index = s->subdir = NULL;
	s->offset = 0;
	s->concat_given = false;
	s->raw = NULL;
	s->joined = s->versions = s->nested = false;
	s->as_is = true;
	if (s->names)
		s->names[0] = NULL;
}

void stage_first_release(struct stage_first *f)
{
	if (!f->active)
		return;
	staging_release(&f->place, &f->held);
	staging_tidy(&f->place);
	staging_close(&f->place);
	f->active = false;
}

void stage_first_sweep(const struct settings *s)
{
	if (s->stage.first != STAGE_NOT)
		staging_sweep_place(s->stage.to);
}
