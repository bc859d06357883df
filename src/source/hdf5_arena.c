/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory for what the library takes from heaps. */
#include "source/hdf5_arena.h"

#include <stdlib.h>

#include "base/number.h"

#define ARENA_BLOCK ((size_t)256 << 10)

struct hdf5_arena_block {
	struct hdf5_arena_block *next;
	_Alignas(16) unsigned char bytes[];
};

static void *arena_alloc(size_t n, void *ctx)
{
	struct hdf5_arena *a = ctx;
	struct hdf5_arena_block *b;
	size_t room;
	void *p;

	if (n > a->limit || a->used > a->limit - n) {
		a->full = true;
		return NULL;
	}
	n = (max_u64(n, 1) + 15) & ~(size_t)15;
	if (n > a->left) {
		room = n > ARENA_BLOCK / 4 ? n : ARENA_BLOCK;
		b = malloc(sizeof *b + room);
		if (!b)
			return NULL;
		b->next = a->first;
		a->first = b;
		if (room == n) { /* of its own; go on in the last one */
			a->used += n;
			return b->bytes;
		}
		a->at = b->bytes;
		a->left = room;
	}
	p = a->at;
	a->at += n;
	a->left -= n;
	a->used += n;
	return p;
}

static void arena_forget(void *p, void *ctx)
{
	(void)p, (void)ctx;
}

herr_t hdf5_arena_use(struct hdf5_arena *a, uint64_t limit, hid_t dxpl)
{
	*a = (struct hdf5_arena){.limit = limit};
	return H5Pset_vlen_mem_manager(dxpl, arena_alloc, a, arena_forget, a);
}

void hdf5_arena_empty(struct hdf5_arena *a)
{
	while (a->first) {
		struct hdf5_arena_block *b = a->first;

		a->first = b->next;
		free(b);
	}
	*a = (struct hdf5_arena){.limit = a->limit};
}
