/* SPDX-License-Identifier: BSD-2-Clause */
/* One stored block: read its bytes and decode them, or say why that cannot be done. */
#include "extent/chunk.h"

#include <errno.h>
#include <string.h>

#include "base/counters.h"
#include "base/number.h"

/*
 * Loading a chunk has three steps: its bytes are read, its filters are undone, its
 * elements are recoded.  A step with nothing to do is left out.  The last step writes
 * to where the chunk is wanted, the steps before it write to scratch:
 *
 *	read                     a chunk that is stored verbatim
 *	read, recode             in place, unless elements change their size
 *	read > decode            `stored` bytes of scratch
 *	read > decode, recode    the same, unless elements change their size
 *	read > decode > recode   more scratch, for the decoded chunk
 *
 * The identity of the file is compared again after the bytes were read and before they
 * are decoded, so a file that is rewritten meanwhile is called stale, not corrupt.
 *
 * `stored` comes from the file and decides how much scratch is allocated, hence it is
 * bounded: filters expand what they cannot compress only by a little.
 */
#define EXPANSION_MAX 8
#define EXPANSION_SLACK (UINT64_C(1) << 20)

uint64_t chunk_set_new_id(void)
{
	static _Atomic uint64_t last;

	return atomic_fetch_add(&last, 1) + 1;
}

/* Return true if no filter has to be undone; elements may still have to be recoded. */
static bool chunk_is_unfiltered(const struct chunk *c)
{
	return !c->pipeline || pipeline_is_verbatim(c->pipeline, c->skip_mask);
}

static bool chunk_is_recoded(const struct chunk *c)
{
	return c->recode && !recode_is_identity(c->recode);
}

/* Return true if recoding changes the size of elements, so that it needs memory of its
 * own. */
static bool chunk_is_resized(const struct chunk *c)
{
	return c->recode && c->recode->from != c->recode->to;
}

/* Return the size in bytes of the chunk after decoding and before recoding; SIZE_MAX if
 * that does not fit. */
static size_t chunk_decoded(const struct chunk *c)
{
	uint64_t n = c->size;

	if (c->recode && (!c->recode->to || mul_overflows(n / c->recode->to,
							  c->recode->from, &n)))
		return SIZE_MAX;
	return n > SIZE_MAX ? SIZE_MAX : (size_t)n;
}

bool chunk_is_verbatim(const struct chunk *c)
{
	return c->state == CHUNK_STORED && !chunk_is_recoded(c) &&
	       c->stored == c->size && chunk_is_unfiltered(c);
}

static void filter_origin(const struct pipeline_filter *f, FILE *out)
{
	fprintf(out, "filter %u of %u:", f->id, f->params.elem_size);
	for (uint32_t i = 0; i < f->params.n; i++)
		fprintf(out, " %u", f->params.cd[i]);
	fputc('\n', out);
}

static void recode_origin(const struct recode *r, FILE *out)
{
	fprintf(out, "recode %u to %u: %u at %u, %u to %u\n", r->from, r->to,
		r->width, r->offset, r->of, r->into);
	for (uint32_t i = 0; i < r->nswaps; i++)
		fprintf(out, "swap %u at %u, %u times\n", r->swap[i].width,
			r->swap[i].offset, r->swap[i].count);
	for (uint32_t i = 0; i < r->naxes; i++)
		fprintf(out, "axis %u by %u\n", r->axis[i].count,
			r->axis[i].stride);
}

void chunk_origin(const struct chunk *c, FILE *out)
{
	fprintf(out, "stored %llu at %llu, %llu bytes\n",
		(unsigned long long)c->stored, (unsigned long long)c->pos,
		(unsigned long long)c->size);
	for (unsigned i = 0; c->pipeline && i < c->pipeline->n; i++)
		if (!(c->skip_mask >> i & 1))
			filter_origin(&c->pipeline->filter[i], out);
	if (chunk_is_recoded(c))
		recode_origin(c->recode, out);
}

static size_t add_saturated(size_t a, uint64_t b)
{
	size_t sum;

	return __builtin_add_overflow(a, b, &sum) ? SIZE_MAX : sum;
}

size_t chunk_scratch(const struct chunk *c)
{
	size_t decoded = chunk_decoded(c), sum = 0;

	if (c->state != CHUNK_STORED)
		return 0;
	if (decoded == SIZE_MAX)
		return SIZE_MAX;
	if (!chunk_is_unfiltered(c)) {
		sum = pipeline_scratch_size(c->pipeline, decoded);
		sum = add_saturated(sum, c->stored);
	}
	return chunk_is_resized(c) ? add_saturated(sum, decoded) : sum;
}

/* Refuse numbers that no intact file has. */
static int chunk_check(const struct chunk *c, struct error *err)
{
	size_t decoded = chunk_decoded(c);

	if (c->state != CHUNK_STORED)
		return error_set(err, -EINVAL, "the chunk has no stored bytes");
	if (c->recode && !recode_is_valid(c->recode))
		return error_set(
			err, -EINVAL,
			"the chunk has an invalid conversion of elements");
	if (c->size > SIZE_MAX / 2 || decoded > SIZE_MAX / 2 ||
	    (c->recode && c->size % c->recode->to))
		return error_set(
			err, -EBADMSG,
			"%llu bytes are not a whole number of %u-byte elements",
			(unsigned long long)c->size,
			c->recode ? c->recode->to : 1);
	if (chunk_is_unfiltered(c)) {
		if (c->stored != decoded)
			return error_set(err, -EBADMSG,
					 "%llu bytes are stored without a "
					 "filter, but the chunk has %zu",
					 (unsigned long long)c->stored,
					 decoded);
		return 0;
	}
	if (c->stored > EXPANSION_SLACK &&
	    (c->stored - EXPANSION_SLACK) / EXPANSION_MAX > decoded)
		return error_set(err, -EBADMSG,
				 "%llu bytes are stored for a chunk of only "
				 "%zu: damaged index?",
				 (unsigned long long)c->stored, decoded);
	return 0;
}

/* Prefix an error with the place of the chunk, which decoders do not know. */
static int chunk_prefix(struct handles *h, const struct chunk *c, int code,
			struct error *err)
{
	error_prefix(err, "%s: chunk at %llu: ", handles_name(h, c->file),
		     (unsigned long long)c->pos);
	return code;
}

static int chunk_no_memory(struct handles *h, const struct chunk *c,
			   const char *what, uint64_t n, struct error *err)
{
	char text[64];

	snprintf(text, sizeof text, "%llu %s bytes", (unsigned long long)n,
		 what);
	return chunk_prefix(h, c, error_no_memory(err, text), err);
}

/* Read the chunk and undo its filters. */
static int chunk_decode(struct handles *h, const struct chunk *c, void *out,
			size_t size, struct error *err)
{
	void *stored;
	int r;

	if (chunk_is_unfiltered(c))
		return handles_read(h, c->file, c->pos, out, size, err);
	stored = pipeline_stored_scratch((size_t)c->stored);
	if (!stored)
		return chunk_no_memory(h, c, "stored", c->stored, err);
	r = handles_read(h, c->file, c->pos, stored, (size_t)c->stored, err);
	if (r < 0)
		return r;
	r = pipeline_decode(c->pipeline, c->skip_mask, stored,
			    (size_t)c->stored, out, size, err);
	return r < 0 ? chunk_prefix(h, c, r, err) : 0;
}

/* Read the chunk, undo its filters and recode it. */
static int chunk_recode(struct handles *h, const struct chunk *c, void *out,
			size_t decoded, struct error *err)
{
	struct buf *scratch = NULL;
	void *at = out;
	int r;

	if (chunk_is_resized(c)) {
		scratch = buf_new(decoded ? decoded : 1, NULL);
		if (!scratch)
			return chunk_no_memory(h, c, "decoded", decoded, err);
		at = scratch->data;
	}
	r = chunk_decode(h, c, at, decoded, err);
	if (r == 0)
		recode_run(c->recode, at, out, (size_t)c->size / c->recode->to);
	buf_unref(scratch);
	return r;
}

int chunk_load(struct handles *h, const struct chunk *c, void *out,
	       struct error *err)
{
	size_t decoded = chunk_decoded(c);
	int r;

	r = chunk_check(c, err);
	if (r < 0)
		return chunk_prefix(h, c, r, err);
	r = chunk_is_recoded(c) ? chunk_recode(h, c, out, decoded, err)
				: chunk_decode(h, c, out, decoded, err);
	pipeline_scratch_release();
	if (r < 0)
		return r;
	counter_add(COUNT_CHUNKS_DECODED, 1);
	counter_add(COUNT_BYTES_STORED, c->stored);
	counter_add(COUNT_BYTES_DECODED, decoded);
	return 0;
}

uint64_t chunk_text_index_page_of(const struct chunk_set *s, uint64_t index)
{
	(void)s;
	(void)index;
	return UINT64_MAX;
}

int chunk_text_locate(const struct chunk_set *s, uint64_t index,
		      const struct buf *segment, struct chunk *out,
		      struct error *err)
{
	(void)s;
	(void)index;
	(void)segment;
	(void)err;
	memset(out, 0, sizeof *out);
	out->state = CHUNK_FETCH;
	/* A guess, for callers that add up sizes before it is made. */
	out->size = 4096;
	return 0;
}
