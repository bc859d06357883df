/* SPDX-License-Identifier: BSD-2-Clause */
/* Stages sources as plain files: for `stage`, and for commands with --stage. */
#ifndef APP_STAGE_H
#define APP_STAGE_H

#include "app/cli.h"
#include "staging/staging.h"

/* What becomes one directory.  Strings are borrowed. */
struct stage_request {
	char *const *sources; /* as in a mount: a single one is the root, */
	size_t n_sources;     /* several are a directory each, or one union */
	char *const *paths;   /* paths in the tree; none: the whole tree */
	size_t n_paths;
	const char *name; /* NULL: the source's base name without its suffix */
	/* removed when the last process that holds it releases it or dies */
	bool transient;
};
/*
 * Stage the request in the place s->stage.to, or find it there, and hold it.  On success
 * *place is open; the caller releases *out with staging_release, then closes *place.
 * The settings say how (s->stage, s->views, archives, cache_size, threads).  Starts and
 * ends processes and threads: call it before there are others.
 *
 * Return CLI_DONE, or another exit code with *err set, nothing left behind and nothing
 * held.  CLI_MEMORY: it does not fit.  err->code is -EINTR if a signal came;
 * stage_signal returns it, and the caller should die of it.
 */
int stage_request(const struct command *c, struct settings *s,
		  const struct stage_request *q, struct staging *place,
		  struct staged *out, struct error *err);
/* A signal handler: give up the stage in progress, or the next one.  While data is
 * written it is the handler of SIGINT, SIGTERM and SIGHUP, unless they are ignored. */
void stage_interrupt(int n);
/* Return the signal that ended a stage, 0 if there was none. */
int stage_signal(void);
/* Die of the signal that was caught; return if there was none. */
void stage_die_of_signal(void);
/* Set the defaults of `stage` for memory, threads and views that the user did not set. */
void stage_defaults(struct settings *s);
/* If there is no place: return true if nothing was staged yet, false if s->stage.to is
 * wrong. */
bool stage_may_be_empty(const struct settings *s);

/* ---- what is named on the command line (stage_list.c) -------------------- */

/* One directory to be made: its sources, and paths in their tree. */
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
/* Make groups of the operands "SOURCE[:PATH]" and of the list s->stage.files_from: one
 * for each source, or one for all.  Return CLI_DONE, or an exit code after a sentence on
 * stderr. */
int stage_groups_read(struct stage_groups *out, const struct command *c,
		      const struct settings *s, int argc, char **argv);
void stage_groups_free(struct stage_groups *g);

#endif
