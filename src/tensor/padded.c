/* SPDX-License-Identifier: BSD-2-Clause */
/* An array that is longer than what is stored of it: which bytes there are. */
#include "tensor/padded.h"

/* Elements from `e` on that exist, where element `e`, at `at`, does: the rest of its
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

/* Elements from `e` on that are fill, where `axis` is the first along which `e`, at
 * `at`, is beyond what exists: up to the end of that axis. */
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
