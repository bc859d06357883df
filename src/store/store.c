/* SPDX-License-Identifier: BSD-2-Clause */
/* Turn extents into bytes that stay in place while they are pinned: the store's
 * facade. */
/*
 * A chunk goes one of four ways, tried in this order:
 *
 *	decoded already      a reference to the cache's buffer
 *	never written        a fill: nothing is read
 *	stored verbatim      a range of the backing file: the page cache has it,
 *	                     so no copy is kept here
 *	anything else        read, decoded, kept in the cache
 *
 * Tiny runs out of a verbatim chunk go through the cache after all: one pread of the
 * whole chunk is cheaper than a thousand of 64 bytes.  But a run that begins or ends with
 * the chunk is mostly the remainder of a READ, because the header of a .npy file shifts
 * chunks by 128 bytes; then the rest of the chunk is not needed again.
 */
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/counters.h"
#include "base/log.h"
#include "base/number.h"
#include "base/parse.h"
#include "base/system.h"
#include "store/behind.h"
#include "store/prefetch.h"
#include "store/sharing.h"
#include "store/thread.h"
#include "store/warm.h"

/* Locations of chunks are cached under the set's id and this bit. */
#define INDEX_PAGE_KEY (UINT64_C(1) << 63)
/* Bytes: shorter runs of a verbatim chunk of at most TINY_CHUNK are cached. */
#define TINY_RUN 4096
#define TINY_CHUNK (UINT64_C(4) << 20)
/* Bytes decoded ahead of a forward reader: few enough to be still in the CPU's cache when
 * they are served, and at most 1/WINDOW_SHARE of the chunk cache. */
#define WINDOW (UINT64_C(8) << 20)
#define WINDOW_SHARE 4
/* At most this share of the cache is decoded at once for one read. */
#define WANT_SHARE 8
/* A file is brought into the page cache only if it is at most this share of memory. */
#define WARM_SHARE 2

struct store {
	struct pinner pinner; /* first member */
	struct cache *cache;
	struct handles *handles;
	struct prefetch *prefetch; /* NULL until store_start, or always */
	struct warm *warm;         /* as prefetch */
	struct shared *shared;     /* NULL: chunks are not shared */
	struct sharing *sharing;   /* NULL until store_start, or always */
	uint64_t budget;
	unsigned threads;
	uint64_t window; /* bytes decoded ahead of forward readers; 0: none */
	struct behind behind;
};

/* ---- finding a chunk ----------------------------------------------------- */

struct load {
	struct store *s;
	struct chunk_set *set;
	uint64_t index;
	const struct chunk *chunk;
};

/* Begin a load that may read other chunks.  Their bytes become part of the loaded chunk,
 * so they count as handed out, even if this thread only decodes ahead. */
static struct store_thread nested_begin(void)
{
	struct store_thread was = store_thread;

	store_thread.decodes = store_thread.forward = false;
	return was;
}

static void nested_end(const struct store_thread *was)
{
	store_thread.decodes = was->decodes;
	store_thread.forward = was->forward;
}

static int load_index_page(void *ctx, _Atomic uint64_t *gauge, struct buf **out,
			   struct error *err)
{
	struct store_thread was = nested_begin();
	struct load *l = ctx;
	int r = l->set->ops->load_index_page(l->set, l->index, gauge, out, err);

	nested_end(&was);
	return r;
}

static int store_locate(struct store *s, struct chunk_set *set, uint64_t index,
			struct chunk *c, struct error *err)
{
	struct load l = {s, set, 0, NULL};
	struct buf *segment = NULL;
	int r;

	if (set->ops->prepare) {
		struct store_thread was = nested_begin();

		r = set->ops->prepare(set, index, err);
		nested_end(&was);
		if (r < 0)
			return r;
	}
	l.index = set->ops->index_page_of(set, index);
	if (l.index != UINT64_MAX) {
		r = cache_get(s->cache, set->id | INDEX_PAGE_KEY, l.index,
			      buf_cost(32 << 10), 0, load_index_page, &l,
			      &segment, err);
		if (r < 0)
			return r;
	}
	r = set->ops->locate(set, index, segment, c, err);
	buf_unref(segment);
	return r;
}

/* ---- decoding one -------------------------------------------------------- */

static int prefix_chunk(struct chunk_set *set, uint64_t index, int r,
			struct error *err)
{
	char what[256];

	set->ops->describe(set, index, what, sizeof what);
	error_prefix(err, "%s: ", what);
	return r;
}

static int fetch_chunk(struct load *l, _Atomic uint64_t *gauge,
		       struct buf **out, struct error *err)
{
	struct store_thread was = nested_begin();
	int r = l->set->ops->fetch(l->set, l->index, gauge, out, err);

	nested_end(&was);
	return r;
}

static int decode_chunk(struct load *l, _Atomic uint64_t *gauge,
			struct buf **out, struct error *err)
{
	struct buf *b;
	int r;

	b = buf_new(l->chunk->size, gauge);
	if (!b)
		return error_set(err, -ENOMEM,
				 "out of memory for a chunk of %llu bytes",
				 (unsigned long long)l->chunk->size);
	r = chunk_load(l->s->handles, l->chunk, b->data, err);
	if (r < 0) {
		buf_unref(b);
		return r;
	}
	*out = b;
	return 0;
}

static int load_chunk(void *ctx, _Atomic uint64_t *gauge, struct buf **out,
		      struct error *err)
{
	struct load *l = ctx;
	int r;

	store_thread.loads++;
	r = l->chunk->state == CHUNK_FETCH ? fetch_chunk(l, gauge, out, err)
					   : decode_chunk(l, gauge, out, err);
	if (r >= 0 && *out && l->chunk->useful)
		(*out)->useful = l->chunk->useful;
	return r;
}

static void warn_size(struct store *s, struct chunk_set *set, uint64_t index,
		      const struct chunk *c)
{
	char what[256], size[32], budget[32];

	if (buf_cost(c->size) <= s->budget || s->sharing ||
	    atomic_exchange(&set->warned, 1))
		return;
	set->ops->describe(set, index, what, sizeof what);
	format_size(c->size, size, sizeof size);
	format_size(s->budget, budget, sizeof budget);
	log_warn("%s: a chunk of %s does not fit in the cache of %s: every "
		 "read decodes it anew; raise cache-size, or rewrite the data "
		 "with smaller chunks",
		 what, size, budget);
}

/* Get the decoded bytes of a chunk, loading them into the cache if they are not there. */
static int store_decoded(struct store *s, struct chunk_set *set, uint64_t index,
			 const struct chunk *c, struct buf **out,
			 struct error *err)
{
	struct load l = {s, set, index, c};
	int r;

	warn_size(s, set, index, c);
	if (s->sharing)
		r = sharing_get(s->sharing, set, index, c, load_chunk, &l, out,
				err);
	else
		r = cache_get(s->cache, set->id, index, buf_cost(c->size),
			      c->state == CHUNK_FETCH ? c->size
						      : chunk_scratch(c),
			      load_chunk, &l, out, err);
	return r < 0 ? prefix_chunk(set, index, r, err) : 0;
}

/* ---- pinning ------------------------------------------------------------- */

static int pin_file(struct store *s, uint32_t file, uint64_t pos, uint64_t len,
		    struct span *out, struct error *err)
{
	uint64_t end = UINT64_MAX;
	int r = handles_get(s->handles, file, &out->handle, err);

	if (r < 0)
		return r;
	if (add_overflows(pos, len, &end) || end > out->handle.size) {
		r = plan_say_past(handles_path(s->handles, file),
				  out->handle.size, pos, len, err);
		handles_put(s->handles, &out->handle);
		return r;
	}
	if (s->warm && !store_thread.guesses)
		warm_note(s->warm, file, len);
	out->kind = SPAN_FD;
	out->pos = pos;
	out->len = len;
	return 0;
}

/* Set the span to a window of a buffer, whose reference becomes the span's. */
static int pin_buf(const struct extent *x, struct buf *b, struct span *out,
		   struct error *err)
{
	const struct chunk_set *set = x->u.chunk.set;
	size_t off = 0, len = b->size;
	uint64_t skip = x->u.chunk.skip;
	int r = 0;

	if (x->u.chunk.slice != EXTENT_WHOLE)
		r = set->ops->slice(set, b, x->u.chunk.slice, &off, &len);
	if (r < 0) { /* the buffer has the reason as text */
		r = error_set(err, r, "%.*s", (int)len,
			      (const char *)b->data + off);
		buf_unref(b);
		return r;
	}
	if (skip > len || x->len > len - skip) {
		buf_unref(b);
		return error_set(err, -EIO,
				 "the bytes asked for lie outside of their "
				 "chunk of %zu bytes",
				 len);
	}
	out->kind = SPAN_MEM;
	out->mem = b->data + off + skip;
	out->len = x->len;
	out->buf = b;
	return 0;
}

/* As pin_buf, and note what store_unpin needs to count the bytes that are handed out. */
static int pin_noted(const struct extent *x, struct buf *b, bool forward,
		     struct span *out, struct error *err)
{
	int r = pin_buf(x, b, out, err);

	if (r < 0)
		return r;
	/* READs ahead of readers in a random order do not count, because the next epoch
	 * needs these chunks again. */
	if (store_thread.guesses && !forward)
		return 0;
	out->set = x->u.chunk.set;
	out->index = x->u.chunk.index;
	out->given = out->len;
	out->forward = forward;
	return 0;
}

/* Count the bytes that were handed out.  A chunk that is complete goes to the list of
 * those to drop: the kernel has its bytes, and the next chunk is decoded into pages that
 * are still warm. */
static void count_served(struct store *s, const struct span *span)
{
	struct buf *b = span->buf;
	size_t bytes = store_thread.decodes ? 0 : span->given;
	size_t before = atomic_fetch_add(&b->served, bytes);

	if (before < b->useful && before + bytes >= b->useful)
		behind_add(&s->behind, span->set->id, span->index, b->size,
			   before + bytes, span->forward);
}

/* Return true if the bytes `x` of the chunk are read from its file whenever they are
 * wanted. */
static bool wants_fd(const struct chunk *c, const struct extent *x)
{
	uint64_t skip = x->u.chunk.skip;
	bool edge = skip == 0 || (skip < c->size && x->len >= c->size - skip);

	return c->state == CHUNK_STORED && chunk_is_verbatim(c) &&
	       (x->len >= TINY_RUN || c->size > TINY_CHUNK ||
		(edge && x->u.chunk.alone));
}

static int pin_chunk(struct store *s, const struct extent *x, struct span *out,
		     struct error *err)
{
	struct chunk_set *set = x->u.chunk.set;
	uint64_t index = x->u.chunk.index;
	bool forward = store_thread.forward;
	struct chunk c;
	struct buf *b;
	int r;

	if (!store_thread.guesses && s->prefetch &&
	    prefetch_note(s->prefetch, set, index))
		forward = true;
	b = cache_peek(s->cache, set->id, index);
	if (b)
		return pin_noted(x, b, forward, out, err);
	r = store_locate(s, set, index, &c, err);
	if (r < 0)
		return r;
	if (c.state == CHUNK_ABSENT) {
		out->kind = SPAN_FILL;
		out->len = x->len;
		out->fill = c.fill;
		out->phase = (uint32_t)(x->u.chunk.skip % c.fill.width);
		return 0;
	}
	if (wants_fd(&c, x)) {
		r = pin_file(s, c.file, c.pos + x->u.chunk.skip, x->len, out,
			     err);
		return r < 0 ? prefix_chunk(set, index, r, err) : 0;
	}
	r = store_decoded(s, set, index, &c, &b, err);
	return r < 0 ? r : pin_noted(x, b, forward, out, err);
}

int store_pin(struct store *s, const struct extent *x, struct span *out,
	      struct error *err)
{
	memset(out, 0, sizeof *out);
	out->handle.fd = -1;
	switch (x->kind) {
	case EXTENT_FILE:
		return pin_file(s, x->u.file.file, x->u.file.pos, x->len, out,
				err);
	case EXTENT_CHUNK:
		return pin_chunk(s, x, out, err);
	case EXTENT_MEM:
		out->kind = SPAN_MEM;
		out->mem = x->u.mem.data;
		break;
	case EXTENT_FILL:
		out->kind = SPAN_FILL;
		out->fill = x->u.fill.of;
		out->phase = x->u.fill.phase;
		break;
	}
	out->len = x->len;
	return 0;
}

void store_unpin(struct store *s, struct span *span)
{
	if (span->kind == SPAN_FD && span->handle.fd >= 0)
		handles_put(s->handles, &span->handle);
	if (span->buf && span->set)
		count_served(s, span);
	buf_unref(span->buf);
	span->buf = NULL;
	span->handle.fd = -1;
}

static int pinner_pin(struct pinner *p, const struct extent *x,
		      struct span *out, struct error *err)
{
	return store_pin((struct store *)p, x, out, err);
}

static void pinner_unpin(struct pinner *p, struct span *span)
{
	store_unpin((struct store *)p, span);
}

static int pinner_locate(struct pinner *p, struct chunk_set *set,
			 uint64_t index, struct chunk *out, struct error *err)
{
	return store_locate((struct store *)p, set, index, out, err);
}

/* ---- prefetching --------------------------------------------------------- */

static bool ahead_has(void *ctx, struct chunk_set *set, uint64_t index)
{
	return cache_has(((struct store *)ctx)->cache, set->id, index);
}

static void ahead_load(void *ctx, struct chunk_set *set, uint64_t index)
{
	struct store *s = ctx;
	struct error err = {0};
	struct handle h;
	struct chunk c;
	struct buf *b;

	if (cache_has(s->cache, set->id, index) ||
	    store_locate(s, set, index, &c, &err) < 0 ||
	    c.state == CHUNK_ABSENT || buf_cost(c.size) > s->budget)
		return;
	if (!chunk_is_verbatim(&c)) {
		if (store_decoded(s, set, index, &c, &b, &err) < 0)
			return;
		buf_unref(b);
		cache_expect(s->cache, set->id, index);
		counter_add(COUNT_PREFETCHED, 1);
	} else if (handles_get(s->handles, c.file, &h, &err) == 0) {
		posix_fadvise(h.fd, (off_t)(h.base + c.pos), (off_t)c.stored,
			      POSIX_FADV_WILLNEED);
		handles_put(s->handles, &h);
	}
}

bool store_want(struct store *s, const struct extent *x, uint64_t ahead,
		uint64_t *bytes)
{
	struct chunk_set *set = x->u.chunk.set;
	uint64_t index = x->u.chunk.index;
	struct chunk c;

	*bytes = 0;
	if (x->kind != EXTENT_CHUNK || !s->prefetch || !set->ops->next ||
	    cache_has(s->cache, set->id, index) ||
	    store_locate(s, set, index, &c, NULL) < 0 ||
	    c.state == CHUNK_ABSENT || chunk_is_verbatim(&c))
		return true;
	if (buf_cost(c.size) > s->budget / WANT_SHARE ||
	    ahead > s->budget / WANT_SHARE - buf_cost(c.size))
		return false;
	*bytes = buf_cost(c.size);
	return prefetch_want(s->prefetch, set, index, *bytes,
			     !store_thread.guesses);
}

int store_start(struct store *s, struct error *err)
{
	int r;

	if (s->shared && !s->sharing) {
		r = sharing_new(&s->sharing, s->shared, s->cache, s->handles,
				err);
		if (r < 0)
			return r;
		s->behind.elsewhere = true;
	}
	if (!s->threads || s->prefetch)
		return 0;
	r = prefetch_new(&s->prefetch, s->threads, s->window,
			 s->budget / WINDOW_SHARE, ahead_load, ahead_has, s,
			 err);
	return r < 0 || !s->window
		       ? r
		       : warm_new(&s->warm, s->handles,
				  system_memory() / WARM_SHARE, err);
}

int store_new(struct store **out, const struct store_options *o,
	      struct error *err)
{
	struct store *s = calloc(1, sizeof *s);
	int r;

	*out = NULL;
	if (!s)
		return error_no_memory(err, "the store of decoded chunks");
	s->pinner.pin = pinner_pin;
	s->pinner.unpin = pinner_unpin;
	s->pinner.locate = pinner_locate;
	s->handles = o->handles;
	s->shared = o->shared;
	s->budget = o->cache_size;
	s->threads = o->prefetch_threads;
	if (!o->no_guesses)
		s->window = min_u64(o->cache_size / WINDOW_SHARE, WINDOW);
	r = cache_new(&s->cache, o->cache_size, err);
	if (r < 0) {
		free(s);
		return r;
	}
	behind_init(&s->behind, s->cache, o->cache_size);
	*out = s;
	return 0;
}

void store_free(struct store *s)
{
	if (!s)
		return;
	warm_free(s->warm);
	prefetch_free(s->prefetch);
	sharing_free(s->sharing);
	cache_free(s->cache);
	behind_destroy(&s->behind);
	free(s);
}

struct pinner *store_pinner(struct store *s)
{
	return &s->pinner;
}
struct cache *store_cache(struct store *s)
{
	return s->cache;
}
struct handles *store_handles(struct store *s)
{
	return s->handles;
}
struct shared *store_shared(struct store *s)
{
	return s->shared;
}

int store_check_chunk(struct store *s, struct chunk_set *set, uint64_t index,
		      const struct buf *segment, uint64_t *size,
		      uint64_t *stored, struct error *err)
{
	_Atomic uint64_t gauge = 0;
	struct buf *b = NULL;
	struct chunk c;
	struct load l = {s, set, index, &c};
	int r = segment ? set->ops->locate(set, index, segment, &c, err)
			: store_locate(s, set, index, &c, err);

	*size = *stored = 0;
	if (r < 0 || c.state == CHUNK_ABSENT)
		return r;
	r = load_chunk(&l, &gauge, &b, err);
	if (r < 0)
		return prefix_chunk(set, index, r, err);
	*size = b->size;
	*stored = c.state == CHUNK_STORED ? c.stored : 0;
	buf_unref(b);
	return 0;
}
