/* SPDX-License-Identifier: BSD-2-Clause */
/* Encode a chunk: through its filters, first to last. */
/*
 * A compressor gets one byte less room than it has input: if it cannot make the chunk
 * smaller it is skipped, and the mask of the chunk says so, as the library does with
 * optional filters.  So nothing but trailers ever adds bytes, and pipeline_bound is
 * exact.
 *
 * The library would leave a chunk shuffled that no compressor could make smaller.  We
 * skip the shuffle, too: the stored chunk is then the data itself, which a mount serves
 * from the page cache without decoding it. has_lzf says where this is not possible.
 *
 * Bytes alternate between the caller's room and one scratch buffer, beginning with the
 * one that makes the last filter end in the caller's room; trailers are added in place.
 */
#include <errno.h>
#include <string.h>

#include "codec/pipeline_private.h"

#define LZF 32000

/* Bytes on their way through the filters. */
struct passage {
	const unsigned char *at;
	size_t len;
	unsigned char *out;     /* room for pipeline_bound */
	unsigned char *scratch; /* the same room; NULL: not needed */
	unsigned char *next;    /* where the next filter writes */
	uint32_t mask;
};

int pipeline_cannot_encode(const struct pipeline *p, struct error *err)
{
	for (unsigned i = 0; i < p->n; i++) {
		const struct pipeline_filter *f = &p->filter[i];

		if (!f->codec || !f->codec->encode)
			return error_set(err, -ENOTSUP,
					 "filter %s (id %u) can be %s only, "
					 "not written",
					 f->name, f->id,
					 f->codec ? "read" : "kept");
	}
	return 0;
}

size_t pipeline_bound(const struct pipeline *p, size_t size)
{
	for (unsigned i = 0; i < p->n; i++) {
		const struct codec *c = p->filter[i].codec;

		if (c && c->kind == CODEC_TRAILER)
			size += c->trailer;
	}
	return size;
}

static bool encoding_is_identity(const struct pipeline_filter *f)
{
	return f->codec && f->codec->is_identity &&
	       f->codec->is_identity(&f->params);
}

/* One filter alone writes right to the caller's room. */
static bool needs_scratch(const struct pipeline *p)
{
	unsigned active = 0;

	for (unsigned i = 0; i < p->n; i++)
		active += !encoding_is_identity(&p->filter[i]);
	return active > 1;
}

size_t pipeline_encode_memory(const struct pipeline *p, size_t size)
{
	size_t sum = needs_scratch(p) ? pipeline_bound(p, size) : 0;

	for (unsigned i = 0; i < p->n; i++) {
		const struct codec *c = p->filter[i].codec;

		if (c && c->encode_memory)
			sum += c->encode_memory(&p->filter[i].params, size);
	}
	return sum;
}

static void passage_moved(struct passage *w, size_t len)
{
	w->at = w->next;
	w->len = len;
	w->next = w->at == w->out ? w->scratch : w->out;
}

static int add_trailer(struct passage *w, const struct pipeline_filter *f,
		       const void *data, struct error *err)
{
	unsigned char *end;
	size_t more = 0;
	int r;

	if (w->at == data) { /* not ours to write behind */
		if (w->len)
			memcpy(w->next, w->at, w->len);
		passage_moved(w, w->len);
	}
	end = (w->at == w->out ? w->out : w->scratch) + w->len;
	r = f->codec->encode(&f->params, w->at, w->len, end, f->codec->trailer,
			     &more, err);
	w->len += more;
	return r;
}

/* Return 0, 1 if the filter is to be skipped for these bytes, or -errno. */
static int run_filter(struct passage *w, const struct pipeline_filter *f,
		      const void *data, struct error *err)
{
	bool compressor = f->codec->kind == CODEC_COMPRESS;
	size_t made = 0;
	int r;

	if (f->codec->kind == CODEC_TRAILER)
		return add_trailer(w, f, data, err);
	if (encoding_is_identity(f))
		return 0;
	if (compressor && !w->len)
		return 1;
	r = f->codec->encode(&f->params, w->at, w->len, w->next,
			     compressor ? w->len - 1 : w->len, &made, err);
	if (r == 0)
		passage_moved(w, made);
	return r;
}

/* Run all filters except those that are masked already; *squeezed says whether one of
 * them saved bytes. */
static int run_filters(struct passage *w, const struct pipeline *p,
		       const void *data, bool *squeezed, struct error *err)
{
	*squeezed = false;
	for (unsigned i = 0; i < p->n; i++) {
		const struct pipeline_filter *f = &p->filter[i];
		int r = w->mask >> i & 1 ? 1 : run_filter(w, f, data, err);

		if (r < 0)
			return r;
		if (r > 0)
			w->mask |= UINT32_C(1) << i;
		else if (f->codec->kind == CODEC_COMPRESS)
			*squeezed = true;
	}
	return 0;
}

static bool has_compressor(const struct pipeline *p)
{
	for (unsigned i = 0; i < p->n; i++)
		if (p->filter[i].codec->kind == CODEC_COMPRESS)
			return true;
	return false;
}

/*
 * When LZF cannot make a chunk smaller, libhdf5 keeps the output of the filters in front
 * of it.  So must we: when libhdf5 stores another chunk of that length there, it leaves
 * the mask as it is.  (Its other compressors make such a chunk longer.)
 */
static bool has_lzf(const struct pipeline *p)
{
	for (unsigned i = 0; i < p->n; i++)
		if (p->filter[i].id == LZF)
			return true;
	return false;
}

/* The mask that skips all filters except trailers. */
static uint32_t all_skipped(const struct pipeline *p)
{
	uint32_t mask = 0;

	for (unsigned i = 0; i < p->n; i++)
		if (p->filter[i].codec->kind != CODEC_TRAILER &&
		    !encoding_is_identity(&p->filter[i]))
			mask |= UINT32_C(1) << i;
	return mask;
}

/* The number of filters that write their bytes to another place than they read them
 * from. */
static unsigned count_moves(const struct pipeline *p)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->n; i++)
		n += p->filter[i].codec->kind != CODEC_TRAILER &&
		     !encoding_is_identity(&p->filter[i]);
	return n;
}

static int run_all_filters(struct passage *w, const struct pipeline *p,
			   const void *data, size_t size, struct error *err)
{
	bool squeezed;
	int r;

	w->at = data;
	w->len = size;
	w->next = count_moves(p) % 2 || !w->scratch ? w->out : w->scratch;
	r = run_filters(w, p, data, &squeezed, err);
	if (r < 0 || squeezed || !has_compressor(p) || has_lzf(p))
		return r;
	w->at = data;
	w->len = size;
	w->next = w->out;
	w->mask = all_skipped(p);
	return run_filters(w, p, data, &squeezed, err);
}

int pipeline_encode(const struct pipeline *p, const void *data, size_t size,
		    void *out, size_t cap, size_t *len, uint32_t *skip_mask,
		    struct error *err)
{
	static const unsigned char nothing;
	size_t bound = pipeline_bound(p, size);
	struct passage w = {.out = out};
	int r = pipeline_cannot_encode(p, err);

	if (r < 0)
		return r;
	if (cap < bound)
		return error_set(err, -EINVAL,
				 "%zu bytes of room for a chunk that may need "
				 "%zu: a defect of tensorfs",
				 cap, bound);
	w.scratch = needs_scratch(p) ? scratch_get(SCRATCH_A, bound) : NULL;
	if (!w.scratch && needs_scratch(p))
		return error_set(err, -ENOMEM,
				 "out of memory for %zu bytes of scratch",
				 bound);
	r = run_all_filters(&w, p, size ? data : &nothing, size, err);
	if (r == 0) {
		if (w.at != w.out && w.len)
			memcpy(w.out, w.at, w.len);
		*len = w.len;
		*skip_mask = w.mask;
	}
	scratch_trim(SCRATCH_A);
	return r;
}
