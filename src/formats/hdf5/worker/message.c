/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptions of datasets as bytes, between the daemon and its workers. */
/*
 *	struct hdf5_description, its pointers meaningless
 *	fill value
 *	per raw file:  u64 pos, u64 len, u32 bytes, name
 *	per mapping:   u32 all, u32 from_rank, slab `to`, slab `from`,
 *	               u32 bytes, file, u32 bytes, dataset
 *
 * Both ends are the same program, but the writing one may have been upset by a
 * damaged file: every number is checked, filters are looked up again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/hdf5/worker/request.h"

typedef void put_fn(void *ctx, const void *data, size_t n);

static void pack_u32(put_fn *put, void *ctx, uint32_t v)
{
	put(ctx, &v, sizeof v);
}

static void pack_text(put_fn *put, void *ctx, const char *s)
{
	size_t n = strlen(s);

	pack_u32(put, ctx, (uint32_t)n);
	put(ctx, s, n);
}

void hdf5_description_pack(const struct hdf5_description *d, put_fn *put,
			   void *ctx)
{
	put(ctx, d, sizeof *d);
	put(ctx, d->fill, d->fill_size);
	for (size_t i = 0; i < d->nraw; i++) {
		put(ctx, &d->raw[i].pos, sizeof d->raw[i].pos);
		put(ctx, &d->raw[i].len, sizeof d->raw[i].len);
		pack_text(put, ctx, d->raw[i].name);
	}
	for (size_t i = 0; i < d->nmappings; i++) {
		const struct hdf5_mapping *m = &d->mapping[i];

		pack_u32(put, ctx, m->all);
		pack_u32(put, ctx, m->from_rank);
		put(ctx, m->to, 4 * d->own_rank * sizeof *m->to);
		if (!m->all)
			put(ctx, m->from, 4 * m->from_rank * sizeof *m->from);
		pack_text(put, ctx, m->file);
		pack_text(put, ctx, m->dataset);
	}
}

/* ---- back ---------------------------------------------------------------- */

struct input {
	const unsigned char *at;
	size_t left;
};

static bool unpack_exactly(struct input *in, void *out, size_t n)
{
	if (n > in->left)
		return false;
	if (n)
		memcpy(out, in->at, n);
	in->at += n;
	in->left -= n;
	return true;
}

/* Return a copy of n bytes with a NUL behind (malloc'ed); NULL if there are fewer. */
static void *unpack_copy(struct input *in, size_t n)
{
	unsigned char *out = n > in->left ? NULL : malloc(n + 1);

	if (!out)
		return NULL;
	unpack_exactly(in, out, n);
	out[n] = 0;
	return out;
}

static char *unpack_text(struct input *in)
{
	uint32_t n;

	return unpack_exactly(in, &n, sizeof n) ? unpack_copy(in, n) : NULL;
}

static bool unpack_raw_file(struct input *in, struct hdf5_raw *raw)
{
	if (!unpack_exactly(in, &raw->pos, sizeof raw->pos) ||
	    !unpack_exactly(in, &raw->len, sizeof raw->len))
		return false;
	raw->name = unpack_text(in);
	return raw->name;
}

static bool unpack_mapping(struct input *in, unsigned rank,
			   struct hdf5_mapping *m)
{
	uint32_t all;

	if (!unpack_exactly(in, &all, sizeof all) ||
	    !unpack_exactly(in, &m->from_rank, sizeof m->from_rank) ||
	    m->from_rank > RANK_MAX)
		return false;
	m->all = all != 0;
	m->to = unpack_copy(in, 4 * rank * sizeof *m->to);
	if (!m->all)
		m->from = unpack_copy(in, 4 * m->from_rank * sizeof *m->from);
	m->file = unpack_text(in);
	m->dataset = unpack_text(in);
	return m->to && (m->all || m->from) && m->file && m->dataset;
}

static bool unpack_lists(struct input *in, size_t nraw, size_t nmappings,
			 struct hdf5_description *d)
{
	/* Each entry takes at least a byte, which bounds the allocation. */
	if (nraw > in->left || nmappings > in->left)
		return false;
	d->raw = calloc(nraw + 1, sizeof *d->raw);
	d->mapping = calloc(nmappings + 1, sizeof *d->mapping);
	if (!d->raw || !d->mapping)
		return false;
	while (d->nraw < nraw)
		if (!unpack_raw_file(in, &d->raw[d->nraw++]))
			return false;
	while (d->nmappings < nmappings)
		if (!unpack_mapping(in, d->own_rank,
				    &d->mapping[d->nmappings++]))
			return false;
	return in->left == 0;
}

static bool rebuild_pipeline(struct pipeline *p, struct error *err)
{
	cleanup_free struct pipeline *is = malloc(sizeof *is);
	bool ok = is && p->n <= PIPELINE_MAX;

	if (is)
		memcpy(is, p, sizeof *is);
	memset(p, 0, sizeof *p);
	for (unsigned i = 0; ok && i < is->n; i++) {
		struct pipeline_filter *f = &is->filter[i];

		f->name[sizeof f->name - 1] = '\0';
		ok = f->params.n <= CODEC_CD_MAX &&
		     (f->codec ? pipeline_add : pipeline_add_undecoded)(
			     p, f->id, f->name, f->params.cd, f->params.n,
			     f->params.elem_size, err) == 0;
	}
	return ok;
}

/* A bool in untrusted bytes may hold any value. */
static bool is_bool_set(const bool *b)
{
	return *(const unsigned char *)b & 1;
}

/* Check that all numbers are in the range of a description. */
static bool is_description_in_range(const struct hdf5_description *d)
{
	return d->rank <= RANK_MAX && d->own_rank <= d->rank &&
	       (unsigned)d->storage <= HDF5_UNALLOCATED &&
	       (unsigned)d->match <= HDF5_DIFFERENT &&
	       (unsigned)d->stored.kind <= DTYPE_OTHER;
}

int hdf5_description_unpack(const void *data, size_t n,
			    struct hdf5_description *out, struct error *err)
{
	struct input in = {data, n};
	size_t nraw, nmappings;
	bool ok;

	memset(out, 0, sizeof *out);
	ok = unpack_exactly(&in, out, sizeof *out);
	nraw = out->nraw;
	nmappings = out->nmappings;
	out->nraw = out->nmappings = 0;
	out->raw = NULL;
	out->mapping = NULL;
	out->fill = NULL;
	memset(&out->type, 0, sizeof out->type);
	out->stored.big_endian = is_bool_set(&out->stored.big_endian);
	out->stored.vlen = false;
	out->stored.fields = NULL;
	out->stored.nfields = 0;
	out->stored.text = NULL;
	out->said[sizeof out->said - 1] = '\0';
	ok = ok && is_description_in_range(out) &&
	     rebuild_pipeline(&out->pipeline, err);
	out->fill = ok ? unpack_copy(&in, out->fill_size) : NULL;
	if (out->fill && unpack_lists(&in, nraw, nmappings, out))
		return 0;
	hdf5_description_free(out);
	return error_set(err, -EIO, "its description is damaged");
}
