/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes chunks of a Zarr array: found by key or in a shard, or never written. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/zarr/zarr.h"

/* ---- keys ---------------------------------------------------------------- */

bool zarr_chunk_key(const struct zarr_own *own, unsigned rank,
		    const uint64_t *at, char out[ZARR_KEY_MAX])
{
	char sep = own->separator;
	size_t n = 0, room = ZARR_KEY_MAX;
	int k = snprintf(out, room, "%s%s%s", own->path, *own->path ? "/" : "",
			 own->z->prefixed ? "c"
			 : rank           ? ""
					  : "0");

	for (unsigned i = 0;; i++) {
		if (k < 0 || (size_t)k >= room - n)
			return false;
		n += (size_t)k;
		if (i == rank)
			return true;
		if (i || own->z->prefixed)
			out[n++] = sep;
		if (n >= room)
			return false;
		k = snprintf(out + n, room - n, "%" PRIu64, at[i]);
	}
}

/* Set `at` to the place in the grid of keys that has a chunk, and *shard to the number
 * of that place.  Returns the number of the chunk in its shard; 0 without shards. */
static uint64_t chunk_place(const struct zarr_array *z, const struct grid *g,
			    uint64_t chunk, uint64_t *at, uint64_t *shard)
{
	uint64_t inside = 0;

	for (unsigned i = g->rank; i-- > 0; chunk /= g->chunks[i])
		at[i] = chunk % g->chunks[i];
	*shard = 0;
	if (!z->sharded)
		return 0;
	for (unsigned i = 0; i < g->rank; i++) {
		uint64_t per = z->per_shard[i];

		inside = inside * per + at[i] % per;
		at[i] /= per;
		*shard = *shard * div_up(g->chunks[i], per) + at[i];
	}
	return inside;
}

/* ---- shards -------------------------------------------------------------- */

static struct buf *shard_known_index(struct zarr *s, const struct array *a,
				     uint64_t shard, const uint64_t *identity)
{
	lock_scope(&s->lock);
	for (unsigned i = 0; i < ZARR_INDEXES; i++) {
		struct zarr_index *x = &s->index[i];

		if (x->bytes && x->of == a && x->shard == shard &&
		    !memcmp(x->identity, identity, sizeof x->identity))
			return buf_ref(x->bytes);
	}
	return NULL;
}

static void shard_drop_index(struct zarr *s, struct zarr_index *x)
{
	if (!x->bytes)
		return;
	s->index_bytes -= x->bytes->size;
	buf_unref(x->bytes);
	x->bytes = NULL;
}

/* Keep the index of a shard in place of those that were read longest ago. */
static void shard_keep_index(struct zarr *s, const struct array *a,
			     uint64_t shard, const uint64_t *identity,
			     struct buf *b)
{
	lock_scope(&s->lock);
	struct zarr_index *x = &s->index[s->next];

	if (b->size > ZARR_INDEX_BYTES)
		return;
	shard_drop_index(s, x);
	for (unsigned i = 1; s->index_bytes + b->size > ZARR_INDEX_BYTES; i++)
		shard_drop_index(s, &s->index[(s->next + i) % ZARR_INDEXES]);
	s->next = (s->next + 1) % ZARR_INDEXES;
	x->of = a;
	x->shard = shard;
	memcpy(x->identity, identity, sizeof x->identity);
	x->bytes = buf_ref(b);
	s->index_bytes += b->size;
}

void zarr_indexes_free(struct zarr *s)
{
	for (unsigned i = 0; i < ZARR_INDEXES; i++)
		shard_drop_index(s, &s->index[i]);
}

static int shard_read_index(struct zarr *s, const struct array *a,
			    uint64_t shard, uint64_t pos, uint64_t n,
			    struct zarr_value *v, struct buf **out,
			    struct error *err)
{
	const struct zarr_own *own = a->own;
	struct buf *b = buf_new((size_t)n, NULL);
	int r;

	if (!b)
		return error_no_memory(err, "the index of a shard");
	r = s->store->ops->read(s->store, v, pos, b->data, (size_t)n, err);
	if (r == 0)
		r = zarr_shard_check(own->z, b->data, err);
	if (r < 0) {
		buf_unref(b);
		return r;
	}
	shard_keep_index(s, a, shard, v->identity, b);
	*out = b;
	return 0;
}

int zarr_find_in_shard(struct zarr *s, const struct array *a, uint64_t shard,
		       uint64_t i, struct zarr_bytes *out, struct error *err)
{
	const struct zarr_array *z = ((struct zarr_own *)a->own)->z;
	uint64_t n = zarr_shard_index_bytes(z), size = out->value->size, pos;
	unsigned char entry[16];
	struct buf *b;
	int r = 0;

	if (size < n)
		return error_set(err, -EBADMSG,
				 "the shard has %" PRIu64
				 " bytes, and its index alone should have "
				 "%" PRIu64 ": truncated?",
				 size, n);
	pos = z->index_first ? 0 : size - n;
	if (!z->index_checked) {
		/* Without a checksum, one entry is as good as the whole index. */
		r = s->store->ops->read(s->store, out->value, pos + 16 * i,
					entry, sizeof entry, err);
		return r < 0 ? r
			     : zarr_shard_find(z, entry, 0, size, &out->pos,
					       &out->n, err);
	}
	b = shard_known_index(s, a, shard, out->value->identity);
	if (!b)
		r = shard_read_index(s, a, shard, pos, n, out->value, &b, err);
	if (r < 0)
		return r;
	r = zarr_shard_find(z, b->data, i, size, &out->pos, &out->n, err);
	buf_unref(b);
	return r;
}

/* ---- chunks -------------------------------------------------------------- */

static void chunk_fill(const struct array *a, unsigned char *out, size_t size)
{
	const struct fill *f = &a->t.fill;
	size_t done = f->width;

	if (f->width == 1 || !size) {
		memset(out, size ? *(const unsigned char *)f->pattern : 0,
		       size);
		return;
	}
	memcpy(out, f->pattern, f->width);
	for (; done < size; done *= 2)
		memcpy(out + done, out,
		       done < size - done ? done : size - done);
}

/*
 * There is no such key.  That means that the chunk was never written, if the array's
 * metadata are still those that were opened: check that.
 */
static int check_array(struct zarr *s, const struct zarr_own *own,
		       struct error *err)
{
	struct zarr_value v;
	bool same;
	int r = s->store->ops->open(s->store, own->doc, &v, err);

	if (r == -ENOENT)
		return error_set(err, -EIO,
				 "%s/%s is gone, and so is a chunk: the store "
				 "was moved or deleted",
				 s->store->path, own->doc);
	if (r < 0)
		return r;
	same = !memcmp(v.identity, own->identity, sizeof v.identity);
	s->store->ops->close(s->store, &v);
	return same ? 0
		    : error_set(err, -ESTALE,
				"%s/%s changed since it was first read: mount "
				"it again",
				s->store->path, own->doc);
}

/* Put the chunk's key in front of the sentence, and return `r` if it is a code that
 * readers know, else -EIO. */
static int chunk_fail(struct zarr *s, const char *key, int r, struct error *err)
{
	if (err && !strstr(err->text, s->store->path))
		error_prefix(err, "%s/%s: ", s->store->path, key);
	if (r == -EBADMSG || r == -ESTALE || r == -ENOMEM || r == -ENOTSUP)
		return r;
	if (err)
		err->code = -EIO;
	return -EIO;
}

int zarr_make(struct array *a, uint32_t part, const struct grid *g,
	      uint64_t chunk, void *out, size_t size, struct error *err)
{
	struct zarr *s = (struct zarr *)a->source;
	const struct zarr_own *own = a->own;
	uint64_t at[RANK_MAX], shard, inside;
	char key[ZARR_KEY_MAX];
	struct zarr_value v;
	struct zarr_bytes from = {.store = s->store, .value = &v};
	int r;

	(void)part;
	inside = chunk_place(own->z, g, chunk, at, &shard);
	if (!zarr_chunk_key(own, g->rank, at, key))
		return error_set(err, -EIO, "%s: the path is too long",
				 own->path);
	r = s->store->ops->open(s->store, key, &v, err);
	if (r == -ENOENT) {
		r = check_array(s, own, err);
		if (r < 0)
			return chunk_fail(s, key, r, err);
		chunk_fill(a, out, size);
		return 0;
	}
	if (r < 0)
		return chunk_fail(s, key, r, err);
	from.n = v.size;
	if (own->z->sharded)
		r = zarr_find_in_shard(s, a, shard, inside, &from, err);
	if (r == 1)
		chunk_fill(a, out, size);
	else if (r == 0)
		r = zarr_decode(own, &from, out, size, err);
	s->store->ops->close(s->store, &v);
	return r < 0 ? chunk_fail(s, key, r, err) : 0;
}
