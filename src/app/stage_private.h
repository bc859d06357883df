/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns a request into a key and texts for the staging layer, and records its sources. */
#ifndef APP_STAGE_PRIVATE_H
#define APP_STAGE_PRIVATE_H

#include "app/stage.h"
#include "extent/file.h"
#include "staging/copy.h"

/* Keep what is decoded while sources are opened, so that it is not decoded again when it
 * is written.  This memory is released as the files are written, so staging needs no
 * more of it in all.  Call it before sources are opened. */
void stage_keep(const struct stage_request *q, const struct settings *s);

struct stage_texts {
	char *name, *source, *options;
};
/* Describe the request in *want, which points into *texts.  The caller frees *texts,
 * also after a failure.  Return 0, -ENOMEM, or -errno if a source cannot be found. */
int stage_want(const struct stage_request *q, const struct settings *s,
	       struct staging_want *want, struct stage_texts *texts,
	       struct error *err);
void stage_texts_free(struct stage_texts *t);

/* ---- what a stage is made of (stage_sources.c) -------------------------------- */

struct stage_origin {
	const struct stage_request *q; /* set by the caller, as is `names` */
	const char *const *names; /* names of q->sources in the tree, or NULL */
	struct identity
		*ids; /* identities of q->sources before they were opened */
	uint64_t
		begun; /* in ns since 1970: no source was opened before this time */
	/* in ns since 1970: no source should be opened before this time */
	uint64_t settled;
	struct staging_sources list;
};
/* Record the identities of the sources before they are opened.  Waits if one was written
 * to a moment ago.  Return 0, -ENOMEM, or -errno of stat(2). */
int stage_origin_look(struct stage_origin *o, struct error *err);
/* Return 0 if the sources are unchanged, -ESTALE if not, or another -errno. */
int stage_origin_look_again(const struct stage_origin *o, struct error *err);
/* Record the directories that the plan has listed, and those entries that are never
 * opened.  *changed is set if one changed since stage_origin_look, so that the plan may
 * be wrong.  With `all`, return -EACCES for a directory that cannot be listed. */
int stage_origin_directories(struct stage_origin *o, const struct copy_plan *p,
			     bool all, bool *changed, struct error *err);
/* Record every file that was opened or is missing.  Return 0, -ESTALE, or another
 * -errno. */
int stage_origin_files(struct stage_origin *o, struct handles *h,
		       struct error *err);
/* Free the records.  `q` and `names` stay, and stage_origin_look may be called again. */
void stage_origin_free(struct stage_origin *o);

#endif
