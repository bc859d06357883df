/* SPDX-License-Identifier: BSD-2-Clause */
/* An array that is longer than its stored data: which of its bytes exist. */
#include "tensor/padded.h"

/* Return how many elements exist from the one at `at` on, which does: the rest of its
 * row, and as many whole rows as follow one another without fill between them. */
static uint64_t run_there(const struct padded *p, const uint64_t *at)
{
	uint64_t n = 1, inner = 1;

	for (unsigned i = p->rank; i-- > 0;) {
		n += (p->there[i] - at[i] - 1) * inner;
		inner *= p->full[i];
		if (p->there[i] != p->full[i])
			break;
	}
	return n;
}

/* Return how many elements from element `e`, at `at`, on are fill.  `axis` is the first
 * axis along which `e` is beyond the stored data; the fill goes on to the end of that
 * axis. */
static uint64_t run_fill(const struct padded *p, uint64_t e, const uint64_t *at,
			 unsigned axis)
{
	uint64_t inner = 1;

	for (unsigned i = axis + 1; i < p->rank; i++)
		inner *= p->full[i];
	return (p->full[axis] - at[axis]) * inner - e % inner;
}

bool padded_run(const struct padded *p, uint64_t off, uint64_t *inside,
		uint64_t *run)
{
	uint64_t e = off / p->elem, sub = off % p->elem, rest = e, stride = 1;
	uint64_t at[RANK_MAX], place = 0;
	unsigned beyond = p->rank;

	for (unsigned i = p->rank; i-- > 0;) {
		at[i] = rest % p->full[i];
		rest /= p->full[i];
		place += at[i] * stride;
		stride *= p->there[i];
		if (at[i] >= p->there[i])
			beyond = i;
	}
	if (beyond < p->rank) {
		*run = run_fill(p, e, at, beyond) * p->elem - sub;
		return false;
	}
	*run = run_there(p, at) * p->elem - sub;
	*inside = place * p->elem + sub;
	return true;
}
