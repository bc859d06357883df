/* SPDX-License-Identifier: BSD-2-Clause */
/* Old chunks become new ones: decode, distribute, encode, write, by all threads. */

/*
 *   main thread   tile by tile: as soon as there is room for all of its chunks,
 *                 a buffer for each, and a job for each cell of the source in it
 *   a job         holds its cell (so that it is decoded once), copies what each new
 *                 chunk gets of it; when the last cell of a chunk was brought, it is
 *                 encoded by whoever has time, and written in its turn
 *                 (the line, below)
 *
 * So there is no barrier: while the last cells of one tile are decoded, chunks of it that
 * are complete are encoded, and as these go, the next tile begins.
 *
 * Tiles in which nothing was written are left out, where it is known which chunks of the
 * source there are.  A chunk all of whose cells were never written is not written either, if the new dataset
 * has the same fill value.  Elements beyond the edge of the array are fill value, as the
 * library has it.
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

/* Numbers of tiles that are listed, beside two for each chunk of the source. */
#define TILES_LEAST 65536

struct job {
	struct making *tile;
	uint64_t number; /* of the cell, in C order of those in the tile */
};

/* A new chunk as it is stored. */
struct rechunk_encoded {
	struct build_chunk chunk;
	XXH128_hash_t hash; /* of what is in it, if that is compared again */
};
struct run {
	struct rechunk *w;
	struct pool *pool;
	uint64_t pitch[RANK_MAX]; /* of a new chunk */
	uint64_t cell[RANK_MAX];  /* of jobs */
	uint64_t cost;            /* of a buffer */
	_Atomic bool failed;
	pthread_mutex_t lock; /* all below, and the lists of w */
	pthread_cond_t freed;
	struct making *first,
		*last;      /* tiles with chunks that have no place yet */
	uint64_t in_flight; /* bytes of buffers */
	uint64_t done;      /* bytes of the tensor */
	int code;
	struct error why;
};
/* A new chunk in the making. */
struct piece {
	struct making *tile;
	struct buf *buf;          /* decoded, then as it is stored */
	_Atomic uint64_t pending; /* cells that are not in it yet */
	_Atomic bool stored;      /* some of them are stored */
	struct rechunk_encoded is;
	/* With the lock: */
	bool ready; /* nothing has to be done but writing it, or not even that */
	struct piece *next;
};
/* A tile, until all of its chunks have gone. */
struct making {
	struct run *run;
	struct making *next;
	struct box box;                        /* elements */
	uint64_t first[RANK_MAX], n[RANK_MAX]; /* new chunks along each axis */
	uint64_t first_cell[RANK_MAX], cells[RANK_MAX];
	uint64_t n_pieces, n_jobs;
	uint64_t placed; /* with the lock: pieces whose turn was */
	struct piece *pieces;
	struct job *jobs;
	/* Jobs, chunks that are written, the line, and whoever makes them. */
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

/* Where it was before it was encoded, for that counts as its memory. */
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
			      "a chunk takes %zu bytes; HDF5 has less than 4 "
			      "GiB",
			      *len);
	if (r == 0)
		r = rechunk_keep_encoded(data, room->data, *len, err);
	buf_unref(room);
	return r;
}

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

/* What was written, once more: read, decoded, compared. */
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
		return error_set(err, -EIO,
				 "'%s': chunk %llu is not what was written: "
				 "the disk or the memory of this machine is "
				 "bad",
				 w->o->path, (unsigned long long)c->number);
	return 0;
}

static int rechunk_write(struct rechunk *w, const void *stored,
			 const struct rechunk_encoded *is, struct error *err)
{
	int r = build_put_at(w->build, stored, is->chunk.len, is->chunk.pos,
			     err);

	return r == 0 && w->o->verify ? rechunk_check_written(w, is, err) : r;
}

/* ---- the line ------------------------------------------------------------ */

/*
 * Threads finish chunks in any order, but places are given in one: that of tiles, and in a
 * tile that of numbers.  So the same work gives the same bytes.  A chunk that is encoded
 * before its turn waits in the memory that it had when it was not; whoever encodes the one
 * that all wait for gives places to all that can have one now, and writes them.  Others do
 * the same for those behind meanwhile: only giving places needs the lock.
 *
 * Nobody waits: the first chunk of the line belongs to the oldest tile, whose jobs are
 * under way, with all memory that they need.
 */
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

/* With the lock: those whose turn it is, by `next`, each with a reference to its tile. */
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

static void rechunk_complete(struct piece *p)
{
	struct run *r = p->tile->run;
	struct error err = {0};
	struct piece *list;
	int code = 0;

	if (rechunk_is_over(r) ||
	    (!atomic_load(&p->stored) && r->w->fill.width))
		piece_release(r, p); /* nobody wants it */
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

static void piece_complete(void *arg)
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
	if (!pool_try_submit(r->pool, piece_complete, p))
		piece_complete(p);
}

/* To all new chunks that have something of it. */
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
		if (!tile_make_piece(t, at))
			return false;
	} while (grid_step(rank, at, t->n));
	return true;
}

/* Wait for room for so many bytes, or for all there is.  False: it is over. */
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

/* What was made of a tile that has no jobs. */
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
