/* SPDX-License-Identifier: BSD-2-Clause */
/* The chunks of a tensor as files of a Zarr array. */

/*
 * A chunked dataset keeps its grid.  Where Zarr v2 has codecs for its filters, a
 * chunk's file has the stored bytes; the chunks are then a set of their own
 * (views/zarr/stored.c), for which nothing is decoded.  Otherwise the file is the
 * decoded chunk, and so it is in Zarr v3 where that has no codecs.
 *
 * A .zarray declares once for all chunks how they are encoded, while HDF5 may skip
 * filters for each of them.  So all chunks are examined before the first is served as
 * stored; that also tells whether any is missing.
 *
 * Any other layout (contiguous, virtual) is cut along one axis, in whole blocks of the
 * tensor if it has some:
 *
 *	shape (9, 1000, 1000), chunks (1, 400, 1000):   1 .. 1 | rows | all .. all
 *
 * so that a chunk is a run of the array's bytes, and padding comes last.
 *
 * An array may be shorter than a dimension that it shares with others
 * (tensor.full_shape).  The grid is then that of the dimensions:
 *
 *	stored    |  0  |  1 .|             "." is behind the array, and undefined
 *	shown     |  0  |  1 f|  f  |  f  |  "f" is fill value (padded.h)
 *
 * Such chunks are decoded, unless the stored ones end where the array does.  If all
 * stored chunks are present, those behind them are files, too, so that no fill value
 * has to be written (see views/zarr/text.c); they cannot be served in a compressed
 * array.
 */
#include "views/zarr/zarr.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "tensor/padded.h"
#include "views/state.h"

/* Size in bytes of a chunk if the file has none: neither slow to read nor tiny. */
#define CHUNK_BYTES (UINT64_C(16) << 20)
/* A block of more bytes is cut. */
#define BLOCK_BYTES (UINT64_C(128) << 20)
/* The most chunks that are examined one by one. */
#define SCAN_MAX (UINT64_C(1) << 20)
/* The number of chunks that the index lists at a time. */
#define LIST_ROOM 4096

static const struct layout *zarr_layout(const struct tensor *t)
{
	return !t->mosaic && t->nparts ? atomic_load(&t->parts[0].layout)
				       : NULL;
}

static bool zarr_is_chunked(const struct tensor *t)
{
	const struct layout *l = zarr_layout(t);

	return l && l->kind == LAYOUT_CHUNKED;
}

bool zarr_fits(const struct tensor *t)
{
	return !t->why_not && dtype_is_binary(&t->dtype) && t->dtype.size &&
	       (t->mosaic || zarr_layout(t));
}

/* ---- the grid ------------------------------------------------------------ */

/* Return the number of indices of `axis` in a chunk; each index has `bytes` bytes. */
static uint64_t rows_a_chunk(const struct tensor *t, unsigned axis,
			     uint64_t bytes)
{
	uint64_t rows = max_u64(CHUNK_BYTES / bytes, 1), unit;
	uint64_t length = zarr_shape(t)[axis];
	struct box b;

	if (axis || tensor_blocks(t) <= 1)
		return min_u64(rows, length);
	tensor_block_box(t, 0, &b);
	unit = max_u64(b.count[0], 1);
	if (unit <= rows)
		rows -= rows % unit;
	else if (unit <= BLOCK_BYTES / bytes)
		rows = unit;
	return min_u64(rows, length);
}

const struct grid *zarr_grid(const struct tensor *t, struct grid *room)
{
	uint64_t chunk[RANK_MAX], bytes = t->dtype.size;
	const uint64_t *shape = zarr_shape(t);
	unsigned i = t->rank;

	if (zarr_is_chunked(t) && !t->full_shape)
		return zarr_layout(t)->grid;
	if (zarr_is_chunked(t))
		return grid_init(room, t->rank, shape,
				 zarr_layout(t)->grid->chunk, t->dtype.size) < 0
			       ? NULL
			       : room;
	for (; i > 1 && bytes <= CHUNK_BYTES / max_u64(shape[i - 1], 1); i--) {
		chunk[i - 1] = max_u64(shape[i - 1], 1);
		bytes *= chunk[i - 1];
	}
	if (i-- > 0)
		chunk[i] = max_u64(rows_a_chunk(t, i, bytes), 1);
	for (unsigned k = 0; t->rank && k < i; k++)
		chunk[k] = 1;
	return grid_init(room, t->rank, shape, chunk, t->dtype.size) < 0 ? NULL
									 : room;
}

/* ---- how chunks are served ----------------------------------------------- */

/* What is known of all chunks. */
struct look {
	bool alike; /* filters are skipped for none of them */
	bool whole; /* all are in the file */
};

static void look_at_location(struct look *out, const struct location *at)
{
	if (at->pos == UINT64_MAX)
		out->whole = false;
	else
		out->alike &= !at->mask;
}

/* Examine all chunks one by one. */
static int look_at_each_chunk(struct tensor *t, const struct layout *l,
			      struct look *out, struct error *err)
{
	cleanup_free struct location *at = malloc(TENSOR_SEGMENT * sizeof *at);
	uint64_t k = 0;

	if (!at)
		return error_no_memory(err, "where an array's chunks are");
	while (k < l->grid->count && (out->alike || out->whole)) {
		uint32_t n =
			(uint32_t)min_u64(l->grid->count - k, TENSOR_SEGMENT);
		int r = t->ops->locate(t, 0, l, k, n, at, err);

		if (r < 0)
			return r;
		for (uint32_t i = 0; i < n; i++)
			look_at_location(out, &at[i]);
		k += n;
	}
	return 0;
}

/* Examine the chunks that the index of a sparse grid lists.  Returns 0, -ENOTSUP if it
 * does not list them, or another -errno. */
static int look_at_listed_chunks(struct tensor *t, const struct layout *l,
				 struct look *out, struct error *err)
{
	cleanup_free struct written *at = malloc(LIST_ROOM * sizeof *at);
	uint64_t from = 0, found = 0;
	uint32_t n;
	int r = at ? 0 : error_no_memory(err, "the list of an array's chunks");

	if (r == 0 && !t->ops->list)
		return -ENOTSUP;
	while (r == 0 && from != UINT64_MAX) {
		n = 0;
		r = t->ops->list(t, 0, l, &from, at, LIST_ROOM, &n, err);
		for (uint32_t i = 0; r == 0 && i < n; i++)
			look_at_location(out, &at[i].at);
		found += n;
	}
	if (r == 0)
		out->whole &= found == l->grid->count;
	return r < 0 ? r : 0; /* 1: all chunks are listed, none has a mask */
}

/* Examine all chunks.  Returns 0, -ENOTSUP for a large grid (unless masks have to be
 * known), or another -errno. */
static int look_at_all_chunks(struct tensor *t, bool filtered, struct look *out,
			      struct error *err)
{
	const struct layout *l = zarr_layout(t);
	int r;

	*out = (struct look){true, !l || l->kind != LAYOUT_ABSENT};
	/* The HDF5 library also makes chunks that were never written. */
	if (!zarr_is_chunked(t) || l->by_library || !l->grid->count)
		return 0;
	if (!filtered && l->grid->count > SCAN_MAX)
		return -ENOTSUP;
	r = look_at_listed_chunks(t, l, out, err);
	if (r != -ENOTSUP || l->grid->count > SCAN_MAX)
		return r;
	*out = (struct look){true, true};
	return look_at_each_chunk(t, l, out, err);
}

/* A bit beside the mode: all chunks are in the file. */
#define WHOLE 4

/* Return true if the chunks behind the stored ones are few enough to be files. */
static bool can_list(const struct tensor *t)
{
	struct grid room;
	const struct grid *g = t->full_shape ? zarr_grid(t, &room) : NULL;

	return !t->full_shape || (g && g->count <= SCAN_MAX);
}

static int zarr_choose_mode(struct tensor *t, int *out, struct error *err)
{
	bool can_store = zarr_is_chunked(t) && zarr_can_store(t);
	bool filtered = can_store && zarr_layout(t)->pipeline->n;
	bool large =
		zarr_is_chunked(t) && zarr_layout(t)->grid->count > SCAN_MAX;
	struct look look;
	int r = look_at_all_chunks(t, filtered, &look, err);

	/* If the index is damaged, the chunks that can be found are served decoded, and
	 * so are those of a large index that cannot be examined in time. */
	if (r < 0 && filtered && large)
		zarr_places_unknown(t);
	else if (r < 0 && filtered && r != -EBADMSG && r != -ENOTSUP)
		return r;
	if (r < 0)
		look = (struct look){!filtered, false};
	look.whole = look.whole && can_list(t);
	*out = can_store && (look.alike || !filtered) ? ZARR_STORED
						      : ZARR_DECODED;
	/* Chunks behind the stored ones cannot be made in the stored encoding. */
	if (look.whole && t->full_shape)
		*out = ZARR_DECODED;
	*out |= look.whole ? WHOLE : 0;
	return 0;
}

static int zarr_chosen_mode(struct tensor *t, int *out, struct error *err)
{
	struct error why = {0};
	int made = atomic_load(&t->views->zarr), none = ZARR_UNKNOWN;
	int r;

	if (made == ZARR_UNKNOWN) {
		r = zarr_choose_mode(t, &made, &why);
		if (r < 0)
			return error_set(err, r, "%s", why.text);
		if (!atomic_compare_exchange_strong(&t->views->zarr, &none,
						    made))
			made = none;
	}
	*out = made;
	return 0;
}

int zarr_mode(struct tensor *t, enum zarr_mode *out, struct error *err)
{
	int made = ZARR_UNKNOWN, r = zarr_chosen_mode(t, &made, err);

	*out = (enum zarr_mode)(made & ~WHOLE);
	return r;
}

int zarr_is_whole(struct tensor *t, bool *out, struct error *err)
{
	int made = 0, r = zarr_chosen_mode(t, &made, err);

	*out = made & WHOLE;
	return r;
}

/* ---- a chunk's file ------------------------------------------------------ */

static struct chunk_set *zarr_chunk_set(const struct zarr_chunk *c)
{
	return !c->decoded && (atomic_load(&c->t->views->zarr) & ~WHOLE) ==
				       ZARR_STORED
		       ? &c->t->views->stored_chunks
		       : &c->t->set;
}

static bool zarr_is_absent(const struct tensor *t)
{
	const struct layout *l = zarr_layout(t);

	return l && l->kind == LAYOUT_ABSENT;
}

/* A chunk: the part of it that the array has (`box`, which may be empty), and its
 * whole. */
struct piece {
	struct padded p;
	struct box box;
	uint64_t bytes, size; /* of the box, and of the chunk's file */
};

static int zarr_chunk_piece(const struct zarr_chunk *c, struct piece *x,
			    struct error *err)
{
	const struct tensor *t = c->t;
	struct grid room;
	const struct grid *g = zarr_grid(t, &room);

	if (!g || c->k >= g->count)
		return error_set(err, -ENOENT, "no such file");
	grid_origin(g, c->k, x->box.start);
	x->p.rank = t->rank;
	x->p.elem = t->dtype.size;
	for (unsigned i = 0; i < t->rank; i++) {
		uint64_t from = min_u64(x->box.start[i], t->shape[i]);

		x->box.count[i] = min_u64(g->chunk[i], t->shape[i] - from);
		x->p.there[i] = x->box.count[i];
		x->p.full[i] = g->chunk[i];
	}
	x->bytes = box_elements(&x->box, t->rank) * t->dtype.size;
	x->size = g->chunk_bytes;
	return 0;
}

/* Return the number of the stored chunk whose elements the piece has. */
static uint64_t stored_number(const struct zarr_chunk *c, const struct piece *x)
{
	const struct grid *g = zarr_layout(c->t)->grid;
	uint64_t k = 0;

	for (unsigned i = 0; i < g->rank; i++)
		k = k * g->chunks[i] + x->box.start[i] / g->chunk[i];
	return k;
}

/* Set the size of a chunk behind the stored ones, which is a file only if no fill value
 * is written.  Returns 0, -ENOENT or another -errno. */
static int zarr_size_behind(const struct zarr_chunk *c, const struct piece *x,
			    uint64_t *size, struct error *err)
{
	bool whole = false;
	int r = zarr_is_whole(c->t, &whole, err);

	*size = x->size;
	return r < 0 ? r : whole ? 0 : -ENOENT;
}

int zarr_chunk_size(const struct zarr_chunk *c, struct pinner *p,
		    uint64_t *size, struct error *err)
{
	enum zarr_mode mode = ZARR_DECODED;
	struct piece x;
	struct chunk at;
	int r = c->decoded ? 0 : zarr_mode(c->t, &mode, err);

	if (r < 0)
		return r;
	if (zarr_is_absent(c->t))
		return -ENOENT;
	r = zarr_chunk_piece(c, &x, err);
	if (r < 0)
		return r;
	if (!x.bytes && c->t->full_shape)
		return zarr_size_behind(c, &x, size, err);
	*size = x.size;
	if (!zarr_is_chunked(c->t))
		return 0;
	r = p->locate(p, zarr_chunk_set(c),
		      tensor_chunk_id(0, stored_number(c, &x)), &at, err);
	if (r < 0)
		return r;
	*size = at.size;
	return at.state == CHUNK_ABSENT ? -ENOENT : 0;
}

int zarr_chunk_prepare(const struct zarr_chunk *c, uint64_t off, uint64_t len,
		       struct error *err)
{
	enum zarr_mode mode;
	struct piece x;
	int r;

	if (zarr_is_chunked(c->t))
		return c->decoded ? 0 : zarr_mode(c->t, &mode, err);
	r = zarr_chunk_piece(c, &x, err);
	if (r < 0 || !x.bytes)
		return r;
	if (c->t->full_shape)
		return tensor_prepare_box(c->t, &x.box, 0, x.bytes, err);
	return off >= x.bytes
		       ? 0
		       : tensor_prepare_box(c->t, &x.box, off,
					    min_u64(len, x.bytes - off), err);
}

/* Map one run of a padded chunk that the array has, from byte `off` of the chunk on. */
static int map_there(const struct zarr_chunk *c, const struct piece *x,
		     uint64_t off, uint64_t inside, uint64_t run,
		     struct plan *plan, struct error *err)
{
	uint64_t want = plan->want;
	int r;

	if (zarr_is_chunked(c->t)) {
		plan_chunk(plan, &c->t->set,
			   tensor_chunk_id(0, stored_number(c, x)), off, run);
		return 0;
	}
	plan->want = min_u64(want, plan->have + run);
	r = tensor_map_box(c->t, &x->box, inside, plan, err);
	plan->want = want;
	return r;
}

static int map_padded(const struct zarr_chunk *c, const struct piece *x,
		      uint64_t off, struct plan *plan, struct error *err)
{
	const struct layout *l = zarr_layout(c->t);
	uint64_t inside, run, before;
	int r = 0;

	while (!r && off < x->size && plan_open(plan)) {
		before = plan->have;
		if (padded_run(&x->p, off, &inside, &run))
			r = map_there(c, x, off, inside, run, plan, err);
		else
			plan_fill(plan, l ? l->fill : c->t->fill, off, run);
		if (plan->have == before)
			break;
		off += plan->have - before;
	}
	return r;
}

int zarr_chunk_map(const struct zarr_chunk *c, uint64_t off, struct plan *plan,
		   struct error *err)
{
	const struct layout *l = zarr_layout(c->t);
	struct chunk_set *set = zarr_chunk_set(c);
	uint64_t before = plan->have;
	struct piece x;
	int r = zarr_chunk_piece(c, &x, err);

	if (r < 0)
		return r;
	if (c->t->full_shape && set == &c->t->set)
		return map_padded(c, &x, off, plan, err);
	if (zarr_is_chunked(c->t)) {
		plan_chunk(plan, set, tensor_chunk_id(0, stored_number(c, &x)),
			   off, plan->want - plan->have);
		return 0;
	}
	if (off < x.bytes)
		r = tensor_map_box(c->t, &x.box, off, plan, err);
	off += plan->have - before;
	if (r == 0 && off >= x.bytes && off < x.size && plan_open(plan))
		plan_fill(plan, l ? l->fill : c->t->fill, off, x.size - off);
	return r;
}
