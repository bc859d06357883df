/* SPDX-License-Identifier: BSD-2-Clause */
/* The chunks of a tensor's grid as they are stored: a chunk set of their own. */

/*
 * The tensor's own set locates these chunks.  Their bytes are ranges of the file,
 * unless a checksum follows them (fletcher32), for which not every Zarr reader has a
 * codec: it is checked and left out.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "views/state.h"
#include "views/zarr/zarr.h"

/* Filters expand what they cannot compress only by a little. */
#define EXPANSION_MAX 8
#define EXPANSION_SLACK (UINT64_C(1) << 20)

static const struct pipeline checksum = {1,
					 {{.id = ZARR_FLETCHER32,
					   .codec = &codec_fletcher32,
					   .name = "fletcher32"}}};

static struct tensor *stored_tensor(const struct chunk_set *s)
{
	return ((struct view_state *)((char *)(uintptr_t)s -
				      offsetof(struct view_state,
					       stored_chunks)))
		->tensor;
}

static const struct layout *stored_layout(const struct chunk_set *s)
{
	return atomic_load(&stored_tensor(s)->parts[0].layout);
}

static uint64_t stored_segment_of(const struct chunk_set *s, uint64_t index)
{
	const struct chunk_set *all = &stored_tensor(s)->set;

	return all->ops->index_page_of(all, index);
}

static int stored_load_segment(struct chunk_set *s, uint64_t segment,
			       _Atomic uint64_t *gauge, struct buf **out,
			       struct error *err)
{
	struct chunk_set *all = &stored_tensor(s)->set;

	return all->ops->load_index_page(all, segment, gauge, out, err);
}

static bool stored_has_checksum(const struct pipeline *p)
{
	return p->n && p->filter[p->n - 1].id == ZARR_FLETCHER32;
}

static int stored_locate(const struct chunk_set *s, uint64_t index,
			 const struct buf *segment, struct chunk *c,
			 struct error *err)
{
	const struct chunk_set *all = &stored_tensor(s)->set;
	const struct pipeline *p = stored_layout(s)->pipeline;
	uint64_t decoded;
	int r = all->ops->locate(all, index, segment, c, err);

	if (r < 0 || c->state == CHUNK_ABSENT)
		return r;
	decoded = c->size;
	if (c->state != CHUNK_STORED || c->skip_mask ||
	    c->stored > EXPANSION_MAX * decoded + EXPANSION_SLACK ||
	    c->stored <
		    (stored_has_checksum(p) ? codec_fletcher32.trailer : 0) ||
	    (!p->n && c->stored != decoded))
		return error_set(err, -EBADMSG,
				 "%s: chunk %llu is not stored like the others "
				 "(%llu bytes for %llu decoded ones, filter "
				 "mask %#x): damaged index?",
				 stored_tensor(s)->name,
				 (unsigned long long)index,
				 (unsigned long long)c->stored,
				 (unsigned long long)decoded, c->skip_mask);
	c->pipeline = stored_has_checksum(p) ? &checksum : NULL;
	c->recode = NULL;
	c->size = c->stored;
	if (c->pipeline)
		c->size -= codec_fletcher32.trailer;
	return 0;
}

static void stored_describe(const struct chunk_set *s, uint64_t index,
			    char *buf, size_t n)
{
	snprintf(buf, n, "%s stored chunk %llu", stored_tensor(s)->name,
		 (unsigned long long)index);
}

static const struct chunk_set_ops stored_ops = {
	.index_page_of = stored_segment_of,
	.load_index_page = stored_load_segment,
	.locate = stored_locate,
	.describe = stored_describe,
};

void zarr_stored_init(struct tensor *t)
{
	t->views->stored_chunks.ops = &stored_ops;
	t->views->stored_chunks.id = chunk_set_new_id();
	t->views->stored_chunks.unit = t->set.unit;
}

/* ---- what Zarr can say --------------------------------------------------- */

/* Return true if elements differ from stored ones only in their byte order. */
static bool stored_is_swapped(const struct tensor *t, const struct recode *r)
{
	return !t->field && t->stored.kind == t->dtype.kind &&
	       t->stored.kind <= DTYPE_COMPLEX &&
	       t->stored.size == t->dtype.size && r->from == r->to &&
	       !r->offset && r->width == r->from && r->of == RECODE_NONE &&
	       !r->naxes && r->nswaps == 1 && !recode_is_string(&r->swap[0]) &&
	       !r->swap[0].offset &&
	       (uint64_t)r->swap[0].width * r->swap[0].count == r->from &&
	       t->stored.big_endian != t->dtype.big_endian;
}

const struct dtype *zarr_stored_dtype(const struct tensor *t)
{
	const struct layout *l = atomic_load(&t->parts[0].layout);

	if (!l->recode || recode_is_identity(l->recode))
		return &t->dtype;
	return stored_is_swapped(t, l->recode) ? &t->stored : NULL;
}

/* Return true if Zarr has filter `i`.  numcodecs shuffles whole elements, so a shuffle
 * must come before the compressor. */
static bool stored_can_filter(const struct pipeline *p, unsigned i,
			      uint64_t bytes)
{
	const struct pipeline_filter *f = &p->filter[i];
	uint64_t size = f->params.n ? f->params.cd[0] : 0;

	switch (f->id) {
	case ZARR_SHUFFLE:
		for (unsigned k = 0; k < i; k++)
			if (p->filter[k].id != ZARR_SHUFFLE)
				return false;
		return size && bytes % size == 0;
	case ZARR_FLETCHER32:
		return i + 1 == p->n;
	case ZARR_BLOSC:
		return f->params.n >= 7 && zarr_blosc_name(f->params.cd[6]);
	case ZARR_ZLIB:
	case ZARR_ZSTD:
		return true;
	default:
		return false;
	}
}

const char *zarr_blosc_name(uint32_t code)
{
	static const char *const names[] = {"blosclz", "lz4",  "lz4hc",
					    "snappy",  "zlib", "zstd"};

	return code < sizeof names / sizeof *names ? names[code] : NULL;
}

/* Return true if stored chunks end where the array does, on each axis that is shorter
 * than its dimension.  Otherwise the part of a chunk behind the array would be shown,
 * and its content is undefined. */
static bool ends_with_chunks(const struct tensor *t, const struct grid *g)
{
	for (unsigned i = 0; t->full_shape && i < t->rank; i++)
		if (t->full_shape[i] != t->shape[i] &&
		    t->shape[i] % g->chunk[i])
			return false;
	return true;
}

bool zarr_can_store(const struct tensor *t)
{
	const struct layout *l = atomic_load(&t->parts[0].layout);
	const struct pipeline *p = l->pipeline;

	if (l->by_library || l->joined || l->kind != LAYOUT_CHUNKED ||
	    !zarr_stored_dtype(t) || (l->raw_edges && p->n && l->grid->count))
		return false;
	for (unsigned i = 0; i < p->n; i++)
		if (!stored_can_filter(p, i, l->grid->chunk_bytes))
			return false;
	return ends_with_chunks(t, l->grid);
}

/* Zarr v3 has one compressor and none of the codecs that only numcodecs has. */
bool zarr3_can_store(const struct tensor *t)
{
	const struct layout *l = t->mosaic || !t->nparts
					 ? NULL
					 : atomic_load(&t->parts[0].layout);
	unsigned n = l && l->kind == LAYOUT_CHUNKED ? l->pipeline->n : 0;

	if (n && stored_has_checksum(l->pipeline))
		n--;
	return n == 1 &&
	       (l->pipeline->filter[0].id == ZARR_ZSTD ||
		l->pipeline->filter[0].id == ZARR_BLOSC) &&
	       zarr_can_store(t);
}
