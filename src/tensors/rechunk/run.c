/* SPDX-License-Identifier: BSD-2-Clause */
/* Make new chunks from old ones: decode, distribute, encode, write, by all threads. */

/*
 *   main thread  tile by tile, as soon as there is room for all chunks of a tile:
 *                allocates a buffer for each, and queues a job for each cell of the
 *                source in the tile
 *   a job        pins its cell, so that it is decoded once, and copies its elements to
 *                the new chunks.  When the last cell of a chunk was copied, the chunk is
 *                encoded by any free thread, and written in its turn (the line, below)
 *
 * So there is no barrier: while the last cells of a tile are decoded, complete chunks of
 * it are encoded, and as these are written, the next tile begins.
 *
 * If the existing chunks of the source are known, tiles without any are skipped.  A chunk
 * all of whose cells were never written is not written either, if the new dataset has the
 * same fill value.  Elements beyond the edge of the array are fill value, as libhdf5 has
 * it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "base/pool.h"
#include "extent/file.h"
#include "tensors/boxes.h"
#include "tensors/rechunk/private.h"

/* Tiles that are listed, at most, in addition to two for each chunk of the source. */
#define TILES_LEAST 65536

struct job {
	struct making *tile;
	/* Number of the cell, in C order of the tile's cells. */
	uint64_t number;
};

/* A new chunk as it is stored. */
struct rechunk_encoded {
	struct build_chunk chunk;
	XXH128_hash_t hash; /* hash of the decoded chunk, if it is verified */
};
struct run {
	struct rechunk *w;
	struct pool *pool;
	uint64_t pitch[RANK_MAX]; /* bytes between neighbours in a new chunk */
	uint64_t cell[RANK_MAX];  /* shape of the cell of a job */
	uint64_t cost;            /* bytes of memory of a buffer */
	_Atomic bool failed;
	pthread_mutex_t lock; /* guards everything below, and the lists of w */
	pthread_cond_t freed;
	struct making *first, *last; /* tiles with chunks without a place */
	uint64_t in_flight;          /* bytes of buffers in use */
	uint64_t done;               /* bytes of the tensor that are done */
	int code;
	struct error why;
};
/* A new chunk in the making. */
struct piece {
	struct making *tile;
	struct buf *buf;          /* first decoded, then as it is stored */
	_Atomic uint64_t pending; /* cells that are not copied yet */
	_Atomic bool stored;      /* some of them are stored */
	struct rechunk_encoded is;
	/* Guarded by run.lock: */
	bool ready; /* encoded, or not needed: only writing may be left */
	struct piece *next;
};
/* A tile, until all of its chunks are written. */
struct making {
	struct run *run;
	struct making *next;
	struct box box; /* elements */
	/* The first new chunk along each axis, and how many. */
	uint64_t first[RANK_MAX], n[RANK_MAX];
	uint64_t first_cell[RANK_MAX], cells[RANK_MAX];
	uint64_t n_pieces, n_jobs;
	uint64_t placed; /* guarded by run.lock: pieces that had their turn */
	struct piece *pieces;
	struct job *jobs;
	/* References of jobs, of chunks being written, of the line, and of the thread
	 * that makes the tile. */
	_Atomic uint64_t refs;
};

static const struct grid *grid_of(const struct run *r)
{
	return &r->w->grid;
}

/* ---- failing ------------------------------------------------------------- */

static void rechunk_fail(struct run *r, int code, const struct error *why,
			 bool source)
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

static bool rechunk_is_over(struct run *r)
{
	const _Atomic int *stop = r->w->o->stop;

	return atomic_load(&r->failed) || (stop && atomic_load(stop));
}

static void rechunk_tile_put(struct making *t)
{
	if (atomic_fetch_sub(&t->refs, 1) != 1)
		return;
	free(t->pieces);
	free(t->jobs);
	free(t);
}

/* ---- one new chunk: encoded, written, read again ------------------------- */

/* Repeat the fill value's pattern over `n` bytes. */
static void rechunk_fill(unsigned char *to, size_t n, const struct fill *f)
{
	const unsigned char *pattern = f->pattern;
	size_t have = min_u64(f->width, n);

	if (f->width <= 1) {
		memset(to, f->width ? pattern[0] : 0, n);
		return;
	}
	memcpy(to, pattern, have);
	while (have < n) {
		size_t more = min_u64(have, n - have);

		memcpy(to + have, to, more);
		have += more;
	}
}

/* ---- encoding ------------------------------------------------------------ */

/* Copy the encoded chunk to the buffer that it had before, which is the memory it is
 * accounted for; or to a larger one if necessary. */
static int rechunk_keep_encoded(struct buf **data, const void *stored,
				size_t len, struct error *err)
{
	if (len > (*data)->size) {
		struct buf *more = buf_new(len, NULL);

		if (!more)
			return error_no_memory(err, "an encoded chunk");
		buf_unref(*data);
		*data = more;
	}
	memcpy((*data)->data, stored, len);
	return 0;
}

static int rechunk_run_filters(const struct rechunk *w, struct buf **data,
			       size_t *len, uint32_t *mask, struct error *err)
{
	size_t size = (*data)->size;
	struct buf *room = buf_new(pipeline_bound(&w->pipeline, size), NULL);
	int r;

	if (!room)
		return error_no_memory(err, "an encoded chunk");
	r = pipeline_encode(&w->pipeline, (*data)->data, size, room->data,
			    room->size, len, mask, err);
	if (r == 0 && *len > BUILD_CHUNK_MAX)
		r = error_set(err, -EINVAL,
			      "an encoded chunk has %zu bytes; HDF5 chunks "
			      "have less than 4 GiB",
			      *len);
	if (r == 0)
		r = rechunk_keep_encoded(data, room->data, *len, err);
	buf_unref(room);
	return r;
}

/* Replace the chunk in *data, which may become another buffer, by its stored form of
 * is->chunk.len bytes.  Any thread. */
static int rechunk_encode(const struct rechunk *w, struct buf **data,
			  struct rechunk_encoded *is, struct error *err)
{
	size_t len = (*data)->size;
	int r = 0;

	if (w->o->verify)
		is->hash = XXH3_128bits((*data)->data, len);
	if (w->pipeline.n)
		r = rechunk_run_filters(w, data, &len, &is->chunk.mask, err);
	is->chunk.len = (uint32_t)len;
	return r;
}

/* ---- writing ------------------------------------------------------------- */

/* Read a written chunk back, decode it and compare the hash. */
static int rechunk_check_written(const struct rechunk *w,
				 const struct rechunk_encoded *is,
				 struct error *err)
{
	const struct build_chunk *c = &is->chunk;
	size_t size = w->grid.chunk_bytes;
	cleanup_free unsigned char *back = malloc(size), *raw = malloc(c->len);
	ssize_t n;
	int r;

	if (!back || !raw)
		return error_no_memory(err, "a chunk that is read again");
	n = file_read(out_fd(w->out), c->pos, raw, c->len);
	if (n < 0)
		return error_errno(err, (int)n, "cannot read '%s' again",
				   w->o->path);
	r = pipeline_decode(&w->pipeline, c->mask, raw, (size_t)n, back, size,
			    err);
	if (r < 0 || !XXH128_isEqual(XXH3_128bits(back, size), is->hash))
		return error_set(
			err, -EIO,
			"'%s': chunk %llu differs from what was written: the "
			"disk or the memory of this machine is faulty",
			w->o->path, (unsigned long long)c->number);
	return 0;
}

/* Write an encoded chunk to its place; read it back if that is wanted.  Any thread. */
static int rechunk_write(struct rechunk *w, const void *stored,
			 const struct rechunk_encoded *is, struct error *err)
{
	int r = build_put_at(w->build, stored, is->chunk.len, is->chunk.pos,
			     err);

	return r == 0 && w->o->verify ? rechunk_check_written(w, is, err) : r;
}

/* ---- the line ------------------------------------------------------------ */

/*
 * Threads finish chunks in any order, but positions in the file are assigned in order of
 * tiles and, within a tile, of numbers, so that equal input gives equal bytes.  A chunk
 * that is encoded before its turn waits in the memory that it was made in.  The thread
 * that encodes the chunk that is next assigns positions to all chunks that can have one
 * now, and writes them.  Other threads do the same for the following ones meanwhile: only
 * assigning positions needs the lock.
 *
 * No thread waits: the first chunk of the line belongs to the oldest tile, whose jobs are
 * under way and have all the memory that they need.
 */
/* Put the chunks of a tile at the end of the line. */
static void rechunk_line_up(struct making *t)
{
	struct run *r = t->run;

	atomic_fetch_add(&t->refs, 1);
	lock_scope(&r->lock);
	if (r->first)
		r->last->next = t;
	else
		r->first = t;
	r->last = t;
}

static void piece_release(struct run *r, struct piece *p)
{
	bool had = p->buf;

	buf_unref(p->buf);
	p->buf = NULL;
	if (had) {
		lock_scope(&r->lock);
		r->in_flight -= r->cost;
		pthread_cond_broadcast(&r->freed);
	}
}

/* Assign positions to chunks whose turn it is.  Set *list to them, linked by `next`, each
 * with a reference to its tile.  The lock is held. */
static int give_places(struct run *r, struct piece **list, struct error *err)
{
	struct piece **end = list;
	struct making *t;
	int code = 0;

	*list = NULL;
	while ((t = r->first)) {
		struct piece *p = &t->pieces[t->placed];

		if (!p->ready)
			break;
		if (p->buf)
			code = build_place(r->w->build, p->is.chunk.len,
					   &p->is.chunk.pos, err);
		if (code < 0)
			break;
		if (p->buf) {
			atomic_fetch_add(&t->refs, 1);
			*end = p;
			end = &p->next;
			*end = NULL;
		}
		if (++t->placed == t->n_pieces) {
			r->first = t->next;
			rechunk_tile_put(t);
		}
	}
	return code;
}

static int piece_write(struct run *r, struct piece *p, struct error *err)
{
	int code = rechunk_write(r->w, p->buf->data, &p->is, err);

	if (code < 0)
		return code;
	lock_scope(&r->lock);
	r->w->chunk_bytes += p->is.chunk.len;
	return vec_push(&r->w->chunks, p->is.chunk)
		       ? 0
		       : error_no_memory(err, "the list of chunks");
}

static void piece_write_list(struct run *r, struct piece *list)
{
	while (list) {
		struct piece *p = list;
		struct error err = {0};

		list = p->next;
		if (!rechunk_is_over(r)) {
			int code = piece_write(r, p, &err);

			if (code < 0)
				rechunk_fail(r, code, &err, false);
		}
		piece_release(r, p);
		rechunk_tile_put(p->tile);
	}
}

/* All cells were copied to a chunk, and is.chunk.number is set: encode it, and write the
 * chunks that are next.  Any thread. */
static void rechunk_complete(struct piece *p)
{
	struct run *r = p->tile->run;
	struct error err = {0};
	struct piece *list;
	int code = 0;

	if (rechunk_is_over(r) ||
	    (!atomic_load(&p->stored) && r->w->fill.width))
		piece_release(r, p); /* it is not needed */
	else
		code = rechunk_encode(r->w, &p->buf, &p->is, &err);
	if (code < 0) {
		rechunk_fail(r, code, &err, false);
		piece_release(r, p);
	}
	pthread_mutex_lock(&r->lock);
	p->ready = true;
	code = give_places(r, &list, &err);
	pthread_mutex_unlock(&r->lock);
	if (code < 0)
		rechunk_fail(r, code, &err, false);
	piece_write_list(r, list);
}

/* Free chunks that were not written.  No other thread is left. */
static void rechunk_line_free(struct run *r)
{
	while (r->first) {
		struct making *t = r->first;

		r->first = t->next;
		for (uint64_t k = t->placed; k < t->n_pieces; k++)
			buf_unref(t->pieces[k].buf);
		rechunk_tile_put(t);
	}
}

/* ---- a cell -------------------------------------------------------------- */

/* Set *out to the intersection of two boxes.  Return false if it is empty. */
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

/* Set, along each axis, the first new chunk of the tile that a box touches, and their
 * number. */
static void tile_pieces_of(const struct making *t, const struct box *b,
			   uint64_t *first, uint64_t *n)
{
	const struct grid *g = grid_of(t->run);

	for (unsigned i = 0; i < g->rank; i++) {
		uint64_t last = (b->start[i] + b->count[i] - 1) / g->chunk[i];

		first[i] = b->start[i] / g->chunk[i] - t->first[i];
		n[i] = last - t->first[i] - first[i] + 1;
	}
}

/* A new chunk and its box. */
struct target {
	struct piece *piece;
	uint64_t number; /* number of the chunk in the grid */
	struct box box;  /* elements of the array in it */
};

/* Set *out to the chunk at these coordinates within the tile. */
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

/* Copy elements of a cell to one new chunk.  `stored`: some elements of the cell are
 * stored, but maybe not those that the chunk gets. */
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

static void piece_complete(void *arg)
{
	struct piece *p = arg;
	struct making *t = p->tile;

	rechunk_complete(p);
	rechunk_tile_put(t);
}

/* Complete a chunk in another thread, if one is free: the last cell of a tile completes
 * many chunks. */
static void complete_soon(struct run *r, const struct target *to)
{
	struct piece *p = to->piece;

	p->is.chunk.number = to->number;
	atomic_fetch_add(&p->tile->refs, 1);
	if (!pool_try_submit(r->pool, piece_complete, p))
		piece_complete(p);
}

/* Copy a cell to all new chunks that have elements of it. */
static void copy_cell(struct making *t, const struct box *cell, bool stored,
		      struct error *err)
{
	struct run *r = t->run;
	unsigned rank = grid_of(r)->rank;
	uint64_t first[RANK_MAX], n[RANK_MAX], at[RANK_MAX] = {0};
	struct target to;

	tile_pieces_of(t, cell, first, n);
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

/* Set *out to the elements of a cell that are in the tile. */
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

static void run_add_progress(struct run *r, uint64_t bytes)
{
	lock_scope(&r->lock);
	r->done += bytes;
	if (r->w->o->progress)
		r->w->o->progress(r->w->o->ctx, r->done);
}

static void tile_run_job(void *arg)
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
	run_add_progress(t->run,
			 box_elements(&cell, w->t->rank) * w->t->dtype.size);
	rechunk_tile_put(t);
}

/* ---- a tile -------------------------------------------------------------- */

static bool tile_make_piece(struct making *t, const uint64_t *at)
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

/* Allocate buffers and jobs.  Return false if there is no memory. */
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
		if (!tile_make_piece(t, at))
			return false;
	} while (grid_step(rank, at, t->n));
	return true;
}

/* Wait for room for `bytes` bytes, or until no buffer is in use.  Return false if the run
 * is over. */
static bool run_take_room(struct run *r, uint64_t bytes)
{
	lock_scope(&r->lock);
	while (!rechunk_is_over(r) && r->in_flight &&
	       (bytes > r->w->room || r->in_flight > r->w->room - bytes))
		pthread_cond_wait(&r->freed, &r->lock);
	r->in_flight += bytes;
	return !rechunk_is_over(r);
}

static int fail_no_memory(struct run *r)
{
	struct error err = {0};

	error_no_memory(&err, "the chunks in the making");
	rechunk_fail(r, -ENOMEM, &err, false);
	return -ENOMEM;
}

/* Free a tile whose jobs were not queued. */
static void tile_drop(struct making *t)
{
	for (uint64_t k = 0; t->pieces && k < t->n_pieces; k++)
		buf_unref(t->pieces[k].buf);
	rechunk_tile_put(t);
}

static void tile_place(struct making *t, const struct grid *tiles,
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

static int tile_start(struct run *r, const struct grid *tiles, uint64_t number)
{
	struct making *t = calloc(1, sizeof *t);

	if (!t)
		return fail_no_memory(r);
	t->run = r;
	atomic_init(&t->refs, 1);
	tile_place(t, tiles, number);
	if (!run_take_room(r, t->n_pieces * r->cost)) {
		rechunk_tile_put(t);
		return -EINTR;
	}
	if (!tile_fill(t)) {
		tile_drop(t);
		return fail_no_memory(r);
	}
	rechunk_line_up(t);
	for (uint64_t k = 0; k < t->n_jobs; k++) {
		atomic_fetch_add(&t->refs, 1);
		pool_submit(r->pool, tile_run_job, &t->jobs[k]);
	}
	rechunk_tile_put(t);
	return 0;
}

/* Make a grid whose chunks are the tiles. */
static int tile_grid(const struct run *r, struct grid *out, struct error *err)
{
	const struct grid *g = grid_of(r);
	uint64_t extent[RANK_MAX];

	for (unsigned i = 0; i < g->rank; i++)
		if (mul_overflows(r->w->plan.tile[i], g->chunk[i], &extent[i]))
			extent[i] = g->shape[i];
	return grid_init(out, g->rank, g->shape, extent, g->elem) < 0
		       ? error_set(err, -EINVAL,
				   "%s: a tile would have more than 2^64 bytes",
				   r->w->t->name)
		       : 0;
}

/* Process the listed tiles, in which something was written.  All others count as done. */
static void run_written_tiles(struct run *r, const struct grid *tiles,
			      const uint64_t *number, uint64_t n)
{
	uint64_t rest = grid_of(r)->elem;
	struct making t = {.run = r};

	for (unsigned i = 0; i < tiles->rank; i++)
		rest *= tiles->shape[i];
	for (uint64_t i = 0; i < n; i++) {
		tile_place(&t, tiles, number[i]);
		rest -= box_elements(&t.box, tiles->rank) * tiles->elem;
	}
	run_add_progress(r, rest);
	for (uint64_t i = 0; i < n && !rechunk_is_over(r); i++)
		if (tile_start(r, tiles, number[i]) < 0)
			break;
}

static int run_tiles(struct run *r, struct error *err)
{
	const struct rechunk_written *w = &r->w->written;
	uint64_t n, most = 2 * w->chunks.room + TILES_LEAST;
	cleanup_free uint64_t *some = NULL;
	struct grid tiles;
	int code = tile_grid(r, &tiles, err);

	if (code == 0 && w->known)
		code = rechunk_written_boxes(w, &tiles, most, &some, &n, err);
	if (code == 1)
		run_written_tiles(r, &tiles, some, n);
	for (uint64_t i = 0; code == 0 && i < tiles.count; i++)
		if (rechunk_is_over(r) || tile_start(r, &tiles, i) < 0)
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
	code = w->grid.count ? run_tiles(&r, err) : 0;
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
