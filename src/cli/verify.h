/* SPDX-License-Identifier: BSD-2-Clause */
/* Checking tensors with all cores: what the jobs share. */
#ifndef CLI_VERIFY_H
#define CLI_VERIFY_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/pool.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "store/gate.h"

struct verify {
	const struct settings *settings;
	struct store *store;
	struct pool *pool;
	struct gate gate; /* memory of the chunks being decoded */
	_Atomic uint64_t done, chunks, unwritten, stored, decoded;
	pthread_mutex_t lock; /* protects what follows, and stdout */
	struct progress progress;
	uint64_t bad;
	bool out_of_memory;
	/* used by the main thread only */
	uint64_t tensors, skipped;
	uint32_t nested; /* parts of parts of this tensor */
};
int verify_init(struct verify *v, const struct settings *s, struct store *store,
		uint64_t total, struct error *err);
/* Wait for the jobs and stop the threads; stays readable. */
void verify_finish(struct verify *v);
/* Queue everything of a tensor; a report_each. */
int verify_tensor(void *v, struct tensor *t);
/* Mention something that is left alone; nothing is wrong with it. */
void verify_skipped(struct verify *v, const char *name, const char *why);
/* List something bad, once. */
void verify_bad(struct verify *v, const char *name, int code, const char *why);

#endif
