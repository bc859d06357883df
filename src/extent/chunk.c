/* SPDX-License-Identifier: BSD-2-Clause */
/* One stored block: fetch its bytes, decode them, or say why not. */
#include "extent/chunk.h"

#include <errno.h>
#include <string.h>

#include "base/counters.h"

/*
 * Two ways: a chunk stored verbatim is read straight to where it is wanted;
 * any other is read into scratch of this thread and decoded from there.  In
 * both the source is compared once more after the bytes were read and before
 * they mean anything, so a file that is rewritten meanwhile is called stale,
 * not corrupt.
 *
 * `stored` comes from the file and decides how much scratch is taken, hence a
 * bound on it: filters may expand what they cannot compress, by a little.
 */
#define EXPANSION_MAX 8
#define EXPANSION_SLACK (UINT64_C(1) << 20)

uint64_t chunk_set_new_id(void)
{
	static _Atomic uint64_t last;

	return atomic_fetch_add(&last, 1) + 1;
}

/* No filter has to be undone (bytes may still have to be swapped). */
static bool chunk_is_unfiltered(const struct chunk *c)
{
	return !c->pipeline || pipeline_is_verbatim(c->pipeline, c->skip_mask);
}

bool chunk_is_verbatim(const struct chunk *c)
{
	return c->state == CHUNK_STORED && c->swap <= 1 &&
	       c->stored == c->size && chunk_is_unfiltered(c);
}

size_t chunk_scratch(const struct chunk *c)
{
	size_t sum;

	if (c->state != CHUNK_STORED || chunk_is_unfiltered(c))
		return 0;
	sum = pipeline_scratch_size(c->pipeline, (size_t)c->size);
	if (__builtin_add_overflow(sum, c->stored, &sum))
		return SIZE_MAX;
	return sum;
}

/* Numbers that no intact file has. */
static int chunk_check(const struct chunk *c, struct error *err)
{
	if (c->state != CHUNK_STORED)
		return error_set(err, -EINVAL, "chunk has no stored bytes");
	if (c->size > SIZE_MAX / 2 || (c->swap > 1 && c->size % c->swap))
		return error_set(err, -EBADMSG,
				 "%llu bytes are no whole chunk of %u-byte "
				 "numbers",
				 (unsigned long long)c->size, c->swap);
	if (chunk_is_unfiltered(c)) {
		if (c->stored != c->size)
			return error_set(err, -EBADMSG,
					 "%llu bytes stored without filter "
					 "where the chunk has %llu",
					 (unsigned long long)c->stored,
					 (unsigned long long)c->size);
		return 0;
	}
	if (c->stored > EXPANSION_SLACK &&
	    (c->stored - EXPANSION_SLACK) / EXPANSION_MAX > c->size)
		return error_set(err, -EBADMSG,
				 "%llu stored bytes for a chunk of only %llu: "
				 "damaged index?",
				 (unsigned long long)c->stored,
				 (unsigned long long)c->size);
	return 0;
}

/* A failure to decode does not know where it happened. */
static int chunk_prefix(struct handles *h, const struct chunk *c, int code,
			struct error *err)
{
	error_prefix(err, "%s: chunk at %llu: ", handles_name(h, c->file),
		     (unsigned long long)c->pos);
	return code;
}

static int chunk_decode(struct handles *h, const struct chunk *c, void *out,
			struct error *err)
{
	void *stored;
	int r;

	stored = pipeline_stored_scratch((size_t)c->stored);
	if (!stored) {
		error_set(err, -ENOMEM, "no memory for %llu stored bytes",
			  (unsigned long long)c->stored);
		return chunk_prefix(h, c, -ENOMEM, err);
	}
	r = handles_read(h, c->file, c->pos, stored, (size_t)c->stored, err);
	if (r < 0)
		return r;
	r = pipeline_decode(c->pipeline, c->skip_mask, stored,
			    (size_t)c->stored, out, (size_t)c->size, err);
	return r < 0 ? chunk_prefix(h, c, r, err) : 0;
}

int chunk_load(struct handles *h, const struct chunk *c, void *out,
	       struct error *err)
{
	int r;

	r = chunk_check(c, err);
	if (r < 0)
		return chunk_prefix(h, c, r, err);
	if (chunk_is_unfiltered(c)) {
		r = handles_read(h, c->file, c->pos, out, (size_t)c->size, err);
	} else {
		r = chunk_decode(h, c, out, err);
		pipeline_scratch_release();
	}
	if (r < 0)
		return r;
	if (c->swap > 1)
		swap_bytes(out, (size_t)c->size, c->swap);
	counter_add(COUNT_CHUNKS_DECODED, 1);
	counter_add(COUNT_BYTES_STORED, c->stored);
	counter_add(COUNT_BYTES_DECODED, c->size);
	return 0;
}
