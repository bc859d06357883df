/* SPDX-License-Identifier: BSD-2-Clause */
/* Has other threads decode the chunks that the rest of a plan needs. */
#include "base/number.h"
#include "fs/gather.h"

/* How many extents back an extent of the same chunk is looked for. */
#define WANT_LOOK 16
/* One read may pin this fraction of the cache, or PIN_BUDGET_MIN bytes. */
#define PIN_SHARE 32
#define PIN_BUDGET_MIN (UINT64_C(4) << 20)

uint64_t gather_pin_budget(struct store *s)
{
	struct cache_usage usage;

	cache_usage(store_cache(s), &usage);
	return max_u64(usage.budget / PIN_SHARE, PIN_BUDGET_MIN);
}

/* Return true if one of the extents just before has the same chunk: runs alternate
 * between the chunks of a row. */
static bool want_seen_lately(const struct plan *p, unsigned k)
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
		if (x->kind != EXTENT_CHUNK || want_seen_lately(plan, a->asked))
			continue;
		if (!store_want(s, x, a->bytes, &of[a->asked]))
			return;
		a->bytes += of[a->asked];
	}
}
