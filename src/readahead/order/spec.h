/* SPDX-License-Identifier: BSD-2-Clause */
/* The option order=: in which order samples are going to be read. */
#ifndef READAHEAD_ORDER_SPEC_H
#define READAHEAD_ORDER_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/*
 *	torch[:KEY=VALUE...]    torch.utils.data.DistributedSampler
 *	FILE                    names, a line each
 *
 *	seed=S          0 to 2^64 - 1 (0); the generator gets S + epoch
 *	world=W         num_replicas (1)
 *	rank=R          the rank that reads here; R-S: these ranks; absent: all
 *	batch=B         samples of a batch (ORDER_BATCH)
 *	workers=N       of the DataLoader (ORDER_WORKERS); 0: none
 *	drop_last       drop_last=True
 *	no-shuffle      shuffle=False
 *
 * Each key at most once, with ',' or ':' between them; '-' and '_' are the same.
 * Defaults are in parentheses.
 */
#define ORDER_BATCH 32
#define ORDER_WORKERS 4
#define ORDER_WORLD_MAX (UINT64_C(1) << 20)
#define ORDER_BATCH_MAX (UINT64_C(1) << 20)
#define ORDER_WORKERS_MAX 4096

struct order_spec {
	/* Part of the parsed text, borrowed; NULL: torch. */
	const char *file;
	uint64_t seed;
	/* rank: the first rank that reads here; ranks: how many do. */
	uint32_t world, rank, ranks;
	uint32_t batch, workers;
	bool drop_last, no_shuffle;
};
/* Parse the value of order=.  Returns 0, or -EINVAL with a sentence. */
int order_spec_parse(const char *text, struct order_spec *out,
		     struct error *err);
/* Return how many positions of the order samples may be apart that are read at the same
 * time: batches are dealt out to workers, two each. */
uint64_t order_spec_slack(const struct order_spec *s);

#endif
