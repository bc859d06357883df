/* SPDX-License-Identifier: BSD-2-Clause */
/* zarr/ and zarr3/: a tensor as a Zarr array. */

/*
 *	zarr/    .zarray  .zattrs  0.0  0.1  1.0 ...     a file for each chunk
 *	zarr3/   c/0/0  c/0/1  c/1/0 ...  zarr.json       a directory for each axis
 *
 * Entries are numbered in the order of their names: decimals without leading zeros, axis
 * by axis.  In zarr/, too, that is the order of names, because '.' sorts before any digit.
 * Chunks that were never written have numbers but no files.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/number.h"
#include "views/name.h"
#include "views/table.h"
#include "views/zarr/zarr.h"

/* The most places without a chunk that a listing passes in a row. */
#define SKIP_MAX (UINT64_C(1) << 20)
#define DOCUMENTS 2 /* entries of zarr/ before its chunks */
enum { ARRAY, ATTRIBUTES };
enum { CHUNKS3, ARRAY3 };

/* ---- numbers in names ----------------------------------------------------- */

/* Parse a decimal below n at *s and move *s behind it.  Returns 0 or -ENOENT. */
static int parse_chunk_index(const char **s, uint64_t n, uint64_t *out)
{
	size_t digits = strspn(*s, "0123456789");

	if (!digits || digits > 18 || (**s == '0' && digits > 1))
		return -ENOENT;
	*out = strtoull(*s, NULL, 10);
	*s += digits;
	return *out < n ? 0 : -ENOENT;
}

/* Set at[] to the indices of the chunk that is at `place` of the grid in order of
 * names. */
static void indices_at(const struct grid *g, uint64_t place, uint64_t *at)
{
	for (unsigned i = g->rank; i-- > 0; place /= g->chunks[i])
		at[i] = view_decimal_at(place % g->chunks[i], g->chunks[i]);
}

static uint64_t chunk_number(const struct grid *g, const uint64_t *at)
{
	uint64_t k = 0;

	for (unsigned i = 0; i < g->rank; i++)
		k = k * g->chunks[i] + at[i];
	return k;
}

/* ---- chunks ---------------------------------------------------------------- */

static bool is_v3(const struct view *v)
{
	return v->ops == &view_zarr3;
}

/* Return the chunk of an entry. */
static struct zarr_chunk zarr_view_chunk(const struct view *v,
					 const uint64_t *at)
{
	struct zarr_chunk c = {v->tensor, 0,
			       is_v3(v) && !zarr3_can_store(v->tensor)};
	uint64_t index[RANK_MAX];
	struct grid room;
	const struct grid *g = zarr_grid(v->tensor, &room);

	if (is_v3(v))
		for (unsigned i = 0; i < g->rank; i++)
			index[i] = view_decimal_at(at[i + 1], g->chunks[i]);
	else
		indices_at(g, at[0] - DOCUMENTS, index);
	c.k = chunk_number(g, index);
	return c;
}

static int zarr_view_chunk_size(const struct view *v, const uint64_t *at,
				struct pinner *p, uint64_t *size,
				struct error *err)
{
	const struct zarr_chunk c = zarr_view_chunk(v, at);

	return zarr_chunk_size(&c, p, size, err);
}

static bool chunk_is_there(const struct view *v, const uint64_t *at,
			   struct pinner *p)
{
	struct error err = {0};
	uint64_t size;

	/* A chunk that cannot be located exists; reading it reports the error. */
	return v->ops->is_document(v, at) ||
	       zarr_view_chunk_size(v, at, p, &size, &err) != -ENOENT;
}

/* Move *i to the first entry that exists. */
static int skip_absent(const struct view *v, unsigned level, uint64_t *at,
		       uint64_t *i, struct pinner *p, struct error *err)
{
	uint64_t n = v->ops->count(v, level), k = *i;

	if (is_v3(v) && level < v->tensor->rank)
		return 0; /* directories always exist */
	for (; k < n; k++) {
		at[level] = k;
		if (chunk_is_there(v, at, p))
			break;
		if (k - *i >= SKIP_MAX)
			return error_set(err, -ENOTSUP,
					 "%s: the listing ends here: %" PRIu64
					 " places in a row of the %" PRIu64
					 " in its grid have no chunk, and its "
					 "index does not list those that have "
					 "one; chunks can still be opened by "
					 "name",
					 v->tensor->name, k - *i, n);
	}
	*i = k;
	return 0;
}

static int zarr_view_chunk_prepare(const struct view *v, const uint64_t *at,
				   uint64_t off, uint64_t len,
				   struct error *err)
{
	const struct zarr_chunk c = zarr_view_chunk(v, at);

	return zarr_chunk_prepare(&c, off, len, err);
}

static int zarr_view_chunk_map(const struct view *v, const uint64_t *at,
			       uint64_t off, struct plan *plan,
			       struct error *err)
{
	const struct zarr_chunk c = zarr_view_chunk(v, at);

	return zarr_chunk_map(&c, off, plan, err);
}

static char *with_length(char *text, size_t *len)
{
	*len = text ? strlen(text) : 0;
	return text;
}

/* ---- zarr/ ----------------------------------------------------------------- */

static bool grid_fits(const struct tensor *t)
{
	struct grid room;

	return zarr_grid(t, &room) != NULL;
}

static bool zarr_view_fits(struct tensor *t, unsigned axes)
{
	(void)axes;
	return zarr_fits(t) && grid_fits(t);
}

static uint64_t zarr_view_count(const struct view *v, unsigned level)
{
	struct grid room;

	(void)level;
	return zarr_grid(v->tensor, &room)->count + DOCUMENTS;
}

static bool zarr_view_is_document(const struct view *v, const uint64_t *at)
{
	(void)v;
	return at[0] < DOCUMENTS;
}

static void zarr_view_name_of(const struct view *v, unsigned level,
			      const uint64_t *at, char *buf, size_t n)
{
	uint64_t index[RANK_MAX] = {0};
	struct grid room;
	const struct grid *g = zarr_grid(v->tensor, &room);
	size_t used;

	(void)level;
	if (zarr_view_is_document(v, at)) {
		snprintf(buf, n, at[0] == ARRAY ? ".zarray" : ".zattrs");
		return;
	}
	indices_at(g, at[0] - DOCUMENTS, index);
	used = (size_t)snprintf(buf, n, "%" PRIu64, index[0]);
	for (unsigned i = 1; i < g->rank && used < n; i++)
		used += (size_t)snprintf(buf + used, n - used, ".%" PRIu64,
					 index[i]);
}

static int zarr_view_find(const struct view *v, unsigned level,
			  const uint64_t *at, const char *name, uint64_t *index)
{
	struct grid room;
	const struct grid *g = zarr_grid(v->tensor, &room);
	uint64_t place = 0, k;

	(void)level;
	(void)at;
	*index = strcmp(name, ".zarray") ? ATTRIBUTES : ARRAY;
	if (*index == ARRAY || !strcmp(name, ".zattrs"))
		return 0;
	*index = DOCUMENTS;
	if (!g->rank)
		return strcmp(name, "0") ? -ENOENT : 0;
	for (unsigned i = 0; i < g->rank; i++) {
		if ((i && *name++ != '.') ||
		    parse_chunk_index(&name, g->chunks[i], &k) < 0)
			return -ENOENT;
		place = place * g->chunks[i] +
			view_decimal_place(k, g->chunks[i]);
	}
	*index += place;
	return *name ? -ENOENT : 0;
}

static char *zarr_view_document(const struct view *v, const uint64_t *at,
				size_t *len, struct error *err)
{
	return with_length(at[0] == ARRAY
				   ? zarr_array_text(v->tensor, err)
				   : zarr_attributes_text(v->tensor, err),
			   len);
}

/* Return the place, in the order of names, of a chunk that has number `chunk` in the
 * stored grid. */
static uint64_t zarr_view_place(const struct tensor *t, uint64_t chunk)
{
	const struct layout *l = atomic_load(&t->parts[0].layout);
	uint64_t index[RANK_MAX], place = 0;
	struct grid room;
	const struct grid *g = zarr_grid(t, &room);

	for (unsigned i = g->rank; i-- > 0; chunk /= l->grid->chunks[i])
		index[i] = chunk % l->grid->chunks[i];
	for (unsigned i = 0; i < g->rank; i++)
		place = place * g->chunks[i] +
			view_decimal_place(index[i], g->chunks[i]);
	return place;
}

static int skip_listed(const struct view *v, unsigned level, uint64_t *at,
		       uint64_t *i, struct pinner *p, struct error *err)
{
	const struct zarr_places *all =
		*i < DOCUMENTS ? NULL : zarr_places(v->tensor, zarr_view_place);
	struct bisect b = bisect_in(0, all ? all->n : 0);

	if (!all)
		return skip_absent(v, level, at, i, p, err);
	while (bisect_next(&b))
		bisect_answer(&b, all->at[b.mid] >= *i - DOCUMENTS);
	*i = b.lo < all->n ? DOCUMENTS + all->at[b.lo]
			   : zarr_view_count(v, level);
	return 0;
}

const struct view_ops view_zarr = {
	.name = "zarr",
	.summary = "zarr/, a Zarr v2 array",
	.top = "zarr",
	.levels = 1,
	.unlisted = true,
	.fits = zarr_view_fits,
	.begin = zarr_stored_init,
	.end = zarr_places_free,
	.count = zarr_view_count,
	.name_of = zarr_view_name_of,
	.find = zarr_view_find,
	.box_of = view_whole_box,
	.document = zarr_view_document,
	.is_document = zarr_view_is_document,
	.skip = skip_listed,
	.size = zarr_view_chunk_size,
	.prepare = zarr_view_chunk_prepare,
	.map = zarr_view_chunk_map,
};

/* ---- zarr3/ ---------------------------------------------------------------- */

static bool zarr3_view_fits(struct tensor *t, unsigned axes)
{
	(void)axes;
	return zarr3_fits(t) && t->rank < RANK_MAX && grid_fits(t);
}

static unsigned zarr3_view_levels(const struct tensor *t)
{
	return t->rank + 1;
}

static uint64_t zarr3_view_count(const struct view *v, unsigned level)
{
	struct grid room;

	return level ? zarr_grid(v->tensor, &room)->chunks[level - 1] : 2;
}

static bool zarr3_view_is_document(const struct view *v, const uint64_t *at)
{
	(void)v;
	return at[0] == ARRAY3;
}

static bool zarr3_view_is_leaf(const struct view *v, unsigned depth,
			       const uint64_t *at)
{
	return depth == 1 && zarr3_view_is_document(v, at);
}

static void zarr3_view_name_of(const struct view *v, unsigned level,
			       const uint64_t *at, char *buf, size_t n)
{
	if (!level)
		snprintf(buf, n, at[0] == CHUNKS3 ? "c" : "zarr.json");
	else
		snprintf(
			buf, n, "%" PRIu64,
			view_decimal_at(at[level], zarr3_view_count(v, level)));
}

static int zarr3_view_find(const struct view *v, unsigned level,
			   const uint64_t *at, const char *name,
			   uint64_t *index)
{
	uint64_t n = zarr3_view_count(v, level), k;

	(void)at;
	if (!level) {
		*index = strcmp(name, "c") ? ARRAY3 : CHUNKS3;
		return *index == CHUNKS3 || !strcmp(name, "zarr.json")
			       ? 0
			       : -ENOENT;
	}
	if (parse_chunk_index(&name, n, &k) < 0 || *name)
		return -ENOENT;
	*index = view_decimal_place(k, n);
	return 0;
}

static char *zarr3_view_document(const struct view *v, const uint64_t *at,
				 size_t *len, struct error *err)
{
	(void)at;
	return with_length(zarr3_array_text(v->tensor, err), len);
}

const struct view_ops view_zarr3 = {
	.name = "zarr3",
	.summary = "zarr3/, a Zarr v3 array",
	.top = "zarr3",
	.levels_of = zarr3_view_levels,
	.is_leaf = zarr3_view_is_leaf,
	.unlisted = true,
	.fits = zarr3_view_fits,
	.count = zarr3_view_count,
	.name_of = zarr3_view_name_of,
	.find = zarr3_view_find,
	.box_of = view_whole_box,
	.document = zarr3_view_document,
	.is_document = zarr3_view_is_document,
	.skip = skip_absent,
	.size = zarr_view_chunk_size,
	.prepare = zarr_view_chunk_prepare,
	.map = zarr_view_chunk_map,
};
