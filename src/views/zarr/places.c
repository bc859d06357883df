/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the places of a large and sparse grid that have a chunk, for listings. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "views/state.h"
#include "views/zarr/zarr.h"

/* Grids up to this number of places are listed place by place. */
#define PLACES_MIN (UINT64_C(1) << 20)
/* The most chunks that are remembered. */
#define LISTED_MAX ((size_t)1 << 20)
#define LIST_ROOM 4096

/* Stands for the places of all grids whose index did not list them. */
static struct zarr_places none;

static int compare_place_numbers(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

struct found {
	vec(uint64_t) chunks;
};

/* Collect the chunks from the index.  Returns false if the index does not list them, or
 * if there are too many. */
static bool places_list_chunks(struct tensor *t, const struct layout *l,
			       struct found *f)
{
	cleanup_free struct written *at = malloc(LIST_ROOM * sizeof *at);
	uint64_t from = 0;
	struct error err = {0};

	while (at && from != UINT64_MAX && f->chunks.n <= LISTED_MAX) {
		uint32_t n = 0;

		if (t->ops->list(t, 0, l, &from, at, LIST_ROOM, &n, &err) != 0)
			return false;
		for (uint32_t i = 0; i < n; i++)
			if (!vec_push(&f->chunks, at[i].chunk))
				return false;
	}
	return at && from == UINT64_MAX;
}

static struct zarr_places *
places_find(struct tensor *t, const struct layout *l,
	    uint64_t (*place_of)(const struct tensor *t, uint64_t chunk))
{
	struct zarr_places *out = NULL;
	struct found f = {0};

	if (places_list_chunks(t, l, &f))
		out = malloc(sizeof *out + (f.chunks.n + 1) * sizeof *out->at);
	if (out) {
		out->n = f.chunks.n;
		for (size_t i = 0; i < f.chunks.n; i++)
			out->at[i] = place_of(t, f.chunks.at[i]);
		qsort(out->at, out->n, sizeof *out->at, compare_place_numbers);
	}
	vec_free(&f.chunks);
	return out ? out : &none;
}

const struct zarr_places *
zarr_places(struct tensor *t,
	    uint64_t (*place_of)(const struct tensor *t, uint64_t chunk))
{
	const struct layout *l = !t->mosaic && t->nparts
					 ? atomic_load(&t->parts[0].layout)
					 : NULL;
	struct zarr_places *all = atomic_load(&t->views->zarr_places),
			   *empty = NULL;
	struct grid room;
	const struct grid *g = zarr_grid(t, &room);

	if (!l || l->kind != LAYOUT_CHUNKED || l->by_library || !g ||
	    g->count <= PLACES_MIN || !t->ops->list)
		return NULL;
	if (!all) {
		all = places_find(t, l, place_of);
		if (!atomic_compare_exchange_strong(&t->views->zarr_places,
						    &empty, all)) {
			if (all != &none)
				free(all);
			all = empty;
		}
	}
	return all == &none ? NULL : all;
}

void zarr_places_unknown(struct tensor *t)
{
	struct zarr_places *empty = NULL;

	atomic_compare_exchange_strong(&t->views->zarr_places, &empty, &none);
}

void zarr_places_free(struct tensor *t)
{
	struct zarr_places *all = atomic_exchange(&t->views->zarr_places, NULL);

	if (all != &none)
		free(all);
}
