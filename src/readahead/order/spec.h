/* SPDX-License-Identifier: BSD-2-Clause */
/* Option order=: in which order somebody is going to read samples. */
#ifndef READAHEAD_ORDER_SPEC_H
#define READAHEAD_ORDER_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/*
 *	torch[:KEY=VALUE...]    torch.utils.data.DistributedSampler
 *	FILE                    names, a line each
 *
 *	seed=S          0 to 2^64 - 1 (0); the generator's is S + epoch
 *	world=W         num_replicas (1)
 *	rank=R          who reads here; R-S: these; none: all of them
 *	batch=B         samples of a batch (ORDER_BATCH)
 *	workers=N       of the DataLoader (ORDER_WORKERS); 0: none
 *	drop_last       drop_last=True
 *	no-shuffle      shuffle=False
 *
 * Each at most once, ',' or ':' between them; '-' and '_' are the same.
 */
#define ORDER_BATCH 32
#define ORDER_WORKERS 4
#define ORDER_WORLD_MAX (UINT64_C(1) << 20)
#define ORDER_BATCH_MAX (UINT64_C(1) << 20)
#define ORDER_WORKERS_MAX 4096

struct order_spec {
	const char *file; /* borrowed from the text; NULL: torch */
	uint64_t seed;
	uint32_t world, rank, ranks; /* the first of them, and how many */
	uint32_t batch, workers;
	bool drop_last, no_shuffle;
};
/* -EINVAL with a sentence. */
int order_spec_parse(const char *text, struct order_spec *out,
		     struct error *err);
/* How far apart two samples may be in the order that are read at the same time: batches are
 * dealt out to workers, two each. */
uint64_t order_spec_slack(const struct order_spec *s);

#endif
