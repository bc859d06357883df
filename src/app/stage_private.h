/* SPDX-License-Identifier: BSD-2-Clause */
/* How a request becomes what the staging layer knows it by, and what it is made of. */
#ifndef APP_STAGE_PRIVATE_H
#define APP_STAGE_PRIVATE_H

#include "app/stage.h"
#include "extent/file.h"
#include "staging/copy.h"

/* What is decoded to learn what there is need not be decoded again to be written.  It makes
 * room as it is, so this is no memory that staging does not take anyhow.  Call it before
 * sources are opened. */
void stage_keep(const struct stage_request *q, const struct settings *s);

struct stage_texts {
	char *name, *source, *options;
};
/* *want points into *texts, which is to be freed also after a failure: -errno of
 * looking for a source, or -ENOMEM. */
int stage_want(const struct stage_request *q, const struct settings *s,
	       struct staging_want *want, struct stage_texts *texts,
	       struct error *err);
void stage_texts_free(struct stage_texts *t);

/* ---- what it is made of (stage_sources.c) -------------------------------- */

struct stage_origin {
	const struct stage_request *q; /* set by the caller, as are */
	const char *const *names;      /* of q->sources in the tree, or NULL */
	struct identity *ids; /* of q->sources, as they were at first */
	uint64_t begun;   /* ns since 1970: nothing had been opened before */
	uint64_t settled; /* ns: nothing should be opened before */
	struct staging_sources list;
};
/* What the sources are, before they are opened; waits, if they were written to a
 * moment ago.  -errno of looking at them. */
int stage_origin_look(struct stage_origin *o, struct error *err);
/* -ESTALE: they are not what they were. */
int stage_origin_look_again(const struct stage_origin *o, struct error *err);
/* Write down the directories that the plan has listed, and what in them will not be
 * opened.  *changed: one changed since the sources were looked at; what the plan says
 * of it may be wrong.  `all`: -EACCES for one that could not be listed. */
int stage_origin_directories(struct stage_origin *o, const struct copy_plan *p,
			     bool all, bool *changed, struct error *err);
/* Write down every file that was opened, or that is missing.  -ESTALE, -errno. */
int stage_origin_files(struct stage_origin *o, struct handles *h,
		       struct error *err);
/* q and names are left; look may follow. */
void stage_origin_free(struct stage_origin *o);

#endif
