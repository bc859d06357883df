/* SPDX-License-Identifier: BSD-2-Clause */
/* Make one chunk of the output: copy it as it is stored, or read and encode it. */

/*
 *   a chunk of one part            -> its stored bytes, copied by the kernel
 *   never written, and the part    -> nothing
 *     has the same fill values
 *   anything else                  -> read as a mount reads it, and encoded
 *
 * A chunk that extends beyond the edge of the dataset is stored whole.  So a part's last
 * chunk fits if the dataset ends where the part does.  The smaller block at the end of a
 * tensor in blocks has chunks of another shape, and is encoded.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "tensors/boxes.h"
#include "tensors/merge/private.h"

/* ---- buffers ------------------------------------------------------------- */

/* Pairs of buffers: their number limits how many chunks are encoded at once. */
struct merge_pool {
	pthread_mutex_t lock;
	pthread_cond_t given; /* signalled when `free` grows */
	unsigned free;
	size_t plain, coded;
	vec(struct merge_buffers) v;
};

int merge_pool_new(struct merge_pool **out, const struct merge *m,
		   struct error *err)
{
	struct merge_pool *p = calloc(1, sizeof *p);
	uint64_t pairs;

	if (!p)
		return error_no_memory(err, "buffers of chunks");
	for (size_t i = 0; i < m->streams.n; i++) {
		const struct stream *s = &m->streams.at[i];
		size_t n = (size_t)s->grid.chunk_bytes;

		p->plain = max_u64(p->plain, n);
		p->coded = max_u64(p->coded, pipeline_bound(&s->pipeline, n));
	}
	pairs = m->o.memory / 2 / max_u64(p->plain + 2 * p->coded, 1);
	p->free = (unsigned)min_u64(max_u64(pairs, 1), m->o.threads);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->given, NULL);
	*out = p;
	return 0;
}

/* Take a free pair of buffers; blocks until there is one.  Buffers that are NULL have to
 * be allocated by the caller. */
static void pool_take(struct merge_pool *p, struct merge_buffers *b)
{
	lock_scope(&p->lock);
	while (!p->free)
		pthread_cond_wait(&p->given, &p->lock);
	p->free--;
	*b = p->v.n ? p->v.at[--p->v.n] : (struct merge_buffers){NULL, NULL};
}

static void pool_give(struct merge_pool *p, struct merge_buffers *b)
{
	lock_scope(&p->lock);
	if (!vec_push(&p->v, *b)) {
		free(b->plain);
		free(b->coded);
	}
	p->free++;
	pthread_cond_signal(&p->given);
}

void merge_pool_free(struct merge_pool *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->v.n; i++) {
		free(p->v.at[i].plain);
		free(p->v.at[i].coded);
	}
	vec_free(&p->v);
	pthread_cond_destroy(&p->given);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* ---- encoded ------------------------------------------------------------- */

/* Fill n bytes with copies of the fill value. */
static void fill_with(const struct fill *f, unsigned char *out, size_t n)
{
	size_t have = min_u64(f->width, n);

	memcpy(out, f->pattern, have);
	while (have < n) {
		size_t more = min_u64(have, n - have);

		memcpy(out + have, out, more);
		have += more;
	}
}

static bool is_fill(const struct fill *f, const unsigned char *data, size_t n)
{
	size_t w = f->width;

	return n >= w && !memcmp(data, f->pattern, w) &&
	       !memcmp(data, data + w, n - w);
}

static int chunk_read_box(struct merge *m, struct stream *s,
			  const struct box *b, unsigned char *out,
			  struct error *err)
{
	uint64_t pitch[RANK_MAX], step = s->grid.elem;
	bool whole = true;

	for (unsigned i = s->grid.rank; i-- > 0;) {
		pitch[i] = step;
		step *= s->grid.chunk[i];
		whole = whole && b->count[i] == s->grid.chunk[i];
	}
	if (!whole)
		fill_with(&s->t->fill, out, s->grid.chunk_bytes);
	return box_read_into(m->store, s->t, b, out, pitch, err);
}

static int put_encoded(struct merge *m, struct stream *s,
		       struct merge_buffers *buf, struct build_chunk *out,
		       struct error *err)
{
	size_t n = (size_t)s->grid.chunk_bytes, len = n;
	uint32_t mask = 0;
	int r = 0;

	if (s->unfiltered)
		mask = s->pipeline.n == 32 ? UINT32_MAX
					   : (UINT32_C(1) << s->pipeline.n) - 1;
	else if (s->pipeline.n)
		r = pipeline_encode(&s->pipeline, buf->plain, n, buf->coded,
				    pipeline_bound(&s->pipeline, n), &len,
				    &mask, err);
	if (r == 0 && len > BUILD_CHUNK_MAX)
		r = error_set(err, -EFBIG,
			      "%s: an encoded chunk has 4 GiB or more: choose "
			      "smaller chunks with --chunk",
			      s->t->name);
	if (r == 0)
		r = build_put(m->b,
			      s->unfiltered || !s->pipeline.n ? buf->plain
							      : buf->coded,
			      len, &out->pos, err);
	out->len = (uint32_t)len;
	out->mask = mask;
	return r;
}

static int chunk_encode(struct merge_worker *w, struct stream *s,
			const struct box *b, struct build_chunk *out,
			struct error *err)
{
	struct merge *m = w->m;
	struct merge_buffers buf;
	int r;

	pool_take(w->pool, &buf);
	if (!buf.plain)
		buf.plain = malloc(max_u64(w->pool->plain, 1));
	if (!buf.coded)
		buf.coded = malloc(max_u64(w->pool->coded, 1));
	r = buf.plain && buf.coded ? chunk_read_box(m, s, b, buf.plain, err)
				   : error_no_memory(err, "a chunk to encode");
	if (r == 0 && (m->rehearsal ||
		       is_fill(&s->t->fill, buf.plain, s->grid.chunk_bytes)))
		out->len = 0;
	else if (r == 0)
		r = put_encoded(m, s, &buf, out, err);
	pool_give(w->pool, &buf);
	if (r == 0)
		atomic_fetch_add(
			out->len ? &w->counts->encoded : &w->counts->empty, 1);
	return r;
}

/* ---- copied -------------------------------------------------------------- */

/* Find where chunk `number` of part p is stored.  Locations are asked for in runs, the
 * last of which is kept in `w`. */
static int chunk_locate(struct merge_worker *w, struct tensor *t, uint32_t p,
			const struct layout *l, uint64_t number,
			struct location *out, struct error *err)
{
	int r = 0;

	if (w->t != t || w->part != p || number < w->first ||
	    number - w->first >= w->n) {
		uint64_t first = number - number % TENSOR_SEGMENT;
		uint32_t n = (uint32_t)min_u64(TENSOR_SEGMENT,
					       l->grid->count - first);

		w->t = NULL;
		r = t->ops->locate(t, p, l, first, n, w->where, err);
		if (r < 0)
			return r;
		w->t = t;
		w->part = p;
		w->first = first;
		w->n = n;
	}
	*out = w->where[number - w->first];
	return 0;
}

/* Return the number of the chunk that is exactly box `b` of the part, padding aside;
 * UINT64_MAX if there is no such chunk. */
static uint64_t chunk_of_box(const struct grid *g, const struct box *b)
{
	uint64_t number = 0;

	for (unsigned i = 0; i < g->rank; i++) {
		if (b->start[i] % g->chunk[i] || b->count[i] > g->chunk[i] ||
		    (b->count[i] < g->chunk[i] &&
		     b->start[i] + b->count[i] != g->shape[i]))
			return UINT64_MAX;
		number = number * g->chunks[i] + b->start[i] / g->chunk[i];
	}
	return number;
}

/* Return true if both boxes have the same elements in the same order, axis by axis.  Axes
 * along which chunks have one element may be in one of the two only.  check.c has found
 * the chunks to be alike. */
static bool boxes_alike(const struct grid *g, const struct box *a,
			const struct grid *h, const struct box *b)
{
	unsigned k = 0;

	for (unsigned i = 0; i < g->rank; i++) {
		if (g->chunk[i] == 1)
			continue;
		while (h->chunk[k] == 1)
			k++;
		if (a->count[i] != b->count[k++])
			return false;
	}
	return true;
}

static bool same_fill(const struct fill *a, const struct fill *b, size_t elem)
{
	unsigned char x[256], y[256];

	if (a->pattern == b->pattern && a->width == b->width)
		return true;
	if (elem > sizeof x)
		return false;
	fill_with(a, x, elem);
	fill_with(b, y, elem);
	return !memcmp(x, y, elem);
}

static int chunk_copy_stored(struct merge_worker *w, struct stream *s,
			     uint32_t file, const struct location *at,
			     struct build_chunk *out, struct error *err)
{
	struct merge *m = w->m;
	struct handle pin;
	int r;

	if (at->stored == 0 || at->stored > BUILD_CHUNK_MAX ||
	    at->mask > UINT32_MAX)
		return error_set(err, -EBADMSG,
				 "%s: %s has a stored chunk of %" PRIu64
				 " bytes, which no chunk can have",
				 s->t->name, handles_name(m->handles, file),
				 at->stored);
	r = handles_get(m->handles, file, &pin, err);
	if (r < 0)
		return r;
	r = build_copy(m->b, pin.fd, pin.base + at->pos, (size_t)at->stored,
		       &out->pos, err);
	if (r == -ENODATA)
		error_prefix(err, "%s: ", handles_name(m->handles, file));
	if (r == 0)
		r = handles_check(m->handles, &pin, err);
	handles_put(m->handles, &pin);
	out->len = (uint32_t)at->stored;
	out->mask = (uint32_t)at->mask;
	if (r == 0)
		atomic_fetch_add(&w->counts->copied, 1);
	return r;
}

/* Copy the chunk from part p: 0, or 1 if it is not a stored chunk of that part. */
static int chunk_copy(struct merge_worker *w, struct stream *s, uint32_t p,
		      const struct box *b, const struct box *from,
		      struct build_chunk *out, struct error *err)
{
	struct tensor *t = s->t;
	const struct layout *l = atomic_load(&t->parts[p].layout);
	struct location at = s->part[p].only;
	uint64_t number;
	int r = 0;

	if (!s->part[p].raw || !l || !boxes_alike(&s->grid, b, l->grid, from))
		return 1;
	number = chunk_of_box(l->grid, from);
	if (number == UINT64_MAX)
		return 1;
	if (at.pos == MERGE_UNKNOWN)
		r = chunk_locate(w, t, p, l, number, &at, err);
	if (r < 0)
		return r;
	if (at.pos == UINT64_MAX) {
		if (l->by_library ||
		    !same_fill(&l->fill, &t->fill, s->grid.elem))
			return 1;
		out->len = 0;
		atomic_fetch_add(&w->counts->empty, 1);
		return 0;
	}
	if (w->m->rehearsal)
		return 0;
	/* The index says that such a chunk is filtered, but it is not. */
	if (l->raw_edges && grid_is_partial(l->grid, number))
		at.mask = s->pipeline.n == 32
				  ? UINT32_MAX
				  : (UINT64_C(1) << s->pipeline.n) - 1;
	return chunk_copy_stored(w, s, l->file, &at, out, err);
}

/* ---- either -------------------------------------------------------------- */

static void box_of_chunk(const struct grid *g, uint64_t number, struct box *b)
{
	grid_origin(g, number, b->start);
	for (unsigned i = 0; i < g->rank; i++)
		b->count[i] = min_u64(g->chunk[i], g->shape[i] - b->start[i]);
}

int merge_chunk(struct merge_worker *w, uint32_t stream, uint64_t number,
		struct build_chunk *out, struct error *err)
{
	struct stream *s = &w->m->streams.at[stream];
	struct mosaic_piece piece;
	int64_t part;
	uint64_t all;
	struct box b;
	int r;

	*out = (struct build_chunk){.number = number};
	box_of_chunk(&s->grid, number, &b);
	all = box_elements(&b, s->grid.rank);
	r = tensor_find(s->t, &b, 0, &part, &piece, err);
	if (r < 0)
		return r;
	if (part < 0 && piece.run == all) {
		atomic_fetch_add(&w->counts->empty, 1);
		return 0; /* a gap between parts */
	}
	r = 1;
	if (part >= 0 && piece.run == all && piece.skip == 0)
		r = chunk_copy(w, s, (uint32_t)part, &b, &piece.from, out, err);
	return r == 1 ? chunk_encode(w, s, &b, out, err) : r;
}
