/* SPDX-License-Identifier: BSD-2-Clause */
/* Old chunks become new ones: decode, distribute, encode, write, by all threads. */
/*
 *   main thread   tile by tile: as soon as there is room for all of its chunks,
 *                 a buffer for each, and a job for each cell of the source in it
 *   a job         holds its cell (so that it is decoded once), copies what each new
 *                 chunk gets of it; when the last cell of a chunk was brought, it is
 *                 encoded by whoever has time, and written in its turn
 *                 (hdf5_rechunk_line.c)
 *
 * So there is no barrier: while the last cells of one tile are decoded, chunks of it that
 * are complete are encoded, and as these go, the next tile begins.
 *
 * Tiles in which nothing was written are left out, where it is known which chunks of the
 * source there are.  A chunk all of whose cells were never written is not written either, if the new dataset
 * has the same fill value.  Elements beyond the edge of the array are fill value, as the
 * library has it.
 */
#include "tensors/rechunk/hdf5_rechunk_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "base/pool.h"
#include "tensors/boxes.h"

/* Numbers of tiles that are listed, beside two for each chunk of the source. */
#define TILES_LEAST 65536

struct job {
	struct making *tile;
	uint64_t number; /* of the cell, in C order of those in the tile */
};

static const struct grid *grid_of(const struct run *r)
{
	return &r->w->grid;
}

/* ---- failing ------------------------------------------------------------- */

void rechunk_fail(struct run *r, int code, const struct error *why, bool source)
{
	lock_scope(&r->lock);
	if (r->code == 0) {
		r->code = code;
		r->why = *why;
		r->w->of_source = source;
	}
	atomic_store(&r->failed, true);
	pthread_cond_broadcast(&r->freed);
}

bool rechunk_is_over(struct run *r)
{
	const _Atomic int *stop = r->w->o->stop;

	return atomic_load(&r->failed) || (stop && atomic_load(stop));
}

/* ---- a cell -------------------------------------------------------------- */

/* What both boxes have; false: nothing. */
static bool intersect(unsigned rank, const struct box *a, const struct box *b,
		      struct box *out)
{
	for (unsigned i = 0; i < rank; i++) {
		uint64_t begin = max_u64(a->start[i], b->start[i]);
		uint64_t end = min_u64(a->start[i] + a->count[i],
				       b->start[i] + b->count[i]);

		if (begin >= end)
			return false;
		out->start[i] = begin;
		out->count[i] = end - begin;
	}
	return true;
}

/* Along each axis, the first new chunk of the tile that a box touches, and how many. */
static void pieces_of(const struct making *t, const struct box *b,
		      uint64_t *first, uint64_t *n)
{
	const struct grid *g = grid_of(t->run);

	for (unsigned i = 0; i < g->rank; i++) {
		uint64_t last = (b->start[i] + b->count[i] - 1) / g->chunk[i];

		first[i] = b->start[i] / g->chunk[i] - t->first[i];
		n[i] = last - t->first[i] - first[i] + 1;
	}
}

/* What is where in the grid of new chunks. */
struct target {
	struct piece *piece;
	uint64_t number; /* of the chunk, in the grid */
	struct box box;  /* elements of the array in it */
};

/* The chunk at these coordinates within the tile. */
static void target_at(const struct making *t, const uint64_t *at,
		      struct target *out)
{
	const struct grid *g = grid_of(t->run);
	uint64_t k = 0;

	out->number = 0;
	for (unsigned i = 0; i < g->rank; i++) {
		uint64_t c = t->first[i] + at[i], start = c * g->chunk[i];

		k = k * t->n[i] + at[i];
		out->number = out->number * g->chunks[i] + c;
		out->box.start[i] = start;
		out->box.count[i] = min_u64(g->chunk[i], g->shape[i] - start);
	}
	out->piece = &t->pieces[k];
}

/* `stored`: some of the cell is, though maybe not what the target gets. */
static int copy_to_target(struct run *r, const struct target *to,
			  const struct box *cell, bool stored,
			  struct error *err)
{
	const struct grid *g = grid_of(r);
	unsigned char *place = to->piece->buf->data;
	struct span hold;
	struct box b;

	if (!intersect(g->rank, cell, &to->box, &b))
		return 0;
	if (stored && !atomic_load(&to->piece->stored)) {
		struct rechunk *w = r->w;
		bool is_fill;
		int code = box_is_fill(w->o->store, w->t, &b, &w->fill,
				       &is_fill, &hold, err);

		if (code < 0)
			return code;
		store_unpin(w->o->store, &hold);
		if (!is_fill)
			atomic_store(&to->piece->stored, true);
	}
	for (unsigned i = 0; i < g->rank; i++)
		place += (b.start[i] - to->box.start[i]) * r->pitch[i];
	return box_read_into(r->w->o->store, r->w->t, &b, place, r->pitch, err);
}

static void complete(void *arg)
{
	struct piece *p = arg;
	struct making *t = p->tile;

	rechunk_complete(p);
	rechunk_tile_put(t);
}

/* The last cell of a tile completes many chunks: others help, if they have nothing else. */
static void complete_soon(struct run *r, const struct target *to)
{
	struct piece *p = to->piece;

	p->is.chunk.number = to->number;
	atomic_fetch_add(&p->tile->refs, 1);
	if (!pool_try_submit(r->pool, complete, p))
		complete(p);
}

/* To all new chunks that have something of it. */
static void copy_cell(struct making *t, const struct box *cell, bool stored,
		      struct error *err)
{
	struct run *r = t->run;
	unsigned rank = grid_of(r)->rank;
	uint64_t first[RANK_MAX], n[RANK_MAX], at[RANK_MAX] = {0};
	struct target to;

	pieces_of(t, cell, first, n);
	do {
		uint64_t in_tile[RANK_MAX];
		int code;

		for (unsigned i = 0; i < rank; i++)
			in_tile[i] = first[i] + at[i];
		target_at(t, in_tile, &to);
		code = rechunk_is_over(r)
			       ? 0
			       : copy_to_target(r, &to, cell, stored, err);
		if (code < 0)
			rechunk_fail(r, code, err, true);
		if (atomic_fetch_sub(&to.piece->pending, 1) == 1)
			complete_soon(r, &to);
	} while (grid_step(rank, at, n));
}

/* What of a cell is in the tile. */
static void cell_box(const struct making *t, uint64_t number, struct box *out)
{
	unsigned rank = grid_of(t->run)->rank;
	struct box cell;

	for (unsigned i = rank; i-- > 0; number /= t->cells[i]) {
		uint64_t k = t->first_cell[i] + number % t->cells[i];

		cell.count[i] = t->run->cell[i];
		cell.start[i] = k * cell.count[i];
	}
	intersect(rank, &cell, &t->box, out);
}

static void tell(struct run *r, uint64_t bytes)
{
	lock_scope(&r->lock);
	r->done += bytes;
	if (r->w->o->progress)
		r->w->o->progress(r->w->o->ctx, r->done);
}

void rechunk_tile_put(struct making *t)
{
	if (atomic_fetch_sub(&t->refs, 1) != 1)
		return;
	free(t->pieces);
	free(t->jobs);
	free(t);
}

static void do_job(void *arg)
{
	struct job *j = arg;
	struct making *t = j->tile;
	struct rechunk *w = t->run->w;
	struct error err = {0};
	struct span hold = {0};
	bool is_fill = false;
	struct box cell;
	int code = 0;

	cell_box(t, j->number, &cell);
	if (!rechunk_is_over(t->run)) {
		code = box_is_fill(w->o->store, w->t, &cell, &w->fill, &is_fill,
				   &hold, &err);
		if (code < 0)
			rechunk_fail(t->run, code, &err, true);
	}
	copy_cell(t, &cell, !is_fill, &err);
	if (code == 0)
		store_unpin(w->o->store, &hold);
	tell(t->run, box_elements(&cell, w->t->rank) * w->t->dtype.size);
	rechunk_tile_put(t);
}

/* ---- a tile -------------------------------------------------------------- */

static bool make_piece(struct making *t, const uint64_t *at)
{
	const struct grid *g = grid_of(t->run);
	struct target to;
	bool partial = false;
	uint64_t cells = 1;

	target_at(t, at, &to);
	for (unsigned i = 0; i < g->rank; i++) {
		uint64_t start = to.box.start[i], cell = t->run->cell[i];
		uint64_t last = start + to.box.count[i] - 1;

		partial |= to.box.count[i] < g->chunk[i];
		cells *= last / cell - start / cell + 1;
	}
	to.piece->tile = t;
	atomic_init(&to.piece->pending, cells);
	atomic_init(&to.piece->stored, false);
	to.piece->buf = buf_new(g->chunk_bytes, NULL);
	if (to.piece->buf && partial)
		rechunk_fill(to.piece->buf->data, g->chunk_bytes,
			     &t->run->w->fill);
	return to.piece->buf;
}

/* Buffers and jobs.  False: memory is out. */
static bool tile_fill(struct making *t)
{
	uint64_t at[RANK_MAX] = {0};
	unsigned rank = grid_of(t->run)->rank;

	t->n_jobs = 1;
	for (unsigned i = 0; i < rank; i++) {
		uint64_t cell = t->run->cell[i], start = t->box.start[i];

		t->first_cell[i] = start / cell;
		t->cells[i] = (start + t->box.count[i] - 1) / cell -
			      t->first_cell[i] + 1;
		t->n_jobs *= t->cells[i];
	}
	t->pieces = calloc(t->n_pieces, sizeof *t->pieces);
	t->jobs = calloc(t->n_jobs, sizeof *t->jobs);
	if (!t->pieces || !t->jobs)
		return false;
	for (uint64_t k = 0; k < t->n_jobs; k++)
		t->jobs[k] = (struct job){t, k};
	do {
		if (!make_piece(t, at))
			return false;
	} while (grid_step(rank, at, t->n));
	return true;
}

/* Wait for room for so many bytes, or for all there is.  False: it is over. */
static bool take_room(struct run *r, uint64_t bytes)
{
	lock_scope(&r->lock);
	while (!rechunk_is_over(r) && r->in_flight &&
	       (bytes > r->w->room || r->in_flight > r->w->room - bytes))
		pthread_cond_wait(&r->freed, &r->lock);
	r->in_flight += bytes;
	return !rechunk_is_over(r);
}

static int no_memory(struct run *r)
{
	struct error err = {0};

	error_set(&err, -ENOMEM, "out of memory");
	rechunk_fail(r, -ENOMEM, &err, false);
	return -ENOMEM;
}

/* What was made of a tile that has no jobs. */
static void tile_drop(struct making *t)
{
	for (uint64_t k = 0; t->pieces && k < t->n_pieces; k++)
		buf_unref(t->pieces[k].buf);
	rechunk_tile_put(t);
}

static void place_tile(struct making *t, const struct grid *tiles,
		       uint64_t number)
{
	const struct grid *g = grid_of(t->run);

	grid_origin(tiles, number, t->box.start);
	t->n_pieces = 1;
	for (unsigned i = 0; i < g->rank; i++) {
		uint64_t start = t->box.start[i];

		t->box.count[i] = min_u64(tiles->chunk[i], g->shape[i] - start);
		t->first[i] = start / g->chunk[i];
		t->n[i] = div_up(t->box.count[i], g->chunk[i]);
		t->n_pieces *= t->n[i];
	}
}

static int do_tile(struct run *r, const struct grid *tiles, uint64_t number)
{
	struct making *t = calloc(1, sizeof *t);

	if (!t)
		return no_memory(r);
	t->run = r;
	atomic_init(&t->refs, 1);
	place_tile(t, tiles, number);
	if (!take_room(r, t->n_pieces * r->cost)) {
		rechunk_tile_put(t);
		return -EINTR;
	}
	if (!tile_fill(t)) {
		tile_drop(t);
		return no_memory(r);
	}
	rechunk_line_up(t);
	for (uint64_t k = 0; k < t->n_jobs; k++) {
		atomic_fetch_add(&t->refs, 1);
		pool_submit(r->pool, do_job, &t->jobs[k]);
	}
	rechunk_tile_put(t);
	return 0;
}

/* A tile as a chunk of a grid. */
static int tile_grid(const struct run *r, struct grid *out, struct error *err)
{
	const struct grid *g = grid_of(r);
	uint64_t extent[RANK_MAX];

	for (unsigned i = 0; i < g->rank; i++)
		if (mul_overflows(r->w->plan.tile[i], g->chunk[i], &extent[i]))
			extent[i] = g->shape[i];
	return grid_init(out, g->rank, g->shape, extent, g->elem) < 0
		       ? error_set(err, -EINVAL,
				   "%s: more bytes than there are numbers",
				   r->w->t->name)
		       : 0;
}

/* Those in which something was written, all others are done. */
static void do_some(struct run *r, const struct grid *tiles,
		    const uint64_t *number, uint64_t n)
{
	uint64_t rest = grid_of(r)->elem;
	struct making t = {.run = r};

	for (unsigned i = 0; i < tiles->rank; i++)
		rest *= tiles->shape[i];
	for (uint64_t i = 0; i < n; i++) {
		place_tile(&t, tiles, number[i]);
		rest -= box_elements(&t.box, tiles->rank) * tiles->elem;
	}
	tell(r, rest);
	for (uint64_t i = 0; i < n && !rechunk_is_over(r); i++)
		if (do_tile(r, tiles, number[i]) < 0)
			break;
}

static int do_tiles(struct run *r, struct error *err)
{
	const struct rechunk_written *w = &r->w->written;
	uint64_t n, most = 2 * w->chunks.room + TILES_LEAST;
	cleanup_free uint64_t *some = NULL;
	struct grid tiles;
	int code = tile_grid(r, &tiles, err);

	if (code == 0 && w->known)
		code = rechunk_written_boxes(w, &tiles, most, &some, &n, err);
	if (code == 1)
		do_some(r, &tiles, some, n);
	for (uint64_t i = 0; code == 0 && i < tiles.count; i++)
		if (rechunk_is_over(r) || do_tile(r, &tiles, i) < 0)
			break;
	return code < 0 ? code : 0;
}

uint64_t rechunk_cost(const struct rechunk *w)
{
	return buf_cost(w->grid.chunk_bytes) + sizeof(struct buf) +
	       sizeof(struct piece) + 32;
}

int rechunk_run(struct rechunk *w, struct error *err)
{
	struct run r = {.w = w, .cost = rechunk_cost(w)};
	uint64_t pitch = w->grid.elem;
	int code;

	for (unsigned i = w->grid.rank; i-- > 0;) {
		r.pitch[i] = pitch;
		pitch *= w->grid.chunk[i];
	}
	memcpy(r.cell, w->cells.cell, sizeof r.cell);
	rechunk_cells_join(w->t, r.cell);
	code = pool_new(&r.pool, "rechunk", w->threads, 4 * w->threads, err);
	if (code < 0)
		return code;
	pthread_mutex_init(&r.lock, NULL);
	pthread_cond_init(&r.freed, NULL);
	code = w->grid.count ? do_tiles(&r, err) : 0;
	pool_drain(r.pool);
	pool_free(r.pool);
	rechunk_line_free(&r);
	pthread_cond_destroy(&r.freed);
	pthread_mutex_destroy(&r.lock);
	w->unwritten = w->grid.count - w->chunks.n;
	if (code < 0)
		return code;
	if (r.code)
		return error_set(err, r.code, "%s", r.why.text);
	if (w->o->stop && atomic_load(w->o->stop))
		return error_set(err, -EINTR, "interrupted");
	return 0;
}
