/* SPDX-License-Identifier: BSD-2-Clause */
/* From what a dataset says of itself to a layout that windows are mapped by. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/hdf5/file/driver.h"
#include "formats/hdf5/file/resolve.h"
#include "formats/hdf5/layout/tensor.h"

/* ---- fill value ---------------------------------------------------------- */

/* Return true if n bytes repeat the first `width` bytes. */
static bool repeats_pattern(const unsigned char *p, size_t n, size_t width)
{
	return n % width == 0 && !memcmp(p, p + width, n - width);
}

int hdf5_fill_new(struct hdf5_source *s, const struct hdf5_description *d,
		  const struct recode *recode, const struct dtype *served,
		  struct fill *out, struct error *err)
{
	static const unsigned char zero[8];
	cleanup_free unsigned char *bytes = NULL;
	size_t n = d->fill_size, elements;

	*out = (struct fill){zero, 1};
	if (!n || !served->size)
		return 0;
	elements = recode ? n / recode->from : 0;
	if (recode ? !elements || n % recode->from : n % served->size)
		return error_set(
			err, -EIO,
			"the size of its fill value does not fit its type");
	if (recode) {
		n = elements * recode->to;
		bytes = malloc(n);
		if (!bytes)
			return error_no_memory(err, "the fill value");
		recode_run(recode, d->fill, bytes, elements);
	}
	/* An array type has a value for each element of the array. */
	if (!repeats_pattern(bytes ? bytes : d->fill, n, served->size))
		return 1;
	out->pattern =
		intern_bytes(&s->intern, bytes ? bytes : d->fill, served->size);
	out->width = served->size;
	return out->pattern ? 0 : error_no_memory(err, "the fill value");
}

/* ---- recoding ------------------------------------------------------------ */

/* Set how stored bytes become served ones: unchanged, by recoding, or by libhdf5. */
static int find_recode(struct hdf5_tensor *h, const struct hdf5_description *d,
		       struct layout *l, struct error *err)
{
	const struct dtype *stored =
		d->match == HDF5_CONVERTIBLE ? &d->stored : &h->t.stored;
	struct recode r;

	if (h->t.dtype.kind == DTYPE_RAGGED && h->t.field) {
		/* The references to sequences, out of the structure. */
		if (!dtype_take_field(stored, h->t.field, &r))
			return error_set(err, -ENOTSUP,
					 "its type is too complicated");
		l->recode = intern_bytes(&h->source->intern, &r, sizeof r);
		return l->recode ? 0
				 : error_no_memory(
					   err, "the conversion of elements");
	}
	if (!dtype_is_binary(&h->t.dtype))
		return 0;
	if (stored->kind == DTYPE_OTHER ||
	    !dtype_recode(stored, &h->t.dtype, h->t.field, &r)) {
		l->by_library = true;
		return 0;
	}
	if (recode_is_identity(&r))
		return 0;
	l->recode = intern_bytes(&h->source->intern, &r, sizeof r);
	return l->recode ? 0
			 : error_no_memory(err, "the conversion of elements");
}

/* ---- kinds of storage ---------------------------------------------------- */

static int layout_set_grid(struct hdf5_source *s,
			   const struct hdf5_description *d,
			   const uint64_t *chunk, uint32_t elem,
			   struct layout *l, struct error *err)
{
	struct grid g;

	memset(&g, 0, sizeof g);
	if (grid_init(&g, d->rank, d->shape, chunk, elem) < 0 ||
	    g.count >= TENSOR_CHUNK_MAX)
		return error_set(err, -ENOTSUP, "the dataset is too large");
	l->grid = intern_bytes(&s->intern, &g, sizeof g);
	return l->grid ? 0 : error_no_memory(err, "the grid of chunks");
}

/* Make a grid of one chunk that is the whole dataset. */
static int layout_set_whole(struct hdf5_source *s,
			    const struct hdf5_description *d, uint32_t elem,
			    struct layout *l, struct error *err)
{
	uint64_t whole[RANK_MAX];

	for (unsigned i = 0; i < d->rank; i++)
		whole[i] = max_u64(d->shape[i], 1);
	return layout_set_grid(s, d, whole, elem, l, err);
}

/* Cut a dataset that libhdf5 converts as a whole into rows of about a MiB. */
static int layout_set_rows(struct hdf5_source *s,
			   const struct hdf5_description *d, uint32_t elem,
			   struct layout *l, struct error *err)
{
	uint64_t chunk[RANK_MAX], bytes = elem;

	for (unsigned i = d->rank; i-- > 0;) {
		uint64_t n = max_u64(d->shape[i], 1);

		chunk[i] =
			i >= d->own_rank
				? n
				: min_u64(n, max_u64(TENSOR_PIECE / bytes, 1));
		if (mul_overflows(bytes, chunk[i], &bytes))
			bytes = UINT64_MAX;
	}
	l->kind = LAYOUT_CHUNKED;
	return layout_set_grid(s, d, chunk, elem, l, err);
}

static uint64_t layout_stored_bytes(const struct layout *l)
{
	uint64_t n = l->grid->count ? l->grid->chunk_bytes : 0;

	return l->recode ? n / l->recode->to * l->recode->from : n;
}

static int layout_set_stretches(struct hdf5_tensor *h, uint32_t file,
				const struct hdf5_description *d,
				struct layout *l, struct error *err)
{
	uint64_t want = layout_stored_bytes(l), begin = 0;
	struct stretch *x = calloc(d->nraw, sizeof *x);
	uint32_t n = 0;

	l->stretches = x;
	if (!x)
		return error_no_memory(err, "the table of external files");
	for (size_t i = 0; i < d->nraw && begin < want; i++) {
		const struct hdf5_raw *raw = &d->raw[i];
		int r = hdf5_resolve(h->source, file, raw->name,
				     HDF5_PREFIX_RAW, &x[n].file, err);

		if (r < 0)
			return r;
		if (!raw->len)
			continue;
		x[n].begin = begin;
		x[n].pos = raw->pos;
		x[n].len = min_u64(raw->len, want - begin);
		begin += x[n++].len;
	}
	l->nstretches = n;
	if (begin < want)
		return error_set(err, -EBADMSG,
				 "its external files have %" PRIu64
				 " bytes of %" PRIu64,
				 begin, want);
	return 0;
}

/* Map contiguous data of an HDF5 file that consists of several files on disk. */
static int layout_set_joined(struct hdf5_tensor *h, uint32_t file,
			     const struct hdf5_description *d, struct layout *l,
			     struct error *err)
{
	uint64_t want = layout_stored_bytes(l), begin = 0, pos = d->pos;
	struct handles *handles = h->source->handles;
	struct handles_piece piece;
	struct stretch *x = NULL;
	uint32_t n = 0;

	while (begin < want) {
		struct stretch *more;

		if (!handles_piece_at(handles, file, pos, &piece)) {
			free(x);
			return error_set(err, -EBADMSG,
					 "its data lie outside of the files");
		}
		more = reallocarray(x, n + 1, sizeof *x);
		if (!more) {
			free(x);
			return error_no_memory(err, "the table of file pieces");
		}
		x = more;
		x[n] = (struct stretch){
			.begin = begin,
			.file = piece.file,
			.pos = pos - piece.begin,
			.len = min_u64(want - begin,
				       piece.size - (pos - piece.begin))};
		begin += x[n].len;
		pos += x[n++].len;
	}
	l->stretches = x;
	l->nstretches = n;
	return 0;
}

static int layout_set_contiguous(struct hdf5_tensor *h, uint32_t file,
				 const struct hdf5_description *d,
				 struct layout *l, struct error *err)
{
	int r;

	l->called = l->by_library && !d->nraw ? "contiguous" : NULL;
	if (l->called)
		return layout_set_rows(h->source, d, h->t.dtype.size, l, err);
	r = layout_set_whole(h->source, d, h->t.dtype.size, l, err);
	if (r < 0)
		return r;
	l->kind = LAYOUT_LINEAR;
	if (d->nraw && l->by_library)
		return error_set(err, -ENOTSUP,
				 "numbers of its type in external raw files "
				 "cannot be converted");
	if (d->nraw)
		return layout_set_stretches(h, file, d, l, err);
	l->pos = d->pos;
	if (d->stored_bytes < layout_stored_bytes(l))
		return error_set(err, -EBADMSG,
				 "it stores %" PRIu64 " bytes of %" PRIu64,
				 d->stored_bytes, layout_stored_bytes(l));
	return l->joined ? layout_set_joined(h, file, d, l, err) : 0;
}

static int layout_set_chunked(struct hdf5_tensor *h,
			      const struct hdf5_description *d,
			      struct layout *l, struct error *err)
{
	int r = layout_set_grid(h->source, d, d->chunk, h->t.dtype.size, l,
				err);

	l->kind = LAYOUT_CHUNKED;
	l->raw_edges = d->raw_edges;
	if (d->by_library || !hdf5_driver_ok())
		l->by_library = true;
	l->indexed = hdf5_driver_ok();
	return r;
}

static int layout_set_nested(struct hdf5_tensor *h, uint32_t p,
			     const struct hdf5_description *d, struct layout *l,
			     struct error *err)
{
	struct hdf5_place at = {h->source, h->t.parts[p].file,
				h->t.parts[p].dataset};
	struct hdf5_description is = *d; /* what it points to stays d's */
	struct hdf5_tensor *inner;

	if (d->match != HDF5_SAME)
		return error_set(err, -ENOTSUP,
				 "it is a virtual dataset of another type");
	if (h->t.depth + 1 >= TENSOR_DEPTH_MAX)
		return error_set(err, -EIO,
				 "virtual datasets are nested deeper than %d",
				 TENSOR_DEPTH_MAX);
	inner = hdf5_tensor_nested(h, &at, d, err);
	if (!inner)
		return err && err->code ? err->code : -ENOMEM;
	l->kind = LAYOUT_NESTED;
	l->nested = &inner->t;
	/* Axes without end are as long as the sources say, not the header. */
	memcpy(is.shape, inner->t.shape, inner->t.rank * sizeof *is.shape);
	return layout_set_whole(h->source, &is, h->t.dtype.size, l, err);
}

static int layout_set_kind(struct hdf5_tensor *h, uint32_t p,
			   const struct hdf5_description *d, struct layout *l,
			   struct error *err)
{
	uint32_t elem = h->t.dtype.size;

	switch (d->storage) {
	case HDF5_CHUNKED:
		return layout_set_chunked(h, d, l, err);
	case HDF5_CONTIGUOUS:
		return layout_set_contiguous(h, h->t.parts[p].file, d, l, err);
	case HDF5_COMPACT:
		l->kind = LAYOUT_FETCHED;
		break;
	case HDF5_VIRTUAL:
		return layout_set_nested(h, p, d, l, err);
	case HDF5_UNALLOCATED:
		l->called = l->by_library ? "not allocated" : NULL;
		if (l->called)
			return layout_set_rows(h->source, d, elem, l, err);
		l->kind = LAYOUT_ABSENT;
		break;
	}
	return layout_set_whole(h->source, d, elem, l, err);
}

int hdf5_layout_new(struct hdf5_tensor *h, uint32_t p,
		    const struct hdf5_description *d, struct layout **out,
		    struct error *err)
{
	struct layout *l = calloc(1, sizeof *l);
	int r;

	if (!l)
		return error_no_memory(err, "the layout of a dataset");
	l->file = h->t.parts[p].file;
	l->joined = handles_is_joined(h->source->handles, l->file);
	l->fill = h->t.fill;
	r = find_recode(h, d, l, err);
	if (!r && !l->by_library && dtype_is_binary(&h->t.dtype))
		r = hdf5_fill_new(h->source, d, l->recode, &h->t.dtype,
				  &l->fill, err);
	if (r == 1) { /* no simple pattern: let the library fill in */
		l->by_library = true;
		l->recode = NULL;
		r = 0;
	}
	if (!r)
		r = layout_set_kind(h, p, d, l, err);
	l->pipeline = r < 0 ? NULL
			    : intern_bytes(&h->source->intern, &d->pipeline,
					   sizeof d->pipeline);
	if (!r && !l->pipeline)
		r = error_no_memory(err, "the filter pipeline");
	if (r < 0) {
		tensor_free(l->nested);
		free((void *)l->stretches);
		free(l);
		return r;
	}
	*out = l;
	return 0;
}
