/* SPDX-License-Identifier: BSD-2-Clause */
/* Sources staged as plain files: for `stage`, and for commands that use them so. */
#ifndef APP_STAGE_H
#define APP_STAGE_H

#include "app/cli.h"
#include "staging/staging.h"

/* What is to be one directory.  Strings are borrowed. */
struct stage_request {
	char *const
		*sources; /* as a mount of them would show: one is the root, */
	size_t n_sources; /* several are a directory each, or joined */
	char *const *paths; /* of the tree; none: all of it */
	size_t n_paths;
	const char *name; /* NULL: the source's base name without its suffix */
	bool transient; /* gone when the last who holds it lets go, or is dead */
};
/*
 * Have it staged in the place s->stage.to, or find it there, and hold it: *place is
 * open then, *out to be let go with staging_release, *place to be closed after that.
 * Settings say how (s->stage, s->views, archives, cache_size, threads).  Makes
 * processes and threads and ends them: call it before there are others.
 * CLI_DONE, or another exit code with *err set (and nothing left, nothing held).
 * CLI_MEMORY: it does not fit.  err->code -EINTR: a signal came, stage_signal says
 * which; whoever calls should die of it.
 */
int stage_request(const struct command *c, struct settings *s,
		  const struct stage_request *q, struct staging *place,
		  struct staged *out, struct error *err);
/* A handler of signals: give up what is being staged, or the next one.  While the
 * data is written SIGINT, SIGTERM and SIGHUP have it, unless they are ignored. */
void stage_interrupt(int n);
/* The signal that ended a stage; 0: none. */
int stage_signal(void);
/* As if it had not been caught; returns when there was none. */
void stage_die_of_signal(void);
/* Defaults of `stage` where the user has not said otherwise: memory, threads,
 * views. */
void stage_defaults(struct settings *s);
/* When there is no place: because nothing was staged, not because s->stage.to is
 * wrong? */
bool stage_may_be_empty(const struct settings *s);

/* ---- what is named on the command line (stage_list.c) -------------------- */

/* One directory to be made: sources, and paths in their tree. */
struct strings { /* as vec(char *) */
	char **at;
	size_t n, room;
};
struct stage_group {
	struct strings sources, paths; /* owned */
};
struct stage_groups {
	vec(struct stage_group) list;
};
/* Operands "SOURCE[:PATH]", and what s->stage.files_from lists: a group for each
 * source, or one for all.  An exit code, with a sentence on stderr. */
int stage_groups_read(struct stage_groups *out, const struct command *c,
		      const struct settings *s, int argc, char **argv);
void stage_groups_free(struct stage_groups *g);

#endif
