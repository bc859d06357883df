/* SPDX-License-Identifier: BSD-2-Clause */
/* Checking tensors with all cores: what the jobs share. */
#ifndef VERIFY_VERIFY_H
#define VERIFY_VERIFY_H

#include <pthread.h>
#include <stdatomic.h>

#include "app/cli.h"
#include "app/progress.h"
#include "base/pool.h"
#include "formats/check.h"
#include "store/gate.h"

struct verify {
	struct source_check check; /* first member: what sources call */
	const struct settings *settings;
	const char *prefix; /* of what is being checked, in front of names */
	struct store *store;
	struct pool *pool;
	struct gate gate; /* memory of the chunks being decoded */
	_Atomic uint64_t done, members, chunks, unwritten, stored, decoded;
	/* Some of what was read of the present source has no checksum of its own. */
	_Atomic bool unsummed;
	pthread_mutex_t lock; /* protects what follows, and stdout */
	struct progress progress;
	uint64_t bad;
	bool out_of_memory;
	/* used by the main thread only */
	uint64_t tensors, skipped;
	/* Some of what was read has no checksum at all: that it reads is all that is
	 * known. */
	bool no_checksums;
	bool within;     /* checksums of an archive cover the present source */
	uint32_t nested; /* parts of parts of this tensor */
};
int verify_init(struct verify *v, const struct settings *s, struct store *store,
		uint64_t total, struct error *err);
/* Wait for the jobs and stop the threads; stays readable. */
void verify_finish(struct verify *v);
/* Queue everything of a tensor; a report_each. */
int verify_tensor(void *v, struct tensor *t);
/* Everything below a node of a source, and the sources inside.  `prefix` is put in
 * front of names of members. */
int verify_tree(struct verify *v, struct tree *tree, struct source *source,
		const struct node *top, const char *prefix, unsigned depth);
/* What else there is in and below directory `dir`: links that lead nowhere,
 * attributes that cannot be read. */
void verify_beside(struct verify *v, const struct tree *t,
		   const struct node *dir, unsigned depth);
/* Fill in v->check. */
void verify_source_init(struct verify *v);
/* So many bytes are done. */
void verify_advance(struct verify *v, uint64_t bytes);
/* Mention something that is left alone; nothing is wrong with it. */
void verify_skipped(struct verify *v, const char *name, const char *why);
/* Mention n members of an archive that were not checked. */
void verify_left_out(struct verify *v, const char *name, uint64_t n);
/* List something bad, once. */
void verify_bad(struct verify *v, const char *name, int code, const char *why);
void verify_list(struct verify *v, const struct source_bad *bad);

#endif
