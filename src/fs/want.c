/* SPDX-License-Identifier: BSD-2-Clause */
/* Have other threads decode what the rest of a plan needs. */
#include "base/number.h"
#include "fs/gather.h"

/* Extents to look back at for one of the same chunk. */
#define WANT_LOOK 16
/* One read may pin this share of the cache, or PIN_BUDGET_MIN. */
#define PIN_SHARE 32
#define PIN_BUDGET_MIN (UINT64_C(4) << 20)

uint64_t gather_pin_budget(struct store *s)
{
	struct cache_usage usage;

	cache_usage(store_cache(s), &usage);
	return max_u64(usage.budget / PIN_SHARE, PIN_BUDGET_MIN);
}

/* Runs go to and fro between the chunks of a row: was this one just before? */
static bool seen_lately(const struct plan *p, unsigned k)
{
	const struct extent *x = &p->ext[k];
	unsigned first = k > WANT_LOOK ? k - WANT_LOOK : 0;

	while (k-- > first)
		if (extent_same_chunk(&p->ext[k], x))
			return true;
	return false;
}

void want_ahead(struct store *s, const struct plan *plan, unsigned i,
		struct ahead *a)
{
	uint64_t *of = a->of;

	/* The first chunk is decoded by this thread. */
	if (i == 0) {
		unsigned first = 0;

		while (first < plan->n && plan->ext[first].kind != EXTENT_CHUNK)
			of[first++] = 0;
		if (first < plan->n)
			of[first++] = 0;
		a->asked = first;
		a->bytes = 0;
	}
	if (i < a->asked) {
		a->bytes -= of[i];
	} else {
		a->asked = i + 1;
	}
	for (; a->asked < plan->n; a->asked++) {
		const struct extent *x = &plan->ext[a->asked];

		of[a->asked] = 0;
		if (x->kind != EXTENT_CHUNK || seen_lately(plan, a->asked))
			continue;
		if (!store_want(s, x, a->bytes, &of[a->asked]))
			return;
		a->bytes += of[a->asked];
	}
}
