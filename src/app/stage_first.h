/* SPDX-License-Identifier: BSD-2-Clause */
/* --stage: copies the sources to plain files in shared memory before `run` and `mount`
 * begin. */
#ifndef APP_STAGE_FIRST_H
#define APP_STAGE_FIRST_H

#include "app/stage.h"

struct stage_first {
	bool active; /* `place` is open and `held` is held */
	struct staging place;
	struct staged held; /* .path replaces the sources */
};
/* Do what s->stage.first says: nothing, or stage the sources as one tree (each a
 * directory if there are several), until the last process that holds it lets go.  If it
 * does not fit and a mount would do, print that, and set the cache of the mount as large
 * as free memory allows.  Return an exit code, with *err set on failure; err->code is
 * -EINTR as in stage_request.  Call it before there are threads. */
int stage_first(struct stage_first *f, const struct command *c,
		struct settings *s, char *const *sources, size_t n,
		struct error *err);
/* Change the settings to mean the staged tree: options that choose from the sources and
 * name them were applied by staging. */
void stage_first_settings(struct settings *s);
/* Release what is held; does nothing if nothing is held. */
void stage_first_release(struct stage_first *f);
/* Remove what dead processes have left in the place that `s` names. */
void stage_first_sweep(const struct settings *s);

#endif
