/* SPDX-License-Identifier: BSD-2-Clause */
/* A tensor read from HDF5: what a dataset of the main file is. */
#include "source/hdf5.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "tensor/text.h"

static struct hdf5_tensor *hdf5_of(struct tensor *t)
{
	return (struct hdf5_tensor *)t;
}

/* ---- attributes ---------------------------------------------------------- */

char *hdf5_tensor_attributes(struct tensor *t, struct error *err)
{
	struct hdf5_source *s = hdf5_of(t)->source;
	char *text = NULL;
	hid_t file, object;

	hdf5_lock();
	if (hdf5_open(s->handles, s->file, &file, err) == 0) {
		object = H5Oopen(file, t->name, H5P_DEFAULT);
		text = object < 0 ? strdup("{}")
				  : hdf5_attributes_read(object, err);
		if (object >= 0)
			H5Oclose(object);
		H5Fclose(file);
	}
	hdf5_unlock();
	return text;
}

static void hdf5_tensor_free(struct tensor *t)
{
	free(hdf5_of(t));
}

const struct tensor_ops hdf5_tensor_ops = {
	.learn = hdf5_call_learn,
	.locate = hdf5_call_locate,
	.fetch = hdf5_call_fetch,
	.strings = hdf5_call_strings,
	.attributes = hdf5_call_attributes,
	.free = hdf5_tensor_free,
};

/* ---- making one ---------------------------------------------------------- */

/* Chunks may have been stored without a filter, so one that we lack does not
 * hide the dataset; it says so. */
static int note_filter(struct tensor *t, const struct layout *l,
		       struct error *err)
{
	const struct pipeline_filter *f = pipeline_missing(l->pipeline, 0);
	const char *package = f ? codec_package_of_id(f->id) : NULL;

	if (!f)
		return 0;
	if (asprintf(&t->unreadable,
		     "filter %s (id %u) cannot be decoded: chunks stored with "
		     "it read as ENOTSUP%s%s",
		     f->name, (unsigned)f->id,
		     package ? "; the HDF5 plugin is in the Debian package "
			     : "",
		     package ? package : "") < 0) {
		t->unreadable = NULL;
		return error_set(err, -ENOMEM, "out of memory");
	}
	return 0;
}

/* The dataset itself as the only part. */
static int read_single(struct hdf5_source *s, struct tensor *t, hid_t dset,
		       struct error *err)
{
	struct layout *l;
	int r;

	t->parts = calloc(1, sizeof *t->parts);
	if (!t->parts)
		return error_set(err, -ENOMEM, "out of memory");
	t->nparts = 1;
	t->parts[0].end = t->rank ? t->shape[0] : 1;
	t->parts[0].file = s->file;
	t->parts[0].dataset = t->name;
	if (t->dtype.kind == DTYPE_STRING)
		return 0;
	r = hdf5_layout_read(s, t, dset, s->file, &l, err);
	if (r < 0)
		return r;
	atomic_init(&t->parts[0].layout, l);
	return note_filter(t, l, err);
}

static int read_shape(struct tensor *t, hid_t dset, struct error *err)
{
	hsize_t dims[RANK_MAX], maxdims[RANK_MAX];
	hid_t space = H5Dget_space(dset);
	H5S_class_t class =
		space < 0 ? H5S_NO_CLASS : H5Sget_simple_extent_type(space);
	int rank = class == H5S_SIMPLE
			   ? H5Sget_simple_extent_dims(space, dims, maxdims)
			   : 0;

	if (space >= 0)
		H5Sclose(space);
	if (class == H5S_NULL)
		return error_set(err, -ENOTSUP,
				 "it has a null dataspace, so no elements");
	if (class == H5S_NO_CLASS || rank < 0 || rank > RANK_MAX)
		return error_set(err, -EIO, "its shape cannot be read");
	t->rank = (unsigned)rank;
	t->elements = 1;
	for (int i = 0; i < rank; i++) {
		t->shape[i] = dims[i];
		if (mul_overflows(t->elements, dims[i], &t->elements))
			return error_set(err, -ENOTSUP, "it is too large");
	}
	return 0;
}

static int read_type(struct hdf5_source *s, struct tensor *t, hid_t dset,
		     struct error *err)
{
	hid_t type = H5Dget_type(dset);
	uint64_t row = 1;

	if (type < 0)
		return error_set(err, -EIO, "its type cannot be read");
	hdf5_type_read(type, &t->stored);
	H5Tclose(type);
	t->dtype = t->stored;
	t->dtype.big_endian = t->stored.big_endian && s->views.source_order;
	if (t->dtype.kind == DTYPE_OTHER)
		return error_set(err, -ENOTSUP,
				 "elements of type %s are not supported",
				 t->dtype.text);
	if (mul_overflows(t->elements, t->dtype.size, &t->bytes) ||
	    t->bytes > INT64_MAX)
		return error_set(err, -ENOTSUP, "it is too large");
	if (t->dtype.kind != DTYPE_STRING)
		return 0;
	t->bytes = 0;
	for (unsigned i = 1; i < t->rank; i++)
		row *= max_u64(t->shape[i], 1);
	/* Variable-length strings lie in their file, not compressed: they cannot
	 * be longer than it on average. */
	t->text_bytes = t->dtype.vlen ? s->size / max_u64(t->elements, 1) + 1
				      : max_u64(t->dtype.size, 1);
	if (row > TEXT_ROW_MAX || row > TEXT_ROW_BYTES / t->text_bytes)
		return error_set(err, -ENOTSUP,
				 "rows of %" PRIu64 " strings of up to %" PRIu64
				 " bytes are not supported",
				 row, t->text_bytes);
	return 0;
}

/* The mapping does not say what its sources look like.  The first one, if it is
 * there, tells whether this is a mapping that we can show at all; whether each
 * part is right is looked at when it is read. */
static int check_kind(struct tensor *t, struct error *err)
{
	hid_t file, dset, space, dcpl;
	int rank, r = 0;

	if (!t->nparts || hdf5_open(t->handles, t->parts[0].file, &file, NULL))
		return 0;
	dset = H5Dopen2(file, t->parts[0].dataset, H5P_DEFAULT);
	if (dset >= 0) {
		space = H5Dget_space(dset);
		dcpl = H5Dget_create_plist(dset);
		rank = H5Sget_simple_extent_ndims(space);
		if (rank >= 0 && rank != (int)t->rank)
			r = error_set(err, -ENOTSUP,
				      "its sources have %d axes, not %u: not "
				      "supported",
				      rank, t->rank);
		else if (H5Pget_layout(dcpl) == H5D_VIRTUAL)
			r = error_set(err, -ENOTSUP,
				      "its sources are themselves virtual "
				      "datasets: not supported");
		H5Pclose(dcpl);
		H5Sclose(space);
		H5Dclose(dset);
	}
	H5Fclose(file);
	return r;
}

static int read_virtual(struct hdf5_source *s, struct tensor *t, hid_t dcpl,
			struct error *err)
{
	int r;

	/* Strings are in files that nobody has looked at yet. */
	if (t->dtype.vlen)
		t->text_bytes = 0;
	r = hdf5_virtual_read(s, t, dcpl, err);
	return r < 0 ? r : check_kind(t, err);
}

/* 0, or why the dataset is listed only. */
static int read_dataset(struct hdf5_source *s, struct tensor *t, hid_t dset,
			struct error *err)
{
	hid_t dcpl;
	int r = read_shape(t, dset, err);

	if (!r)
		r = read_type(s, t, dset, err);
	if (r < 0)
		return r;
	dcpl = H5Dget_create_plist(dset);
	if (dcpl < 0)
		return error_set(err, -EIO, "its layout cannot be read");
	r = hdf5_fill_read(t, dset, dcpl, &t->fill, t->fill_bytes, err);
	if (!r && H5Pget_layout(dcpl) == H5D_VIRTUAL)
		r = read_virtual(s, t, dcpl, err);
	else if (!r)
		r = read_single(s, t, dset, err);
	H5Pclose(dcpl);
	return r;
}

struct hdf5_tensor *hdf5_tensor_new(struct hdf5_source *s, hid_t dset,
				    const char *path, const char *why)
{
	struct hdf5_tensor *h = calloc(1, sizeof *h);
	struct error err = {0};
	const struct layout *l;

	if (!h)
		return NULL;
	h->source = s;
	h->t.ops = &hdf5_tensor_ops;
	h->t.set.ops = &tensor_chunk_ops;
	h->t.set.id = chunk_set_new_id();
	h->t.handles = s->handles;
	h->t.mtime = s->mtime;
	h->t.missing = s->views.missing;
	h->t.name = strdup(path);
	h->t.source = strdup(s->path);
	h->t.dtype.kind = DTYPE_OTHER;
	if (dset >= 0 && h->t.name && read_dataset(s, &h->t, dset, &err) < 0)
		why = err.text;
	if (why)
		h->t.why_not = strdup(why);
	if (!h->t.name || !h->t.source || (why && !h->t.why_not)) {
		tensor_free(&h->t);
		return NULL;
	}
	l = h->t.nparts ? atomic_load(&h->t.parts[0].layout) : NULL;
	h->t.set.unit = l && l->grid ? l->grid->chunk_bytes : 0;
	if (h->t.distributed && h->t.nparts)
		h->t.set.unit = h->t.bytes / h->t.nparts;
	return h;
}
