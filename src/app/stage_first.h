/* SPDX-License-Identifier: BSD-2-Clause */
/* --stage: sources are plain files in shared memory before run and mount begin. */
#ifndef APP_STAGE_FIRST_H
#define APP_STAGE_FIRST_H

#include "app/stage.h"

struct stage_first {
	bool active; /* what follows is held */
	struct staging place;
	struct staged held; /* .path is the one source that is left */
};
/*
 * Do what s->stage.first says: nothing, or stage the sources as one tree (each a
 * directory where there are several), for as long as somebody holds it.  Where it
 * does not fit, and a mount is as good, says so, and gives the mount as large a
 * cache as there is memory for.  An exit code, with *err set; -EINTR as
 * stage_request.  Call it before there are threads.
 */
int stage_first(struct stage_first *f, const struct command *c,
		struct settings *s, char *const *sources, size_t n,
		struct error *err);
/* From now on settings mean the staged tree: what chose from the sources and
 * named them has been done. */
void stage_first_settings(struct settings *s);
/* Let go; nothing for one that holds nothing. */
void stage_first_release(struct stage_first *f);
/* Remove what processes that died have left in the place that `s` names. */
void stage_first_sweep(const struct settings *s);

#endif
