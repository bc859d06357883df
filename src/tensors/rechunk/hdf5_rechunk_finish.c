/* SPDX-License-Identifier: BSD-2-Clause */
/* The dataset around new chunks: type, shape and fill value as they were. */
/*
 * The type is the source's own wherever elements are served as they are stored, which is
 * in all but odd cases (dtype-order=source is set); else the one that they are converted
 * to for readers of a mount.  Axes of array types have become axes of the dataset, as
 * h5py shows them.
 *
 * The source's header is read here: see hdf5_rechunk_apart.c.
 */
#include "tensors/rechunk/hdf5_rechunk_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/hdf5/file/driver.h"
#include "formats/hdf5/layout/tensor.h"
#include "formats/hdf5/type/dtype.h"

/* Bytes of an attribute, with what its values point to. */
#define ATTRIBUTE_MOST (UINT64_C(64) << 20)
/* An object header as old as those we write has room for one of 64 KiB, with its name and
 * type. */
#define ATTRIBUTE_LARGE (UINT64_C(32) << 10)

const struct hdf5_tensor *rechunk_hdf5(const struct tensor *t)
{
	return t->ops == &hdf5_tensor_ops ? (const struct hdf5_tensor *)t
					  : NULL;
}

const char *rechunk_object(const struct tensor *t)
{
	const struct hdf5_tensor *h = rechunk_hdf5(t);

	return h ? h->object : t->name;
}

/* ---- type and shape ------------------------------------------------------ */

static bool served_as_stored(const struct tensor *t)
{
	return !t->field && t->stored.size == t->dtype.size &&
	       dtype_equal(&t->stored, &t->dtype);
}

/* The type of one element, behind axes of array types. */
static hid_t element_type(const struct tensor *t, hid_t object)
{
	hid_t type = H5Dget_type(object), result;

	while (type >= 0 && H5Tget_class(type) == H5T_ARRAY &&
	       H5Tget_size(type) != t->dtype.size) {
		hid_t super = H5Tget_super(type);

		H5Tclose(type);
		type = super;
	}
	if (type < 0)
		return type;
	if (served_as_stored(t) && H5Tget_size(type) == t->dtype.size)
		result = H5Tcopy(type);
	else
		result = hdf5_type_memory(type, &t->dtype, NULL);
	H5Tclose(type);
	return result;
}

static int output_type(const struct tensor *t, hid_t object, hid_t *type,
		       struct error *err)
{
	const struct hdf5_tensor *h = rechunk_hdf5(t);

	*type = object >= 0 && h && !h->member && !t->field
			? element_type(t, object)
			: H5I_INVALID_HID;
	if (*type >= 0 && H5Tget_size(*type) == t->dtype.size)
		return 0;
	if (*type >= 0)
		H5Tclose(*type);
	return hdf5_type_of_dtype(&t->dtype, type, err);
}

/* ---- the file ------------------------------------------------------------ */

/* The order that the source keeps of its attributes. */
static unsigned attribute_order(hid_t source)
{
	hid_t dcpl = H5Dget_create_plist(source);
	unsigned order = 0;

	if (dcpl < 0)
		return 0;
	H5Pget_attr_creation_order(dcpl, &order);
	H5Pclose(dcpl);
	return order;
}

/* The type of the new dataset: the named one, if the source's is that. */
static int choose_type(const struct tensor *t, hid_t source, hid_t named,
		       hid_t *type, struct error *err)
{
	hid_t own = named >= 0 ? H5Dget_type(source) : H5I_INVALID_HID;
	bool same = own >= 0 && served_as_stored(t) &&
		    H5Tget_size(own) == t->dtype.size;

	if (own >= 0)
		H5Tclose(own);
	if (!same)
		return output_type(t, source, type, err);
	*type = named;
	H5Iinc_ref(named);
	return 0;
}

int rechunk_make_dataset(struct rechunk *w, const char *name, hid_t group,
			 hid_t source, hid_t named, hid_t *dset,
			 struct error *err)
{
	struct tensor *t = w->t;
	cleanup_free unsigned char *fill = NULL;
	struct build_dataset d = {.path = name,
				  .rank = t->rank,
				  .shape = t->shape,
				  .chunk = w->grid.chunk,
				  .max = w->grows ? w->max : NULL,
				  .pipeline = &w->pipeline,
				  .chunks = w->chunks.at,
				  .n_chunks = w->chunks.n};
	int r = choose_type(t, source, named, &d.type, err);

	if (r < 0)
		return r;
	d.attr_order = source >= 0 ? attribute_order(source) : 0;
	if (!d.attr_order && source >= 0 && hdf5_rest_large_attribute(source))
		d.attr_order = H5P_CRT_ORDER_TRACKED;
	if (w->fill.width == t->dtype.size && t->dtype.size) {
		fill = malloc(t->dtype.size);
		if (fill)
			memcpy(fill, w->fill.pattern, t->dtype.size);
		d.fill = fill;
	}
	r = build_dataset(w->build, group, &d, dset, err);
	H5Tclose(d.type);
	return r;
}

/* Where the header of the source is: its own, or behind an external link. */
static hid_t open_source(const struct tensor *t, struct hdf5_opened *o)
{
	const struct hdf5_tensor *h = rechunk_hdf5(t);
	struct hdf5_place at;

	o->file = o->object = H5I_INVALID_HID;
	if (!h || t->field || h->member)
		return H5I_INVALID_HID;
	at = (struct hdf5_place){h->source, h->file, h->object};
	if (hdf5_place_open(&at, o, NULL) == 0)
		return o->object;
	o->file = H5I_INVALID_HID;
	if (t->nparts == 1) {
		at.file = t->parts[0].file;
		at.object = t->parts[0].dataset;
		if (hdf5_place_open(&at, o, NULL) == 0)
			return o->object;
		o->file = H5I_INVALID_HID;
	}
	return H5I_INVALID_HID;
}

bool rechunk_max_shape(const struct tensor *t, uint64_t *max)
{
	struct hdf5_opened o;
	hid_t dset = open_source(t, &o), space;
	hsize_t most[RANK_MAX];
	bool grows = false;

	if (dset < 0)
		return false;
	space = H5Dget_space(dset);
	if (space >= 0 && H5Sget_simple_extent_ndims(space) == (int)t->rank &&
	    H5Sget_simple_extent_dims(space, NULL, most) >= 0)
		for (unsigned i = 0; i < t->rank; i++) {
			max[i] = max_u64(most[i], t->shape[i]);
			grows |= max[i] > t->shape[i];
		}
	if (space >= 0)
		H5Sclose(space);
	hdf5_place_close(&o);
	return grows;
}

int rechunk_make_alone(struct rechunk *w, const char *name,
		       struct rechunk_answer *a, struct error *err)
{
	struct hdf5_opened o;
	hid_t file = H5I_INVALID_HID, source = open_source(w->t, &o), dset;
	int r;

	if (o.file < 0) /* what is open has the lock */
		hdf5_lock();
	r = build_open(w->build, &file, err);
	if (r == 0) {
		r = rechunk_make_dataset(w, name, file, source, H5I_INVALID_HID,
					 &dset, err);
		if (r == 0 && source >= 0)
			hdf5_rest_attributes(source, dset, &a->found.lost);
		if (r == 0)
			r = build_close(w->build, file, err);
		else
			H5Fclose(file);
	}
	if (o.file < 0)
		hdf5_unlock();
	else
		hdf5_place_close(&o);
	return r;
}
