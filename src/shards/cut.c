/* SPDX-License-Identifier: BSD-2-Clause */
/* The rule that says where one shard ends and the next one begins. */
#include "shards/cut.h"

#include <errno.h>

#include "base/number.h"
#include "shards/ustar.h"

struct shards_cut shards_cut_default(const struct shards_cut *c)
{
	struct shards_cut out = *c;

	if (!c->shards && !c->count && !c->size)
		out.size = SHARDS_SIZE_USUAL;
	return out;
}

int shards_cut_check(const struct shards_cut *c, struct error *err)
{
	if (!c->shards || (!c->count && !c->size))
		return 0;
	return error_set(err, -EINVAL,
			 "shards= sets the number of shards and does not go "
			 "with shard-size= or shard-count=");
}

bool shards_cut_here(const struct shards_cut *c, uint64_t n, uint64_t last,
		     uint64_t samples, uint64_t taken, uint64_t bytes)
{
	if (c->shards) /* the first shards have one sample more */
		return samples == n / c->shards + (last < n % c->shards);
	return (c->count && samples >= c->count) ||
	       (c->size && ustar_archive_size(taken + bytes) > c->size);
}

/* Return the number of samples in every shard but the last, if c->shards is 0. */
static uint64_t cut_samples_per_shard(const struct shards_cut *c, uint64_t n,
				      uint64_t bytes)
{
	uint64_t most = c->count ? min_u64(c->count, n) : n;
	/* The bytes that a tar may take without its end. */
	uint64_t room = c->size / USTAR_RECORD * USTAR_RECORD;

	if (!c->size)
		return most;
	room = room > 2 * USTAR_BLOCK ? room - 2 * USTAR_BLOCK : 0;
	return max_u64(min_u64(most, room / bytes), 1);
}

uint64_t shards_even(const struct shards_cut *c, uint64_t n, uint64_t bytes)
{
	if (c->shards)
		return c->shards <= n ? c->shards : 0;
	return (n - 1) / cut_samples_per_shard(c, n, bytes) + 1;
}

void shards_even_at(const struct shards_cut *c, uint64_t n, uint64_t bytes,
		    uint64_t k, uint64_t *first, uint64_t *samples)
{
	uint64_t m;

	if (c->shards) {
		m = n / c->shards;
		*first = k * m + min_u64(k, n % c->shards);
		*samples = m + (k < n % c->shards);
		return;
	}
	m = cut_samples_per_shard(c, n, bytes);
	*first = k * m;
	*samples = min_u64(m, n - *first);
}
