/* SPDX-License-Identifier: BSD-2-Clause */
/* Virtual datasets: which part of which file covers which elements. */
/*
 * Parts are not opened here, with two exceptions that the format asks for.  An axis
 * without end (H5S_UNLIMITED) is as long as the longest of its sources.  And sources
 * that a pattern names ("%b" is the number of the block) are counted up to the first
 * that is missing.
 *
 * A source that is missing is an error when its elements are read.  What no
 * mapping covers is fill value, as the format says.
 */
#include "formats/hdf5/layout/virtual.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/hdf5/file/resolve.h"
#include "formats/hdf5/layout/tensor.h"

/* ---- names --------------------------------------------------------------- */

static bool has_pattern(const char *s)
{
	for (; (s = strchr(s, '%')); s += 2)
		if (s[1] != '%')
			return true;
	return false;
}

/* "%b" expands to at most 20 digits. */
char *hdf5_name_of_block(const char *s, uint64_t block)
{
	size_t room = strlen(s) * 11 + 1, used = 0;
	char *out = malloc(room);

	for (; out && *s; s++) {
		if (*s != '%') {
			out[used++] = *s;
		} else if (*++s == '%') {
			out[used++] = '%';
		} else if (*s == 'b') {
			used += (size_t)snprintf(out + used, room - used,
						 "%" PRIu64, block);
		} else {
			free(out);
			return NULL;
		}
	}
	if (out)
		out[used] = '\0';
	return out;
}

/* ---- parts --------------------------------------------------------------- */

static size_t part_slot(const struct builder *b, uint32_t file,
			const char *dataset)
{
	size_t i = ((uintptr_t)dataset >> 4) * 31 + file * 2654435761u;

	for (i &= b->nslots - 1; b->slots[i]; i = (i + 1) & (b->nslots - 1)) {
		const struct part *p = &b->parts.at[b->slots[i] - 1];

		if (p->file == file && p->dataset == dataset)
			break;
	}
	return i;
}

static bool slots_grow(struct builder *b)
{
	size_t want = b->nslots ? 2 * b->nslots : 64;

	if (b->nslots && b->parts.n < b->nslots / 2)
		return true;
	free(b->slots);
	b->slots = calloc(want, sizeof *b->slots);
	b->nslots = b->slots ? want : 0;
	for (size_t i = 0; b->slots && i < b->parts.n; i++)
		b->slots[part_slot(b, b->parts.at[i].file,
				   b->parts.at[i].dataset)] = (uint32_t)i + 1;
	return b->slots;
}

/* Several mappings may share a part. */
int hdf5_builder_part(struct builder *b, const char *file, const char *dataset,
		      uint32_t *out)
{
	struct part p;
	size_t at;
	int r;

	memset(&p, 0, sizeof p);
	r = hdf5_resolve(b->h->source, b->at, file, HDF5_PREFIX_VDS, &p.file,
			 b->err);
	if (r < 0)
		return r;
	p.dataset = intern_bytes(&b->h->source->intern, dataset,
				 strlen(dataset) + 1);
	if (!p.dataset || !slots_grow(b))
		return error_no_memory(
			b->err, "the table of sources of a virtual dataset");
	at = part_slot(b, p.file, p.dataset);
	if (!b->slots[at]) {
		if (b->parts.n >= TENSOR_PARTS_MAX - 1)
			return error_set(b->err, -ENOTSUP,
					 "it has too many sources");
		if (!vec_push(&b->parts, p))
			return error_no_memory(
				b->err,
				"the table of sources of a virtual dataset");
		b->slots[at] = (uint32_t)b->parts.n;
	}
	*out = b->slots[at] - 1;
	return 0;
}

/* The part that was added last is the end of its chain of slots. */
void hdf5_builder_drop(struct builder *b, size_t n)
{
	const struct part *p;

	if (b->parts.n <= n)
		return;
	p = &b->parts.at[--b->parts.n];
	b->slots[part_slot(b, p->file, p->dataset)] = 0;
}

/* ---- mappings ------------------------------------------------------------ */

/* A source that is mapped whole has no slab. */
int hdf5_builder_tile(struct builder *b, const uint64_t *to,
		      const uint64_t *from, const struct hdf5_mapping *m,
		      uint32_t part, int endless)
{
	unsigned n = b->d->own_rank, k = m->all ? 0 : m->from_rank;
	struct plan_tile t = {.from_rank = k,
			      .all = m->all,
			      .part = part,
			      .endless = endless};

	t.slabs = malloc((4 * (size_t)(n + k) + 1) * sizeof *t.slabs);
	if (!t.slabs)
		return error_no_memory(b->err,
				       "a mapping of a virtual dataset");
	memcpy(t.slabs, to, 4 * n * sizeof *to);
	if (k)
		memcpy(t.slabs + 4 * n, from, 4 * k * sizeof *from);
	if (vec_push(&b->tiles, t))
		return 0;
	free(t.slabs);
	return error_no_memory(b->err,
			       "the table of mappings of a virtual dataset");
}

/* The first call for an axis replaces the length of the description. */
void hdf5_builder_reach(struct builder *b, unsigned axis, uint64_t end)
{
	if (!b->known[axis] || b->shape[axis] < end)
		b->shape[axis] = end;
	b->known[axis] = true;
}

/* Return true if a slab without end has no elements. */
static bool is_hollow(const uint64_t *s, unsigned rank, int axis)
{
	return axis >= 0 && (!s[BLOCK * rank + (unsigned)axis] ||
			     !s[COUNT * rank + (unsigned)axis]);
}

static int add_mapping(struct builder *b, const struct hdf5_mapping *m)
{
	int u = hdf5_slab_endless(m->to, b->d->own_rank);
	int v = m->all ? -1 : hdf5_slab_endless(m->from, m->from_rank);
	cleanup_free char *file = NULL, *dataset = NULL;
	bool pattern = has_pattern(m->file) || has_pattern(m->dataset);
	uint32_t part;
	int r;

	if (is_hollow(m->to, b->d->own_rank, u) ||
	    is_hollow(m->from, m->from_rank, v))
		return error_set(b->err, -EBADMSG,
				 "an unlimited mapping selects nothing");
	if (pattern && u >= 0 && v < 0)
		return hdf5_add_pattern(b, m, (unsigned)u);
	if (pattern || (u < 0) != (v < 0))
		return error_set(b->err, -EBADMSG,
				 "the mapping to '%s' of '%s' has a pattern or "
				 "an unlimited axis on one side only",
				 m->dataset, m->file);
	file = hdf5_name_of_block(m->file, 0);
	dataset = hdf5_name_of_block(m->dataset, 0);
	if (!file || !dataset)
		return error_no_memory(
			b->err, "the name of a source of a virtual dataset");
	r = hdf5_builder_part(b, file, dataset, &part);
	if (r < 0)
		return r;
	return u < 0 ? hdf5_builder_tile(b, m->to, m->from, m, part, -1)
		     : hdf5_add_unlimited(b, m, (unsigned)u, (unsigned)v, part);
}

/* ---- the mosaic ---------------------------------------------------------- */

/* Axes of an array type belong to every element. */
static void slab_expand(const uint64_t *s, unsigned own, unsigned rank,
			const uint64_t *inner, struct slab *out)
{
	for (unsigned i = 0; i < rank; i++) {
		bool ours = i < own;

		out->start[i] = ours ? s[START * own + i] : 0;
		out->stride[i] = ours ? s[STRIDE * own + i] : inner[i - own];
		out->count[i] = ours ? s[COUNT * own + i] : 1;
		out->block[i] = ours ? s[BLOCK * own + i] : inner[i - own];
	}
}

static int mosaic_put(struct builder *b, struct plan_tile *p)
{
	unsigned own = b->d->own_rank, inner = b->d->rank - own;
	struct tile t;

	if (p->endless >= 0) {
		/* The source is missing: the tile covers what is left of the shape. */
		unsigned u = (unsigned)p->endless;
		uint64_t *from = p->slabs + 4 * own;
		int v = hdf5_slab_endless(from, p->from_rank);
		uint64_t n = hdf5_slab_clip(p->slabs, own, u, b->shape[u]);

		if (!n || v < 0)
			return 0;
		if (!hdf5_slab_part(p->slabs, own, u, 0, n) ||
		    !hdf5_slab_part(from, p->from_rank, (unsigned)v, 0, n))
			return 0;
	}
	memset(&t, 0, sizeof t);
	t.part = p->part;
	t.all = p->all;
	t.rank = p->from_rank + inner;
	if (t.rank > RANK_MAX)
		return error_set(b->err, -EBADMSG,
				 "a source has too many axes");
	slab_expand(p->slabs, own, b->d->rank, b->shape + own, &t.to);
	if (!p->all)
		slab_expand(p->slabs + 4 * own, p->from_rank, t.rank,
			    b->shape + own, &t.from);
	return mosaic_add(b->h->t.mosaic, &t, b->err);
}

static int mosaic_build(struct builder *b)
{
	struct tensor *t = &b->h->t;
	int r;

	for (unsigned i = 0; i < b->d->own_rank; i++)
		if (b->open[i] && !b->known[i] && b->missing)
			return error_set(b->err, -ENODATA,
					 "its shape depends on sources that "
					 "cannot be read: %s",
					 b->missing);
	for (unsigned i = 0; i < b->d->own_rank; i++)
		if (b->open[i] && !b->known[i])
			b->shape[i] = 0;
	r = mosaic_new(&t->mosaic, b->d->rank, b->shape, b->err);
	for (size_t i = 0; i < b->tiles.n && !r; i++)
		r = mosaic_put(b, &b->tiles.at[i]);
	return r < 0 ? r : mosaic_finish(t->mosaic, b->err);
}

int hdf5_virtual_new(struct hdf5_tensor *h, const struct hdf5_description *d,
		     uint64_t *shape, struct error *err)
{
	struct builder b = {
		.h = h, .d = d, .shape = shape, .at = h->file, .err = err};
	int r = 0;

	/* Mappings that end say how long an open axis is at least. */
	for (size_t i = 0; i < d->nmappings; i++) {
		int u = hdf5_slab_endless(d->mapping[i].to, d->own_rank);

		if (u >= 0)
			b.open[u] = true;
	}
	for (size_t i = 0; i < d->nmappings && !r; i++) {
		const struct hdf5_mapping *m = &d->mapping[i];
		uint64_t end;

		r = add_mapping(&b, m);
		for (unsigned k = 0; k < d->own_rank && !r; k++)
			if (b.open[k] &&
			    hdf5_slab_endless(m->to, d->own_rank) < 0 &&
			    hdf5_slab_end(
				    m->to, d->own_rank, k,
				    m->to[COUNT * d->own_rank + k] *
					    m->to[BLOCK * d->own_rank + k],
				    &end))
				hdf5_builder_reach(&b, k, end);
	}
	if (!r)
		r = mosaic_build(&b);
	h->t.parts = b.parts.at;
	h->t.nparts = (uint32_t)b.parts.n;
	for (size_t i = 0; i < b.tiles.n; i++)
		free(b.tiles.at[i].slabs);
	vec_free(&b.tiles);
	free(b.slots);
	free(b.missing);
	return r;
}
