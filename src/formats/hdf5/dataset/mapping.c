/* SPDX-License-Identifier: BSD-2-Clause */
/* The mappings of a virtual dataset, as its file has them. */
/*
 * The library is only asked for names and selections.  It is never made to read through a
 * mapping, because it turns all errors of a source into fill values.
 *
 * For H5S_ALL selections it returns a source space of rank 0, for hyperslabs one whose
 * extent is just the selection's bound.  So the shape of a source is only known when the
 * source is opened.
 */
#include "formats/hdf5/dataset/mapping.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(hsize_t) == sizeof(uint64_t), "hsize_t is 64 bits");

#define NAME_BYTES 65536 /* most bytes of the name of a file or a dataset */

static int mapping_read_name(hid_t dcpl, size_t i,
			     ssize_t (*get)(hid_t, size_t, char *, size_t),
			     char **out, struct error *err)
{
	ssize_t len = get(dcpl, i, NULL, 0);

	if (len <= 0 || len > NAME_BYTES)
		return error_set(err, -EIO,
				 "the name of source %zu of the virtual "
				 "dataset cannot be read",
				 i);
	*out = malloc((size_t)len + 1);
	if (!*out)
		return error_no_memory(err, "the name of a source dataset");
	if (get(dcpl, i, *out, (size_t)len + 1) == len)
		return 0;
	return error_set(
		err, -EIO,
		"the name of source %zu of the virtual dataset cannot be read",
		i);
}

/* Return a selection as one regular slab (malloc'ed, 4 x *rank numbers), or NULL if it
 * is not one. */
static uint64_t *read_slab(hid_t space, unsigned *rank)
{
	hsize_t start[RANK_MAX], stride[RANK_MAX];
	hsize_t count[RANK_MAX], block[RANK_MAX];
	int n = H5Sget_simple_extent_ndims(space);
	const hsize_t *from[4] = {start, stride, count, block};
	uint64_t *out;

	if (n < 0 || n > RANK_MAX || H5Sis_regular_hyperslab(space) <= 0 ||
	    H5Sget_regular_hyperslab(space, start, stride, count, block) < 0)
		return NULL;
	out = malloc((4 * (size_t)n + 1) * sizeof *out);
	for (int k = 0; out && k < 4; k++)
		memcpy(out + k * n, from[k], (size_t)n * sizeof *out);
	*rank = (unsigned)n;
	return out;
}

uint64_t *hdf5_mapping_whole(const struct hdf5_description *d)
{
	unsigned n = d->own_rank;
	uint64_t *out = malloc((4 * (size_t)n + 1) * sizeof *out);

	for (unsigned i = 0; out && i < n; i++) {
		out[i] = 0;
		out[n + i] = out[3 * n + i] = d->shape[i];
		out[2 * n + i] = 1;
	}
	return out;
}

static int read_selections(hid_t dcpl, size_t i, struct hdf5_description *d,
			   struct hdf5_mapping *m, struct error *err)
{
	hid_t to = H5Pget_virtual_vspace(dcpl, i);
	hid_t from = H5Pget_virtual_srcspace(dcpl, i);
	H5S_sel_type a = H5Sget_select_type(to), b = H5Sget_select_type(from);
	unsigned rank = d->own_rank;

	m->all = b == H5S_SEL_ALL;
	if (a == H5S_SEL_ALL)
		m->to = hdf5_mapping_whole(d);
	else if (a == H5S_SEL_HYPERSLABS)
		m->to = read_slab(to, &rank);
	if (b == H5S_SEL_HYPERSLABS)
		m->from = read_slab(from, &m->from_rank);
	if (to >= 0)
		H5Sclose(to);
	if (from >= 0)
		H5Sclose(from);
	if (a < 0 || b < 0)
		return error_set(
			err, -EIO,
			"mapping %zu of the virtual dataset cannot be read", i);
	if (m->to && (m->all || m->from) && rank == d->own_rank)
		return 0;
	return error_set(err, -ENOTSUP,
			 "mapping %zu of the virtual dataset is not a regular "
			 "hyperslab",
			 i);
}

static int read_mapping(hid_t dcpl, size_t i, struct hdf5_description *d,
			struct error *err)
{
	struct hdf5_mapping *m = &d->mapping[i];
	int r = mapping_read_name(dcpl, i, H5Pget_virtual_filename, &m->file,
				  err);

	if (!r)
		r = mapping_read_name(dcpl, i, H5Pget_virtual_dsetname,
				      &m->dataset, err);
	return r < 0 ? r : read_selections(dcpl, i, d, m, err);
}

int hdf5_mapping_read(hid_t dcpl, struct hdf5_description *d, struct error *err)
{
	size_t n = 0;
	int r = 0;

	if (H5Pget_virtual_count(dcpl, &n) < 0 || n >= TENSOR_PARTS_MAX)
		return error_set(
			err, -EIO,
			"the mappings of the virtual dataset cannot be read");
	d->mapping = calloc(n + 1, sizeof *d->mapping);
	if (!d->mapping)
		return error_no_memory(err,
				       "the mappings of a virtual dataset");
	d->nmappings = n;
	for (size_t i = 0; i < n && !r; i++)
		r = read_mapping(dcpl, i, d, err);
	return r;
}
