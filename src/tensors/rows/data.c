/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows into chunks: read in strips, encoded by all threads, written in order. */

/*
 * A strip is as many layers of chunks as there is memory for; its rows are read at once,
 * in order.
 *
 *	strip     | rows of the input, in the file's byte order               |
 *	slots     chunk, chunk, chunk ...    made by threads: elements are gathered (over the
 *	                                     old ones, in a chunk that keeps some of its
 *	                                     rows) and encoded
 *	libhdf5   H5Dwrite_chunk             by this thread, in order of the grid
 *
 * A chunk that lies in the strip as it should be stored is encoded from there.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/copies.h"
#include "base/number.h"
#include "base/pool.h"
#include "formats/hdf5/chunk/chunk.h"
#include "formats/hdf5/file/driver.h"
#include "tensors/rows/private.h"

#define STRIP_MOST (UINT64_C(64) << 20)
/* Locations of old chunks that are looked up at a time. */
#define LOCATIONS 512

struct slot {
	struct row_strip *strip;
	uint64_t number; /* number of the chunk */
	/* Where the old chunk is, if rows of it are kept. */
	struct location old;
	unsigned char *plain;  /* buffer for the elements */
	unsigned char *stored; /* buffer for the encoded chunk */
	const void *out;       /* the `len` bytes to write */
	size_t len;
	uint32_t mask;
	bool done; /* this and what follows is guarded by strip->lock */
	int code;
	struct error err;
};
struct row_strip {
	struct writer *w;
	hid_t dset;
	bool all_at_once;
	struct pool *pool;
	unsigned n_slots;
	struct slot *slots;
	size_t cap; /* bytes of slot.stored */
	unsigned char *rows;
	uint64_t first, end; /* the rows in `rows`: [first, end) */
	uint64_t per_layer;  /* chunks of a layer */
	uint64_t layers;     /* layers of a strip, at most */
	uint64_t located;    /* first chunk in `old`; UINT64_MAX: none */
	uint32_t n_located;
	struct location *old; /* [LOCATIONS] */
	pthread_mutex_t lock;
	pthread_cond_t ready;
};

/* ---- one chunk, by any thread ------------------------------------------------ */

/* Set *b to the elements of the array in a chunk. */
static void chunk_box(const struct grid *g, uint64_t number, struct box *b)
{
	grid_origin(g, number, b->start);
	for (unsigned i = 0; i < g->rank; i++)
		b->count[i] = min_u64(g->chunk[i], g->shape[i] - b->start[i]);
}

/* Set all of a chunk to the fill value. */
static void fill_chunk(const struct writer *w, unsigned char *to)
{
	uint64_t n = w->grid.chunk_bytes;

	if (!w->d.fill_size) {
		memset(to, 0, n);
		return;
	}
	for (uint64_t at = 0; at < n; at += w->d.fill_size)
		memcpy(to + at, w->d.fill, min_u64(w->d.fill_size, n - at));
}

static int load_old(struct slot *s, struct error *err)
{
	struct writer *w = s->strip->w;
	uint64_t size = w->grid.chunk_bytes;
	cleanup_free void *stored = NULL;
	int r;

	if (s->old.pos == UINT64_MAX) {
		fill_chunk(w, s->plain);
		return 0;
	}
	if (s->old.stored > 2 * size + 65536)
		return error_set(
			err, -EBADMSG,
			"chunk %" PRIu64 " of '%s' has %" PRIu64
			" stored bytes, which is too many: the file is damaged",
			s->number, w->rows->path, s->old.stored);
	stored = malloc(s->old.stored ? s->old.stored : 1);
	if (!stored)
		return error_no_memory(err, "a chunk that keeps rows");
	r = handles_read(w->source.handles, w->source.file, s->old.pos, stored,
			 s->old.stored, err);
	if (r == 0)
		r = pipeline_decode(&w->d.pipeline, (uint32_t)s->old.mask,
				    stored, s->old.stored, s->plain, size, err);
	return r < 0 ? error_prefix(err,
				    "'%s': chunk %" PRIu64
				    ", some rows of which are kept: ",
				    w->rows->path, s->number)
		     : 0;
}

/* Copy elements of rows [first, end) from the strip to the chunk `b`. */
static void slot_gather(const struct slot *s, const struct box *b,
			uint64_t first, uint64_t end)
{
	const struct row_strip *strip = s->strip;
	const struct grid *g = &strip->w->grid;
	size_t in = g->elem, out = g->elem, from = 0, to;
	struct copy_axis a[RANK_MAX];

	for (unsigned i = g->rank; i-- > 1;) {
		a[i] = (struct copy_axis){b->count[i], out, in};
		from += b->start[i] * in;
		in *= g->shape[i];
		out *= g->chunk[i];
	}
	a[0] = (struct copy_axis){end - first, out, in};
	from += (first - strip->first) * in;
	to = (first - b->start[0]) * out;
	copy_box(s->plain + to, strip->rows + from, a, g->rank, g->elem);
}

/* Return the chunk's elements if they lie in the strip as they are to be stored, or
 * NULL. */
static const unsigned char *lies_there(const struct row_strip *strip,
				       const struct box *b)
{
	const struct grid *g = &strip->w->grid;

	if (b->count[0] != g->chunk[0])
		return NULL;
	for (unsigned i = 1; i < g->rank; i++)
		if (g->chunk[i] != g->shape[i])
			return NULL;
	return strip->rows + (b->start[0] - strip->first) * strip->w->row_bytes;
}

static int make_chunk(struct slot *s, struct error *err)
{
	struct row_strip *strip = s->strip;
	const struct grid *g = &strip->w->grid;
	const unsigned char *plain = NULL;
	uint64_t first, end;
	struct box b;
	bool whole;
	int r = 0;

	chunk_box(g, s->number, &b);
	first = max_u64(b.start[0], strip->first);
	end = min_u64(b.start[0] + b.count[0], strip->end);
	whole = end - first == b.count[0];
	if (whole)
		plain = lies_there(strip, &b);
	if (!plain) {
		if (!whole)
			r = load_old(s, err);
		else if (box_elements(&b, g->rank) * g->elem < g->chunk_bytes)
			fill_chunk(strip->w, s->plain);
		if (r < 0)
			return r;
		slot_gather(s, &b, first, end);
		plain = s->plain;
	}
	s->out = plain;
	s->len = g->chunk_bytes;
	s->mask = 0;
	if (!strip->w->d.pipeline.n)
		return 0;
	s->out = s->stored;
	r = pipeline_encode(&strip->w->d.pipeline, plain, g->chunk_bytes,
			    s->stored, strip->cap, &s->len, &s->mask, err);
	return r;
}

static void chunk_job(void *arg)
{
	struct slot *s = arg;
	int r = make_chunk(s, &s->err);
	lock_scope(&s->strip->lock);

	s->code = r;
	s->done = true;
	pthread_cond_signal(&s->strip->ready);
}

/* ---- all chunks of a strip -------------------------------------------------------- */

static int slot_wait(struct slot *s, struct error *err)
{
	lock_scope(&s->strip->lock);

	while (!s->done)
		pthread_cond_wait(&s->strip->ready, &s->strip->lock);
	if (s->code < 0)
		*err = s->err;
	return s->code;
}

/* Are all chunks allocated when the first one is written? */
static bool allocates_all(hid_t dset)
{
	hid_t dcpl = H5Dget_create_plist(dset);
	H5D_alloc_time_t when = H5D_ALLOC_TIME_EARLY;

	if (dcpl >= 0) {
		H5Pget_alloc_time(dcpl, &when);
		H5Pclose(dcpl);
	}
	return when != H5D_ALLOC_TIME_INCR;
}

/*
 * If a chunk has the length of the old one, libhdf5 writes it in place and leaves the old
 * filter mask in the index.  Writing a chunk of another length first makes it forget the
 * mask.  The library's lock is held.
 */
static bool forget_mask(const struct row_strip *strip, const hsize_t *offset,
			size_t len)
{
	static const unsigned char nothing[2];
	hsize_t old = 0;

	if (!strip->w->d.pipeline.n)
		return true;
	if (H5Dget_chunk_storage_size(strip->dset, offset, &old) < 0)
		old = 0; /* it was never written */
	if (old != len && !(old == 0 && strip->all_at_once))
		return true;
	return H5Dwrite_chunk(strip->dset, H5P_DEFAULT, 0, offset,
			      len == 1 ? 2 : 1, nothing) >= 0;
}

static int slot_store(struct slot *s, struct error *err)
{
	struct writer *w = s->strip->w;
	uint64_t origin[RANK_MAX];
	hsize_t offset[RANK_MAX];
	int r = slot_wait(s, err);

	if (r < 0)
		return r;
	grid_origin(&w->grid, s->number, origin);
	for (unsigned i = 0; i < w->d.own_rank; i++)
		offset[i] = origin[i];
	hdf5_lock();
	if (!forget_mask(s->strip, offset, s->len) ||
	    H5Dwrite_chunk(s->strip->dset, H5P_DEFAULT, s->mask, offset, s->len,
			   s->out) < 0)
		r = write_failed(w, "a chunk", err);
	hdf5_unlock();
	return r;
}

/* Look up the old chunk, if the new one keeps rows of it. */
static int locate_old(struct row_strip *strip, struct slot *s,
		      struct error *err)
{
	const struct grid *g = &strip->w->grid;
	struct box b;
	uint64_t n = 0;
	int r;

	chunk_box(g, s->number, &b);
	if (b.start[0] >= strip->first && b.start[0] + b.count[0] <= strip->end)
		return 0;
	if (strip->located > s->number ||
	    s->number - strip->located >= strip->n_located) {
		strip->n_located =
			(uint32_t)min_u64(LOCATIONS, g->count - s->number);
		r = hdf5_locate_here(&strip->w->at, g, s->number,
				     strip->n_located, &n, strip->old, err);
		if (r < 0) {
			strip->n_located = 0;
			return r;
		}
		strip->located = s->number;
	}
	s->old = strip->old[s->number - strip->located];
	return 0;
}

/* Make and write chunks [from, to).  The slots are used as a ring. */
static int store_all(struct row_strip *strip, uint64_t from, uint64_t to,
		     struct error *err)
{
	uint64_t next = from, done = from;
	int r = 0;

	while (done < to && r == 0) {
		while (next < to && next - done < strip->n_slots && r == 0) {
			struct slot *s =
				&strip->slots[(next - from) % strip->n_slots];

			s->number = next;
			s->done = false;
			s->err.code = 0;
			r = locate_old(strip, s, err);
			if (r == 0) {
				pool_submit(strip->pool, chunk_job, s);
				next++;
			}
		}
		if (r == 0)
			r = slot_store(
				&strip->slots[(done - from) % strip->n_slots],
				err);
		if (r == 0)
			done++;
		if (r == 0 && *strip->w->o->stop)
			r = error_set(err, -EINTR, "interrupted");
	}
	pool_drain(strip->pool);
	return r;
}

static int write_strip(struct row_strip *strip, struct error *err)
{
	struct writer *w = strip->w;
	uint64_t rows = strip->end - strip->first, layer = w->grid.chunk[0];
	int r = write_read_rows(w, strip->first, rows, strip->rows, err);

	if (r == 0)
		r = store_all(strip, strip->first / layer * strip->per_layer,
			      div_up(strip->end, layer) * strip->per_layer,
			      err);
	if (r == 0)
		atomic_fetch_add(w->o->done, rows * w->row_bytes);
	return r;
}

/* ---- memory ------------------------------------------------------------------ */

/* Divide the memory between the strip and the slots.  A slot takes four times the size of
 * a chunk: elements, the encoded chunk, an old chunk as stored, and scratch of the
 * codecs. */
static int strip_share_memory(struct row_strip *strip, struct error *err)
{
	struct writer *w = strip->w;
	uint64_t chunk = w->grid.chunk_bytes, layer, most, slots;
	uint64_t have = w->o->memory, each = 4 * chunk + (UINT64_C(1) << 16);

	if (mul_overflows(min_u64(w->grid.chunk[0], w->rows->rows),
			  w->row_bytes, &layer) ||
	    layer > SIZE_MAX / 4 || layer + each > have)
		return error_set(
			err, -ENOMEM,
			"'%s': chunks of %" PRIu64 " bytes, %" PRIu64
			" of them side by side, take more than %" PRIu64
			" bytes of memory: raise --memory",
			w->rows->path, chunk, strip->per_layer, have);
	most = min_u64(have / 2, max_u64(STRIP_MOST, layer));
	strip->layers = max_u64(most / max_u64(layer, 1), 1);
	slots = min_u64(2 * (uint64_t)w->o->threads,
			(have - strip->layers * layer) / each);
	strip->n_slots = (unsigned)max_u64(
		min_u64(slots, strip->layers * strip->per_layer), 1);
	return 0;
}

static int strip_make_buffers(struct row_strip *strip, struct error *err)
{
	struct writer *w = strip->w;
	uint64_t rows =
		min_u64(w->rows->rows, strip->layers * w->grid.chunk[0]);

	strip->cap = pipeline_bound(&w->d.pipeline, w->grid.chunk_bytes);
	strip->rows = malloc(max_u64(rows * w->row_bytes, 1));
	strip->old = malloc(LOCATIONS * sizeof *strip->old);
	strip->slots = calloc(strip->n_slots, sizeof *strip->slots);
	if (!strip->rows || !strip->old || !strip->slots)
		return error_no_memory(err, "the chunks to be written");
	for (unsigned i = 0; i < strip->n_slots; i++) {
		struct slot *s = &strip->slots[i];

		s->strip = strip;
		s->plain = malloc(w->grid.chunk_bytes);
		s->stored = malloc(strip->cap);
		if (!s->plain || !s->stored)
			return error_no_memory(err, "the chunks to be written");
	}
	return 0;
}

static void strip_free_buffers(struct row_strip *strip)
{
	for (unsigned i = 0; strip->slots && i < strip->n_slots; i++) {
		free(strip->slots[i].plain);
		free(strip->slots[i].stored);
	}
	free(strip->slots);
	free(strip->rows);
	free(strip->old);
}

/* ---- all of it --------------------------------------------------------------- */

static int write_strips(struct row_strip *strip, struct error *err)
{
	struct writer *w = strip->w;
	uint64_t layer = w->grid.chunk[0], at = w->rows->first;
	uint64_t end = at + w->rows->rows;
	int r = 0;

	while (at < end && r == 0) {
		strip->first = at;
		/* The first strip ends where a layer does. */
		strip->end = min_u64(end, (at / layer + strip->layers) * layer);
		at = strip->end;
		r = write_strip(strip, err);
	}
	return r;
}

static int write_chunks(struct writer *w, hid_t dset, struct error *err)
{
	struct row_strip strip = {.w = w,
				  .dset = dset,
				  .per_layer =
					  w->grid.count / w->grid.chunks[0],
				  .located = UINT64_MAX,
				  .lock = PTHREAD_MUTEX_INITIALIZER,
				  .ready = PTHREAD_COND_INITIALIZER};
	int r = strip_share_memory(&strip, err);

	hdf5_lock();
	strip.all_at_once = allocates_all(dset);
	hdf5_unlock();
	if (r == 0)
		r = strip_make_buffers(&strip, err);
	if (r == 0)
		r = pool_new(&strip.pool, "encode",
			     (unsigned)min_u64(w->o->threads, strip.n_slots),
			     strip.n_slots, err);
	if (r == 0)
		r = write_strips(&strip, err);
	pool_free(strip.pool);
	strip_free_buffers(&strip);
	return r;
}

int write_data(struct writer *w, struct error *err)
{
	struct error cannot = {0};
	bool ours = w->d.storage == HDF5_CHUNKED && !w->d.raw_edges &&
		    pipeline_cannot_encode(&w->d.pipeline, &cannot) == 0;
	hid_t dset;
	int r;

	if (!w->rows->rows)
		return 0;
	hdf5_lock();
	r = write_open_dataset(w, w->rows->data, &dset, err);
	hdf5_unlock();
	if (r < 0)
		return r;
	r = ours ? write_chunks(w, dset, err) : write_data_plain(w, dset, err);
	hdf5_lock();
	if (H5Dclose(dset) < 0 && r == 0)
		r = write_failed(w, "the data", err);
	hdf5_unlock();
	return r;
}
