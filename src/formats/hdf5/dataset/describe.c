/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads what a file says about a dataset: shape, type, filters, where its bytes are. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/hdf5/dataset/description.h"
#include "formats/hdf5/dataset/mapping.h"
#include "formats/hdf5/file/driver.h"
#include "formats/hdf5/file/vlen.h"

void hdf5_description_free(struct hdf5_description *d)
{
	for (size_t i = 0; d->raw && i < d->nraw; i++)
		free(d->raw[i].name);
	for (size_t i = 0; d->mapping && i < d->nmappings; i++) {
		free(d->mapping[i].file);
		free(d->mapping[i].dataset);
		free(d->mapping[i].to);
		free(d->mapping[i].from);
	}
	free(d->raw);
	free(d->mapping);
	free(d->fill);
	memset(d, 0, sizeof *d);
}

/* ---- shape and type ------------------------------------------------------ */

static int describe_shape(hid_t dset, struct hdf5_description *d,
			  struct error *err)
{
	hsize_t dims[RANK_MAX];
	hid_t space = H5Dget_space(dset);
	H5S_class_t class =
		space < 0 ? H5S_NO_CLASS : H5Sget_simple_extent_type(space);
	int rank = 0;

	if (class == H5S_SIMPLE) {
		rank = H5Sget_simple_extent_ndims(space);
		if (rank > RANK_MAX ||
		    H5Sget_simple_extent_dims(space, dims, NULL) < 0)
			rank = -1;
	}
	if (space >= 0)
		H5Sclose(space);
	if (class == H5S_NO_CLASS || rank < 0)
		return error_set(err, -EIO, "its shape cannot be read");
	d->null = class == H5S_NULL;
	d->rank = d->own_rank = (unsigned)rank;
	for (int i = 0; i < rank; i++)
		d->shape[i] = dims[i];
	return 0;
}

/* Add the axes of an array type behind those of the dataset. */
static int add_axes(struct hdf5_description *d, const struct hdf5_type *type,
		    struct error *err)
{
	if (type->rank > RANK_MAX - d->rank)
		return error_set(err, -ENOTSUP, "it has more than %d axes",
				 RANK_MAX);
	for (unsigned i = 0; i < type->rank; i++)
		d->shape[d->rank++] = type->dims[i];
	return 0;
}

static void compare_types(struct hdf5_description *d,
			  const struct hdf5_type *is,
			  const struct hdf5_type *wanted)
{
	d->match = hdf5_type_match(is, wanted, &d->stored);
	if (d->match == HDF5_DIFFERENT)
		hdf5_type_describe(&is->stored, d->said, sizeof d->said);
}

static int read_type(struct hdf5_source *s, hid_t dset,
		     const struct hdf5_type *wanted, struct hdf5_description *d,
		     struct hdf5_type *is, struct error *err)
{
	int r = hdf5_type_read(&s->intern, dset, s->views.source_order, is);

	if (r < 0)
		return error_no_memory(err, "the type of a dataset");
	if (wanted)
		compare_types(d, is, wanted);
	else
		d->type = *is;
	return add_axes(d, is, err);
}

/* ---- fill value ---------------------------------------------------------- */

static int read_fill(hid_t dcpl, hid_t file_type, const struct hdf5_type *is,
		     struct hdf5_description *d, struct error *err)
{
	H5D_fill_value_t defined;
	size_t size, i = 0;
	hid_t type;
	herr_t ok;

	if (H5Pfill_value_defined(dcpl, &defined) < 0)
		return error_set(err, -EIO, "the fill value cannot be read");
	if (defined != H5D_FILL_VALUE_USER_DEFINED ||
	    !dtype_is_binary(&is->served))
		return 0;
	type = is->stored.kind == DTYPE_OTHER
		       ? hdf5_type_memory(file_type, &is->served, NULL)
		       : H5Tcopy(file_type);
	size = type < 0 ? 0 : H5Tget_size(type);
	d->fill = calloc(1, size ? size : 1);
	if (!d->fill) {
		H5Tclose(type);
		return error_no_memory(err, "a fill value");
	}
	ok = type < 0 ? -1 : H5Pget_fill_value(dcpl, type, d->fill);
	if (type >= 0)
		H5Tclose(type);
	if (ok < 0)
		return error_set(err, -EIO, "the fill value cannot be read");
	while (i < size && !d->fill[i])
		i++;
	d->fill_size = i < size ? size : 0;
	return 0;
}

/* ---- chunked ------------------------------------------------------------- */

/* A filter message has 16 bits for the number of its parameters. */
#define FILTER_PARAMETERS_MAX 65535u

/*
 * Add filter `i` to the pipeline.  If our code cannot undo it but the library can, with a
 * filter that it has loaded or finds among its plugins, d->by_library is set.  A filter
 * with more parameters than our decoders take (n-bit for a structure of 5 members has 36)
 * is left to the library, too.
 */
static int add_filter(hid_t dcpl, unsigned i, uint32_t elem,
		      struct hdf5_description *d, struct error *err)
{
	cleanup_free unsigned *cd = NULL;
	unsigned flags = 0;
	size_t n = 0, room;
	char name[64] = "";
	H5Z_filter_t id =
		H5Pget_filter2(dcpl, i, &flags, &n, NULL, 0, NULL, NULL);
	int r;

	room = n;
	if (id >= 0 && n <= FILTER_PARAMETERS_MAX) {
		cd = calloc(n + 1, sizeof *cd);
		if (!cd)
			return error_no_memory(err,
					       "the parameters of a filter");
		id = H5Pget_filter2(dcpl, i, &flags, &n, cd, sizeof name, name,
				    NULL);
	}
	if (id < 0 || !cd || n != room)
		return error_set(err, -EIO, "filter %u cannot be read", i);
	name[sizeof name - 1] = '\0';
	r = pipeline_add(&d->pipeline, (uint32_t)id, name, cd, (unsigned)n,
			 elem, err);
	if (r < 0)
		return r;
	if (!d->pipeline.filter[d->pipeline.n - 1].codec &&
	    H5Zfilter_avail(id) > 0)
		d->by_library = 1;
	return 0;
}

static int read_chunked(hid_t dcpl, uint32_t elem, struct hdf5_description *d,
			struct error *err)
{
	hsize_t chunk[RANK_MAX];
	unsigned opts = 0;
	int n = H5Pget_nfilters(dcpl), r = 0;

	if (H5Pget_chunk(dcpl, RANK_MAX, chunk) != (int)d->own_rank ||
	    H5Pget_chunk_opts(dcpl, &opts) < 0 || n < 0)
		return error_set(err, -EIO, "the chunk shape cannot be read");
	for (unsigned i = 0; i < d->rank; i++)
		d->chunk[i] =
			i < d->own_rank ? chunk[i] : max_u64(d->shape[i], 1);
	d->raw_edges = (opts & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) != 0;
	d->storage = HDF5_CHUNKED;
	for (int i = 0; i < n && !r; i++)
		r = add_filter(dcpl, (unsigned)i, elem, d, err);
	return r;
}

/* ---- contiguous ---------------------------------------------------------- */

static int read_raw(hid_t dcpl, unsigned i, struct hdf5_raw *raw,
		    struct error *err)
{
	char name[4096];
	hsize_t size = 0;
	off_t pos = 0;

	if (H5Pget_external(dcpl, i, sizeof name, name, &pos, &size) < 0 ||
	    pos < 0)
		return error_set(err, -EIO,
				 "the name of an external file cannot be read");
	name[sizeof name - 1] = '\0';
	raw->name = strdup(name);
	raw->pos = (uint64_t)pos;
	raw->len = size; /* H5F_UNLIMITED: to the end of the data */
	return raw->name ? 0
			 : error_no_memory(err, "the name of an external file");
}

#define RAW_MAX 65536

static int read_contiguous(hid_t dset, hid_t dcpl, struct hdf5_description *d,
			   struct error *err)
{
	int n = H5Pget_external_count(dcpl), r = 0;

	d->storage = HDF5_CONTIGUOUS;
	if (n < 0 || n > RAW_MAX)
		return error_set(err, -EIO,
				 "its list of external files cannot be read");
	if (n == 0) {
		d->pos = H5Dget_offset(dset);
		d->stored_bytes = H5Dget_storage_size(dset);
		/* The library adds the user block even to an undefined address, so the
		 * storage size decides, too. */
		if (d->pos == HADDR_UNDEF || d->stored_bytes == 0)
			d->storage = HDF5_UNALLOCATED;
		else
			d->pos = hdf5_driver_position(dset, d->pos);
		return 0;
	}
	d->raw = calloc((size_t)n, sizeof *d->raw);
	if (!d->raw)
		return error_no_memory(err, "the list of external files");
	for (; d->nraw < (size_t)n && !r; d->nraw++)
		r = read_raw(dcpl, (unsigned)d->nraw, &d->raw[d->nraw], err);
	return r;
}

/* ---- all of it ----------------------------------------------------------- */

static int read_storage(hid_t dset, hid_t dcpl, uint32_t elem,
			struct hdf5_description *d, struct error *err)
{
	switch (H5Pget_layout(dcpl)) {
	case H5D_COMPACT:
		d->storage = HDF5_COMPACT;
		return 0;
	case H5D_CONTIGUOUS:
		return read_contiguous(dset, dcpl, d, err);
	case H5D_CHUNKED:
		return read_chunked(dcpl, elem, d, err);
	case H5D_VIRTUAL:
		d->storage = HDF5_VIRTUAL;
		return hdf5_mapping_read(dcpl, d, err);
	default:
		return error_set(err, -ENOTSUP,
				 "its storage layout is unknown");
	}
}

int hdf5_describe(struct hdf5_source *s, hid_t dset,
		  const struct hdf5_type *wanted, struct hdf5_description *out,
		  struct error *err)
{
	hid_t dcpl = hdf5_vlen_create_plist(dset), type = H5Dget_type(dset);
	struct hdf5_type is;
	int r;

	memset(out, 0, sizeof *out);
	if (dcpl < 0 || type < 0)
		r = error_set(err, -EIO, "its header cannot be read");
	else
		r = describe_shape(dset, out, err);
	if (!r)
		r = read_type(s, dset, wanted, out, &is, err);
	if (!r && !out->null)
		r = read_storage(dset, dcpl, hdf5_type_bytes(&is), out, err);
	if (!r && !out->null)
		r = read_fill(dcpl, type, &is, out, err);
	if (type >= 0)
		H5Tclose(type);
	if (dcpl >= 0)
		H5Pclose(dcpl);
	if (r < 0)
		hdf5_description_free(out);
	return r;
}

int hdf5_describe_here(const struct hdf5_place *at,
		       const struct hdf5_type *wanted,
		       struct hdf5_description *out, struct error *err)
{
	struct hdf5_opened o;
	struct error why = {0};
	int r;

	if (hdf5_place_open(at, &o, &why) < 0)
		return hdf5_describe_linked(at, wanted, out, err);
	if (H5Iget_type(o.object) != H5I_DATASET)
		r = error_set(err, -EIO, "it is not a dataset");
	else
		r = hdf5_describe(at->s, o.object, wanted, out, err);
	if (r < 0)
		hdf5_place_prefix(at, err);
	hdf5_place_close(&o);
	return r;
}
