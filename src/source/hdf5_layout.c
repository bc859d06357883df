/* SPDX-License-Identifier: BSD-2-Clause */
/* How a dataset is stored: contiguous, compact or chunked, filters, fill. */
#include "source/hdf5.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"

/* The type of the dataset is also the one in memory: nothing is converted. */
int hdf5_fill_read(const struct tensor *t, hid_t dset, hid_t dcpl,
		   struct fill *fill, unsigned char bytes[32],
		   struct error *err)
{
	static const unsigned char zero[8];
	H5D_fill_value_t defined;
	unsigned swap;
	hid_t type;
	herr_t ok;

	fill->pattern = zero;
	fill->width = 1;
	if (H5Pfill_value_defined(dcpl, &defined) < 0)
		return error_set(err, -EIO, "the fill value cannot be read");
	if (defined != H5D_FILL_VALUE_USER_DEFINED ||
	    t->stored.kind >= DTYPE_STRING || t->stored.size > 32)
		return 0;
	type = H5Dget_type(dset);
	ok = type < 0 ? -1 : H5Pget_fill_value(dcpl, type, bytes);
	if (type >= 0)
		H5Tclose(type);
	if (ok < 0)
		return error_set(err, -EIO, "the fill value cannot be read");
	swap = dtype_swap_width(&t->stored);
	if (t->stored.big_endian != t->dtype.big_endian && swap)
		swap_bytes(bytes, t->stored.size, swap);
	for (unsigned i = 0; i < t->stored.size; i++)
		if (bytes[i]) {
			fill->pattern = bytes;
			fill->width = t->stored.size;
			break;
		}
	return 0;
}

/* ---- chunked ------------------------------------------------------------- */

static int read_filters(hid_t dcpl, uint32_t elem, struct pipeline *p,
			struct error *err)
{
	int n = H5Pget_nfilters(dcpl);

	memset(p, 0, sizeof *p);
	if (n < 0)
		return error_set(err, -EIO, "the filters cannot be read");
	for (int i = 0; i < n; i++) {
		unsigned cd[CODEC_CD_MAX], flags = 0;
		size_t n_cd = CODEC_CD_MAX;
		char name[64] = "";
		H5Z_filter_t id =
			H5Pget_filter2(dcpl, (unsigned)i, &flags, &n_cd, cd,
				       sizeof name, name, NULL);
		int r;

		if (id < 0)
			return error_set(err, -EIO, "filter %d cannot be read",
					 i);
		r = pipeline_add(p, (uint32_t)id, name, cd,
				 (unsigned)min_u64(n_cd, CODEC_CD_MAX), elem,
				 err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Keep grid and filters once for all parts that have the same. */
static int keep_shared(struct hdf5_source *s, struct layout *l,
		       const struct grid *g, const struct pipeline *p,
		       struct error *err)
{
	l->grid = intern_bytes(&s->intern, g, sizeof *g);
	l->pipeline = intern_bytes(&s->intern, p, sizeof *p);
	if (!l->grid || !l->pipeline)
		return error_set(err, -ENOMEM, "out of memory");
	return 0;
}

static int read_chunked(const struct tensor *t, hid_t dcpl, const hsize_t *dims,
			struct layout *l, struct grid *g, struct pipeline *p,
			struct error *err)
{
	hsize_t chunk[RANK_MAX];
	unsigned opts = 0;

	if (H5Pget_chunk(dcpl, RANK_MAX, chunk) != (int)t->rank ||
	    H5Pget_chunk_opts(dcpl, &opts) < 0)
		return error_set(err, -EIO, "the chunk shape cannot be read");
	if (grid_init(g, t->rank, (const uint64_t *)dims,
		      (const uint64_t *)chunk, t->stored.size) < 0 ||
	    g->count >= TENSOR_CHUNK_MAX)
		return error_set(err, -ENOTSUP, "it has too many chunks");
	l->kind = LAYOUT_CHUNKED;
	l->by_library = !hdf5_driver_ok();
	l->raw_edges = opts & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS;
	return read_filters(dcpl, t->stored.size, p, err);
}

/* ---- contiguous ---------------------------------------------------------- */

static int read_contiguous(hid_t dset, hid_t dcpl, const struct grid *g,
			   struct layout *l, struct error *err)
{
	haddr_t at;
	hsize_t stored;

	if (H5Pget_external_count(dcpl) > 0)
		return error_set(err, -ENOTSUP,
				 "it is stored in external raw files: not "
				 "supported");
	stored = H5Dget_storage_size(dset);
	at = H5Dget_offset(dset);
	if (at == HADDR_UNDEF) {
		/* Never written, or nothing to write. */
		l->kind = LAYOUT_ABSENT;
		return 0;
	}
	if (stored < g->chunk_bytes)
		return error_set(err, -EBADMSG,
				 "it stores %" PRIuHSIZE " bytes of %" PRIu64,
				 stored, g->chunk_bytes);
	l->kind = LAYOUT_LINEAR;
	l->pos = at;
	return 0;
}

/* ---- any ----------------------------------------------------------------- */

static int read_layout(struct hdf5_source *s, const struct tensor *t,
		       hid_t dset, hid_t dcpl, const hsize_t *dims,
		       struct layout *l, struct error *err)
{
	H5D_layout_t kind = H5Pget_layout(dcpl);
	uint64_t whole[RANK_MAX];
	struct pipeline p;
	struct grid g;
	int r;

	r = hdf5_fill_read(t, dset, dcpl, &l->fill, l->fill_bytes, err);
	if (r < 0)
		return r;
	memset(&p, 0, sizeof p);
	for (unsigned i = 0; i < t->rank; i++)
		whole[i] = max_u64(dims[i], 1);
	if (grid_init(&g, t->rank, (const uint64_t *)dims, whole,
		      t->stored.size) < 0)
		return error_set(err, -ENOTSUP, "it is too large");
	if (kind == H5D_COMPACT)
		l->kind = LAYOUT_FETCHED;
	else if (kind == H5D_CONTIGUOUS)
		r = read_contiguous(dset, dcpl, &g, l, err);
	else if (kind == H5D_CHUNKED)
		r = read_chunked(t, dcpl, dims, l, &g, &p, err);
	else
		r = error_set(err, -ENOTSUP,
			      kind == H5D_VIRTUAL
				      ? "it is itself a virtual dataset: not "
					"supported"
				      : "its layout is unknown");
	return r < 0 ? r : keep_shared(s, l, &g, &p, err);
}

int hdf5_layout_read(struct hdf5_source *s, const struct tensor *t, hid_t dset,
		     uint32_t file, struct layout **out, struct error *err)
{
	hid_t space = H5Dget_space(dset), dcpl = H5Dget_create_plist(dset);
	struct layout *l = calloc(1, sizeof *l);
	hsize_t dims[RANK_MAX] = {0};
	int r;

	*out = NULL;
	if (!l)
		r = error_set(err, -ENOMEM, "out of memory");
	else if (space < 0 || dcpl < 0 ||
		 H5Sget_simple_extent_dims(space, dims, NULL) != (int)t->rank)
		r = error_set(err, -EIO, "the shape cannot be read");
	else
		r = read_layout(s, t, dset, dcpl, dims, l, err);
	if (space >= 0)
		H5Sclose(space);
	if (dcpl >= 0)
		H5Pclose(dcpl);
	if (r < 0) {
		free(l);
		return r;
	}
	l->file = file;
	if (t->stored.big_endian != t->dtype.big_endian)
		l->swap = dtype_swap_width(&t->stored);
	*out = l;
	return 0;
}
