/* SPDX-License-Identifier: BSD-2-Clause */
/* Check tensors with all cores: the state that the jobs share. */
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
	/* first member: the functions that sources call */
	struct source_check check;
	const struct settings *settings;
	/* path of the source that is being checked; stands in front of names */
	const char *prefix;
	struct store *store;
	struct pool *pool;
	/* bounds the memory of the chunks that are being decoded */
	struct gate gate;
	_Atomic uint64_t done, members, chunks, unwritten, stored, decoded;
	/* Some data that was read of the present source has no checksum of its own. */
	_Atomic bool unsummed;
	pthread_mutex_t lock; /* protects the fields that follow, and stdout */
	struct progress progress;
	uint64_t bad;
	bool out_of_memory;
	/* used by the main thread only */
	uint64_t tensors, skipped;
	/* Some data that was read has no checksum at all: only that it can be read is
	 * known. */
	bool no_checksums;
	bool within;     /* checksums of an archive cover the present source */
	uint32_t nested; /* number of parts of parts of this tensor */
};
int verify_init(struct verify *v, const struct settings *s, struct store *store,
		uint64_t total, struct error *err);
/* Wait for the jobs and stop the threads; the results in `v` stay readable. */
void verify_finish(struct verify *v);
/* Queue everything of a tensor; has the type report_each.  Returns 0 or -ENOMEM. */
int verify_tensor(void *v, struct tensor *t);
/* Check everything below a node of a source, and the sources inside.  `prefix` stands in
 * front of names of members.  Blocks until all is checked; returns 0 or -errno. */
int verify_tree(struct verify *v, struct tree *tree, struct source *source,
		const struct node *top, const char *prefix, unsigned depth);
/* Check what else is in and below directory `dir`: links that lead nowhere, attributes
 * that cannot be read. */
void verify_directory(struct verify *v, const struct tree *t,
		      const struct node *dir, unsigned depth);
/* Fill in v->check. */
void verify_source_init(struct verify *v);
/* Count `bytes` as done, and show progress unless another thread has the lock. */
void verify_advance(struct verify *v, uint64_t bytes);
/* Report something that was not checked, though nothing is wrong with it. */
void verify_skipped(struct verify *v, const char *name, const char *why);
/* Report n members of an archive that were not checked. */
void verify_left_out(struct verify *v, const char *name, uint64_t n);
/* Report something bad.  verify_bad puts v->prefix in front of the name; verify_list does
 * not. */
void verify_bad(struct verify *v, const char *name, int code, const char *why);
void verify_list(struct verify *v, const struct source_bad *bad);

#endif
