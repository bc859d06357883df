/* SPDX-License-Identifier: BSD-2-Clause */
/* Lengths of dimensions that datasets share by dimension scales. */
/*
 * A dimension scale is a dataset; the attribute DIMENSION_LIST of others refers, axis
 * by axis, to the scales of these axes (H5DS, which netCDF-4 is made of).  In
 * netCDF-4 a dimension without limit has one length, that of the longest of its
 * variables, while HDF5 stores each dataset as long as it was written; its readers
 * put fill value behind the shorter ones.  (netCDF-C: nc4_find_dim_len,
 * NC4_get_vars.)
 *
 * So the walk notes, of each dataset that may grow along an axis, which scale that
 * axis has, and the longest is known when everything was walked.  A scale that is
 * a variable itself (a coordinate) counts as one.  A scale that netCDF-4 made to hold
 * no more than a name says so in its attribute NAME; it does not count, and is no
 * variable of the Zarr hierarchy.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/number.h"
#include "formats/hdf5/file/vlen.h"
#include "formats/hdf5/walk.h"

/* The references of one attribute: RANK_MAX of them are expected. */
#define LIST_BYTES_MAX (UINT64_C(1) << 20)
/* Chunks of an array that is made longer.  Each is a file of its Zarr views, and the numbers of
 * all files of a tensor have 40 bits (architecture.md, Numbers of things). */
#define PLACES_MAX (UINT64_C(1) << 32)
/* netCDF-C, nc4internal.h: DIM_WITHOUT_VARIABLE. */
#define NO_VARIABLE "This is a netCDF dimension but not a netCDF variable"

/* Set which axes may grow; return false if none may. */
static bool growing_axes(hid_t dset, unsigned rank, bool *grows)
{
	hsize_t dims[RANK_MAX], max[RANK_MAX];
	hid_t space = H5Dget_space(dset);
	bool any = false;
	int n = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);

	if (n == (int)rank && n <= RANK_MAX &&
	    H5Sget_simple_extent_dims(space, dims, max) == n)
		for (unsigned i = 0; i < rank; i++) {
			grows[i] = max[i] == H5S_UNLIMITED;
			any = any || grows[i];
		}
	if (space >= 0)
		H5Sclose(space);
	return any;
}

/* Set *out to the chunk shape for axis_use, NULL if the dataset is not chunked.
 * Return 0 or -ENOMEM. */
static int chunk_shape_of(struct walk *w, hid_t dset, unsigned rank,
			  const uint64_t **out)
{
	hid_t dcpl = hdf5_vlen_create_plist(dset);
	hsize_t dims[RANK_MAX];
	uint64_t chunk[RANK_MAX];
	bool is = dcpl >= 0 && H5Pget_layout(dcpl) == H5D_CHUNKED &&
		  H5Pget_chunk(dcpl, RANK_MAX, dims) == (int)rank;

	if (dcpl >= 0)
		H5Pclose(dcpl);
	*out = NULL;
	if (!is)
		return 0;
	for (unsigned i = 0; i < rank; i++)
		chunk[i] = max_u64(dims[i], 1);
	*out = intern_bytes(&w->s->intern, chunk, rank * sizeof *chunk);
	return *out ? 0
		    : error_no_memory(w->err, "the chunk shape of a dataset");
}

/* Note a use of an axis; sets use.chunk. */
static int note_axis_use(struct walk *w, hid_t dset, struct axis_use use)
{
	int r = chunk_shape_of(w, dset, use.h->t.rank, &use.chunk);

	return r < 0 ? r
	       : vec_push(&w->axes, use)
		       ? 0
		       : error_no_memory(w->err, "the table of growing axes");
}

/* Return true if the attribute is a list of sequences of references, one for each
 * axis. */
static bool is_scale_list(hid_t attr, hid_t type, unsigned rank)
{
	hid_t base = H5Tget_class(type) == H5T_VLEN ? H5Tget_super(type)
						    : H5I_INVALID_HID;
	hid_t space = H5Aget_space(attr);
	bool is = base >= 0 && H5Tequal(base, H5T_STD_REF_OBJ) > 0 &&
		  space >= 0 &&
		  H5Sget_simple_extent_npoints(space) == (hssize_t)rank;

	if (base >= 0)
		H5Tclose(base);
	if (space >= 0)
		H5Sclose(space);
	return is;
}

/* Note the first scale of each axis. A reference to an object is its address. */
static int note_scale_list(struct walk *w, struct hdf5_tensor *h, uint32_t file,
			   hid_t dset, hid_t attr, const bool *grows)
{
	hvl_t list[RANK_MAX] = {{0, NULL}};
	hid_t type = H5Aget_type(attr);
	int r = 0;

	hdf5_vlen_begin(attr, LIST_BYTES_MAX);
	if (type >= 0 && is_scale_list(attr, type, h->t.rank) &&
	    H5Aread(attr, type, list) >= 0)
		for (unsigned i = 0; i < h->t.rank && !r; i++) {
			hobj_ref_t scale;

			if (!grows[i] || !list[i].len || !list[i].p)
				continue;
			memcpy(&scale, list[i].p, sizeof scale);
			r = note_axis_use(
				w, dset,
				(struct axis_use){h, i, file, scale, NULL});
		}
	hdf5_vlen_end();
	if (type >= 0)
		H5Tclose(type);
	return r;
}

static bool is_scale(hid_t dset)
{
	char class[32];

	return hdf5_axes_text(dset, "CLASS", class, sizeof class) &&
	       !strcmp(class, "DIMENSION_SCALE");
}

int hdf5_dimensions_note(struct walk *w, hid_t dset, uint32_t file,
			 struct hdf5_tensor *h)
{
	bool grows[RANK_MAX];
	char name[128];
	H5O_info_t info;
	hid_t attr;
	int r = 0;

	if (h->t.why_not || h->null || !h->t.rank)
		return 0;
	if (is_scale(dset)) {
		h->t.only_dimension =
			hdf5_axes_text(dset, "NAME", name, sizeof name) &&
			!strncmp(name, NO_VARIABLE, strlen(NO_VARIABLE));
		if (!h->t.only_dimension &&
		    growing_axes(dset, h->t.rank, grows) && grows[0] &&
		    H5Oget_info2(dset, &info, H5O_INFO_BASIC) >= 0)
			r = note_axis_use(
				w, dset,
				(struct axis_use){h, 0, file, info.addr, NULL});
		return r;
	}
	/* (Axes of an array type are behind those of the dataset: not growing_axes.) */
	if (!growing_axes(dset, h->t.rank, grows) ||
	    H5Aexists(dset, "DIMENSION_LIST") <= 0)
		return 0;
	attr = H5Aopen(dset, "DIMENSION_LIST", H5P_DEFAULT);
	if (attr < 0)
		return 0;
	r = note_scale_list(w, h, file, dset, attr, grows);
	H5Aclose(attr);
	return r;
}

/* ---- when all is known --------------------------------------------------- */

static int compare_axis_scales(const void *a, const void *b)
{
	const struct axis_use *x = a, *y = b;

	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return (x->scale > y->scale) - (x->scale < y->scale);
}

/* Can a tensor have this shape: do its bytes and its chunks have numbers? */
static bool is_countable(const struct tensor *t, const uint64_t *shape,
			 const uint64_t *chunk)
{
	uint64_t bytes = max_u64(t->dtype.size, 1), places = 1;

	for (unsigned i = 0; i < t->rank; i++) {
		uint64_t n = max_u64(shape[i], 1);

		if (mul_overflows(bytes, n, &bytes) ||
		    (chunk &&
		     mul_overflows(places, div_up(n, chunk[i]), &places)))
			return false;
	}
	return bytes <= INT64_MAX && places <= PLACES_MAX;
}

static int lengthen_axis(struct walk *w, const struct axis_use *use,
			 uint64_t length)
{
	uint64_t shape[RANK_MAX];
	struct tensor *t = &use->h->t;
	unsigned axis = use->axis;

	if (t->shape[axis] >= length)
		return 0;
	memcpy(shape, t->full_shape ? t->full_shape : t->shape,
	       t->rank * sizeof *shape);
	shape[axis] = length;
	if (!is_countable(t, shape, use->chunk)) {
		log_warn("%s: %s: axis %u is shorter in the Zarr view than its "
			 "dimension: as long as that, the array would have too "
			 "many bytes or chunks to be numbered",
			 w->s->path, t->name, axis);
		return 0;
	}
	t->full_shape =
		intern_bytes(&w->s->intern, shape, t->rank * sizeof *shape);
	return t->full_shape
		       ? 0
		       : error_no_memory(w->err, "the full shape of a dataset");
}

int hdf5_dimensions_set(struct walk *w)
{
	struct axis_use *at = w->axes.at;
	size_t n = w->axes.n, first = 0, end;
	int r = 0;

	if (n)
		qsort(at, n, sizeof *at, compare_axis_scales);
	for (; first < n && !r; first = end) {
		uint64_t longest = 0;

		for (end = first;
		     end < n && !compare_axis_scales(&at[first], &at[end]);
		     end++)
			longest = max_u64(longest,
					  at[end].h->t.shape[at[end].axis]);
		for (size_t i = first; i < end && !r; i++)
			r = lengthen_axis(w, &at[i], longest);
	}
	return r;
}
