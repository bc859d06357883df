/* SPDX-License-Identifier: BSD-2-Clause */
/* Which chunks of a sparse source exist, and which boxes of the array they touch. */
#include "tensors/rechunk/written.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"

/* Chunks that are looked up at a time; each look-up reads the whole index. */
#define ROOM_LEAST 4096
#define ROOM_MOST (UINT32_C(1) << 20)
/* Numbers that are collected before they are sorted and duplicates are dropped. */
#define SORT_LEAST 4096
/* A virtual dataset is sparse if at most one in this many elements is in its parts. */
#define SPARSE 16
/* Least number of chunks for which looking pays. */
#define CHUNKS_LEAST 32

/* ---- existing chunks ----------------------------------------------------------- */

/* List existing chunks.  Return 1 if all are listed, 0 if there are more than `most`,
 * -errno. */
static int written_list(struct tensor *t, const struct layout *l, uint64_t most,
			struct rechunk_written *out, struct error *err)
{
	uint64_t room = min_u64(max_u64(most / 8, ROOM_LEAST), ROOM_MOST);
	cleanup_free struct written *at = malloc(room * sizeof *at);
	uint64_t from = 0;

	if (!at)
		return error_no_memory(err, "the list of chunks");
	while (from < l->grid->count) {
		uint32_t n = 0;
		int r = t->ops->list(t, 0, l, &from, at, (uint32_t)room, &n,
				     err);

		if (r)
			return r == 1 || r == -ENOTSUP ? 0 : r;
		if (out->chunks.n + n > most)
			return 0;
		for (uint32_t i = 0; i < n; i++)
			if (!vec_push(&out->chunks, at[i].chunk))
				return error_no_memory(err,
						       "the list of chunks");
	}
	return 1;
}

/* List the blocks of a virtual dataset that are in parts.  Return as written_list. */
static int list_blocks(const struct tensor *t, uint64_t most,
		       struct rechunk_written *out, struct error *err)
{
	uint64_t n = tensor_blocks(t), sum = 0;
	struct box b;

	if (!n || n > most)
		return 0;
	for (uint64_t i = 0; i < n; i++) {
		tensor_block_box(t, i, &b);
		if (add_overflows(sum, box_elements(&b, t->rank), &sum) ||
		    sum > t->elements / SPARSE)
			return 0;
	}
	for (uint64_t i = 0; i < n; i++)
		if (!vec_push(&out->chunks, i))
			return error_no_memory(err, "the list of parts");
	out->blocks_of = t;
	return 1;
}

static int written_list_chunks(struct tensor *t, uint64_t most,
			       struct rechunk_written *out, struct error *err)
{
	const struct layout *l;
	int r = tensor_learn(t, 0, &l, err);

	if (r < 0)
		return r;
	if (l->kind == LAYOUT_ABSENT)
		return 1;
	if (l->kind != LAYOUT_CHUNKED || l->grid->rank != t->rank ||
	    l->grid->count < CHUNKS_LEAST || !t->ops->list ||
	    (l->by_library && !l->indexed))
		return 0;
	out->grid = *l->grid;
	return written_list(t, l, most, out, err);
}

int rechunk_written_find(struct tensor *t, uint64_t most,
			 struct rechunk_written *out, struct error *err)
{
	int r = 0;

	memset(out, 0, sizeof *out);
	if (t->mosaic)
		r = list_blocks(t, most, out, err);
	else if (t->nparts == 1)
		r = written_list_chunks(t, most, out, err);
	out->known = r == 1;
	if (r != 1)
		vec_free(&out->chunks);
	return r < 0 ? r : 0;
}

void rechunk_written_free(struct rechunk_written *w)
{
	vec_free(&w->chunks);
}

/* ---- boxes that they touch ----------------------------------------------------- */

static void box_of(const struct rechunk_written *w, uint64_t chunk,
		   struct box *out)
{
	if (w->blocks_of) {
		tensor_block_box(w->blocks_of, chunk, out);
		return;
	}
	grid_origin(&w->grid, chunk, out->start);
	for (unsigned i = 0; i < w->grid.rank; i++)
		out->count[i] = min_u64(w->grid.chunk[i],
					w->grid.shape[i] - out->start[i]);
}

/* Set, along each axis, the first box of `g` that a chunk touches, and their number.
 * Return the number of boxes in total. */
static uint64_t touched(const struct rechunk_written *w, uint64_t chunk,
			const struct grid *g, uint64_t *first, uint64_t *n)
{
	uint64_t all = 1;
	struct box b;

	box_of(w, chunk, &b);
	for (unsigned i = 0; i < g->rank; i++) {
		uint64_t last = b.start[i] + b.count[i] - 1;

		first[i] = b.start[i] / g->chunk[i];
		n[i] = last / g->chunk[i] - first[i] + 1;
		if (mul_overflows(all, n[i], &all))
			all = UINT64_MAX;
	}
	return all;
}

uint64_t rechunk_written_touch(const struct rechunk_written *w,
			       const struct grid *g)
{
	uint64_t first[RANK_MAX], n[RANK_MAX], sum = 0;

	for (size_t i = 0; i < w->chunks.n; i++)
		if (add_overflows(sum, touched(w, w->chunks.at[i], g, first, n),
				  &sum))
			return g->count;
	return min_u64(sum, g->count);
}

static int written_compare(const void *one, const void *two)
{
	const uint64_t *a = one, *b = two;

	return *a < *b ? -1 : *a > *b;
}

/* Sort and drop duplicates.  Return how many are left. */
static size_t written_sort(uint64_t *at, size_t n)
{
	size_t kept = 0;

	if (n)
		qsort(at, n, sizeof *at, written_compare);
	for (size_t i = 0; i < n; i++)
		if (!kept || at[kept - 1] != at[i])
			at[kept++] = at[i];
	return kept;
}

static uint64_t written_box_number(const struct grid *g, const uint64_t *first,
				   const uint64_t *at)
{
	uint64_t number = 0;

	for (unsigned i = 0; i < g->rank; i++)
		number = number * g->chunks[i] + first[i] + at[i];
	return number;
}

int rechunk_written_boxes(const struct rechunk_written *w, const struct grid *g,
			  uint64_t most, uint64_t **out, uint64_t *n,
			  struct error *err)
{
	uint64_t first[RANK_MAX], wide[RANK_MAX];
	vec(uint64_t) all = VEC_EMPTY;
	size_t enough = SORT_LEAST;

	*out = NULL;
	*n = 0;
	for (size_t i = 0; i < w->chunks.n; i++) {
		uint64_t at[RANK_MAX] = {0};

		if (touched(w, w->chunks.at[i], g, first, wide) > most)
			goto too_many;
		do {
			/* Neighbouring chunks touch the same boxes. */
			if (all.n == enough) {
				all.n = written_sort(all.at, all.n);
				enough = 2 * all.n;
				enough = max_u64(enough, SORT_LEAST);
			}
			if (all.n >= most)
				goto too_many;
			if (!vec_push(&all, written_box_number(g, first, at))) {
				vec_free(&all);
				return error_no_memory(err,
						       "the list of chunks");
			}
		} while (grid_step(g->rank, at, wide));
	}
	*n = written_sort(all.at, all.n);
	*out = all.at;
	return 1;
too_many:
	vec_free(&all);
	return 0;
}
