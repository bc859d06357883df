/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the order in which the samples of an epoch are read. */
/*
 * If several ranks read here, they are assumed to be equally far: the first sample of
 * each comes first, then the second of each.
 */
#include "readahead/order/order.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "base/sampler.h"
#include "base/shuffle.h"

/* For a head that needs more than one place in this many, the whole permutation is
 * made. */
#define HEAD_SHARE 4
/* About how many steps a generator takes before its first number. */
#define SEEDING 1300

static struct sampler order_sampler(const struct order *o)
{
	return (struct sampler){.n = o->n,
				.world = o->spec.world,
				.rank = o->spec.rank,
				.drop_last = o->spec.drop_last};
}

int order_of_samples(struct order *out, const struct order_spec *s, uint64_t n,
		     struct error *err)
{
	struct order o = {.spec = *s, .n = (uint32_t)n};
	struct sampler all;
	uint64_t length = 0;

	if (n <= ORDER_SAMPLES_MAX && n) {
		all = order_sampler(&o);
		length = sampler_count(&all) * s->ranks;
	}
	if (n > ORDER_SAMPLES_MAX || length > ORDER_KEPT_MAX)
		return error_set(err, -E2BIG,
				 "an order of %" PRIu64
				 " samples takes too much memory (at most "
				 "%" PRIu64 ", and %" PRIu64 " of the ranks)",
				 n, ORDER_SAMPLES_MAX, ORDER_KEPT_MAX);
	o.length = (uint32_t)length;
	*out = o;
	return 0;
}

int order_of_list(struct order *out, const uint32_t *list, uint64_t n,
		  struct error *err)
{
	if (n > ORDER_KEPT_MAX)
		return error_set(err, -E2BIG,
				 "a list of %" PRIu64
				 " names takes too much memory (at most "
				 "%" PRIu64 ")",
				 n, ORDER_KEPT_MAX);
	*out = (struct order){
		.spec = {.file = "",
			 .world = 1,
			 .ranks = 1,
			 .batch = ORDER_BATCH,
			 .workers = ORDER_WORKERS},
		.n = (uint32_t)n,
		.list = list,
		.length = (uint32_t)n,
	};
	return 0;
}

bool order_is_fixed(const struct order *o)
{
	return o->list || o->spec.no_shuffle;
}

/* Return how many places of the permutation are needed for the first `k` samples. */
static uint64_t order_head_places(const struct order *o, uint32_t k)
{
	return min_u64(div_up(k, max_u64(o->spec.ranks, 1)) * o->spec.world,
		       o->n);
}

static bool head_is_short(const struct order *o, uint32_t k)
{
	return order_head_places(o, k) <= o->n / HEAD_SHARE;
}

uint64_t order_cost(const struct order *o, uint32_t k)
{
	if (order_is_fixed(o))
		return k;
	/* The head of a permutation is made with a table, which takes longer for each
	 * place. */
	return SEEDING + (head_is_short(o, k) ? 4 * order_head_places(o, k)
					      : o->n + (uint64_t)k);
}

bool order_epoch(const struct order *o, uint32_t epoch, uint32_t k,
		 uint32_t *out)
{
	bool head = head_is_short(o, k);
	uint32_t most = (uint32_t)(head ? order_head_places(o, k) : o->n);
	cleanup_free uint32_t *all = NULL;
	struct sampler s = order_sampler(o);

	if (o->list) {
		memcpy(out, o->list, k * sizeof *out);
		return true;
	}
	if (!o->spec.no_shuffle && k) {
		all = malloc(most * sizeof *all);
		if (!all || (head && !shuffle_head(all, most, o->n,
						   o->spec.seed + epoch)))
			return false;
		if (!head)
			shuffle_order_32(all, o->n, o->spec.seed + epoch);
	}
	for (uint32_t i = 0; i < k; i++) {
		uint64_t place;

		s.rank = o->spec.rank + i % o->spec.ranks;
		place = sampler_place(&s, i / o->spec.ranks);
		out[i] = all ? all[place] : (uint32_t)place;
	}
	return true;
}
