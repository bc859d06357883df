/* SPDX-License-Identifier: BSD-2-Clause */
/* HDF5 attributes of every kind, and small datasets, as JSON. */
#include "formats/hdf5/value/listing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/hdf5/value/json.h"
#include "formats/hdf5/file/lost.h"
#include "formats/hdf5/file/vlen.h"
#include "formats/hdf5/type/type.h"
#include "formats/hdf5/value/value.h"

/* Larger arrays are described, not listed. */
#define VALUES_MAX 131072
#define BYTES_MAX (UINT64_C(1) << 20)
/* Values listed of one object, and bytes of them; then all are described. */
#define OBJECT_VALUES_MAX (UINT64_C(1) << 20)
#define OBJECT_BYTES_MAX (UINT64_C(64) << 20)
/* Datasets whose chunks are larger are not read for a few values. */
#define CHUNK_MAX (UINT64_C(64) << 20)

struct value {
	hid_t id; /* an attribute, or */
	bool is_dataset;
	hid_t type, space;
	H5S_class_t class;
	uint64_t n, size; /* values; bytes of one */
	bool none;        /* an axis has no elements */
	int rank;
	hsize_t dims[RANK_MAX];
};

static json_t *mark_unread(struct hdf5_listing *l)
{
	l->unread = true;
	return json_string("(cannot be read)");
}

static json_t *describe_value(struct hdf5_listing *l, const struct value *v,
			      const char *why)
{
	char name[80] = "unknown", text[160];
	struct hdf5_type t;

	if (!hdf5_type_read(&l->s->intern, v->type, false, &t))
		dtype_name(&t.served, name, sizeof name);
	snprintf(text, sizeof text, "(%llu values of type %s: %s)",
		 (unsigned long long)v->n, name, why);
	return json_text(text, strlen(text));
}

/* Convert values from *p on to nested arrays of the shape; NULL if one failed. */
static json_t *nest_values(struct hdf5_json *j, const struct value *v, int axis,
			   const char **p, struct error *err)
{
	json_t *a, *one;

	if (axis == v->rank) {
		hdf5_json_value(j, *p, &one, err);
		*p += v->size;
		return one;
	}
	a = json_array();
	for (hsize_t i = 0; i < v->dims[axis]; i++)
		if (json_array_append_new(
			    a, nest_values(j, v, axis + 1, p, err)) < 0) {
			json_decref(a);
			return NULL;
		}
	return a;
}

/* The library would read other files by itself, and what is missing there as
 * fill values; and it decodes chunks whole. */
static const char *why_not_read(hid_t dset, size_t size)
{
	hid_t dcpl = hdf5_vlen_create_plist(dset);
	H5D_layout_t layout = dcpl < 0 ? H5D_LAYOUT_ERROR : H5Pget_layout(dcpl);
	hsize_t chunk[RANK_MAX];
	uint64_t bytes = size;
	const char *why = NULL;
	int rank = 0;

	if (layout == H5D_CHUNKED)
		rank = H5Pget_chunk(dcpl, RANK_MAX, chunk);
	else if (layout == H5D_VIRTUAL ||
		 (layout == H5D_CONTIGUOUS && H5Pget_external_count(dcpl)))
		why = "in other files";
	for (int i = 0; i < rank && i < RANK_MAX; i++)
		if (mul_overflows(bytes, chunk[i], &bytes))
			bytes = UINT64_MAX;
	if (layout == H5D_LAYOUT_ERROR || rank < 0)
		why = "they cannot be read";
	else if (bytes > CHUNK_MAX && rank > 0)
		why = "in chunks too large for that";
	if (dcpl >= 0)
		H5Pclose(dcpl);
	return why;
}

static json_t *list_elements_of_value(struct hdf5_listing *l,
				      const struct value *v,
				      struct hdf5_json *j, struct error *err)
{
	cleanup_free char *data = calloc(v->n, v->size);
	const char *p = data;
	json_t *out = NULL;
	hid_t dxpl;
	herr_t r;

	if (!data)
		return NULL;
	hdf5_vlen_begin(v->id, OBJECT_BYTES_MAX);
	dxpl = hdf5_vlen_transfer();
	if (!v->is_dataset)
		r = H5Aread(v->id, v->type, data);
	else
		r = dxpl < 0 ? -1
			     : H5Dread(v->id, v->type, H5S_ALL, H5S_ALL, dxpl,
				       data);
	if (dxpl >= 0)
		H5Pclose(dxpl);
	out = r < 0 ? mark_unread(l) : nest_values(j, v, 0, &p, err);
	l->values += v->n;
	l->bytes += v->n * v->size + hdf5_vlen_used();
	hdf5_vlen_end();
	return out;
}

static json_t *read_listed_value(struct hdf5_listing *l, const struct value *v)
{
	struct error err = {.code = 0};
	const char *why = NULL;
	struct hdf5_json *j;
	json_t *out;

	if (v->class == H5S_NULL)
		return json_null();
	if (v->n > VALUES_MAX || v->size > BYTES_MAX / v->n ||
	    v->n > OBJECT_VALUES_MAX - min_u64(l->values, OBJECT_VALUES_MAX) ||
	    l->bytes > OBJECT_BYTES_MAX)
		return describe_value(l, v, "too many to list");
	if (v->none)
		return json_array();
	if (v->is_dataset)
		why = why_not_read(v->id, v->size);
	if (why)
		return describe_value(l, v, why);
	if (hdf5_json_new(v->type, l->paths, &j, &err) < 0)
		return err.code == -ENOMEM ? NULL
					   : describe_value(l, v, "not shown");
	out = list_elements_of_value(l, v, j, &err);
	if (!out && err.code == -ENOTSUP)
		out = describe_value(l, v, "too long to list");
	hdf5_json_free(j);
	return out;
}

/* Read type and shape. Return false if the library cannot tell them. */
static bool open_listed_value(struct value *v)
{
	v->type = v->is_dataset ? H5Dget_type(v->id) : H5Aget_type(v->id);
	v->space = v->is_dataset ? H5Dget_space(v->id) : H5Aget_space(v->id);
	v->class = v->space < 0 ? H5S_NO_CLASS
				: H5Sget_simple_extent_type(v->space);
	if (v->type < 0 || v->class == H5S_NO_CLASS)
		return false;
	v->size = H5Tget_size(v->type);
	v->n = 1;
	if (v->class == H5S_SIMPLE)
		v->rank = H5Sget_simple_extent_ndims(v->space);
	if (v->size == 0 || v->rank < 0 || v->rank > RANK_MAX ||
	    (v->rank && H5Sget_simple_extent_dims(v->space, v->dims, NULL) < 0))
		return false;
	/* An axis of no values counts as one: (2^40, 0) would nest for ever. */
	for (int i = 0; i < v->rank; i++) {
		v->none = v->none || v->dims[i] == 0;
		if (mul_overflows(v->n, max_u64(v->dims[i], 1), &v->n))
			v->n = UINT64_MAX;
	}
	return true;
}

/* List a value; with `why` not NULL only describe it. */
static json_t *list_value(struct hdf5_listing *l, hid_t id, bool is_dataset,
			  const char *why)
{
	struct value v = {.id = id, .is_dataset = is_dataset};
	json_t *j;

	if (!open_listed_value(&v))
		j = mark_unread(l);
	else
		j = why ? describe_value(l, &v, why) : read_listed_value(l, &v);
	if (v.space >= 0)
		H5Sclose(v.space);
	if (v.type >= 0)
		H5Tclose(v.type);
	l->failed = l->failed || !j;
	return j;
}

json_t *hdf5_list_attribute(struct hdf5_listing *l, hid_t object,
			    const char *name)
{
	hid_t attr = H5Aopen(object, name, H5P_DEFAULT);
	json_t *v =
		attr < 0 ? mark_unread(l) : list_value(l, attr, false, NULL);

	if (attr >= 0)
		H5Aclose(attr);
	l->failed = l->failed || !v;
	return v;
}

json_t *hdf5_list_dataset(struct hdf5_listing *l, hid_t dset, const char *why)
{
	return list_value(l, dset, true, why);
}

/* ---- all attributes of an object ----------------------------------------- */

struct attributes {
	struct hdf5_listing *l;
	json_t *all;
};

static void note_unread_attribute(struct hdf5_listing *l, const char *name,
				  const char *why)
{
	if (!l->lost.names)
		l->lost.names = json_object();
	if (json_object_set_new(l->lost.names, name, json_string(why)) < 0)
		l->failed = true;
}

/* Set words in the place of attributes that cannot be read. */
static void list_lost_attributes(struct attributes *a)
{
	const char *name;
	json_t *why;

	json_object_foreach(a->l->lost.names, name, why)
	{
		json_t *text = json_sprintf("(cannot be read: %s)",
					    json_string_value(why));

		if (json_object_set_new(a->all, name, text) < 0)
			a->l->failed = true;
	}
}

static herr_t list_next_attribute(hid_t object, const char *name,
				  const H5A_info_t *info, void *ctx)
{
	struct attributes *a = ctx;
	json_t *key = json_text(name, strlen(name)), *v;

	(void)info;
	a->l->unread = false;
	v = hdf5_list_attribute(a->l, object, name);
	if (!key || json_object_set_new(a->all, json_string_value(key), v) < 0)
		a->l->failed = true;
	else if (a->l->unread)
		note_unread_attribute(
			a->l, json_string_value(key),
			"its value cannot be read: it is damaged");
	json_decref(key);
	return a->l->failed ? -1 : 0;
}

json_t *hdf5_list_attributes(struct hdf5_listing *l, hid_t object,
			     struct error *err)
{
	struct attributes a = {l, json_object()};
	hsize_t at = 0;

	if (!a.all)
		l->failed = true;
	else
		list_lost_attributes(&a);
	if (!l->failed && l->lost.rest != HDF5_REST_ALL)
		H5Aiterate2(object, H5_INDEX_NAME,
			    l->lost.rest == HDF5_REST_SOME ? H5_ITER_NATIVE
							   : H5_ITER_INC,
			    &at, list_next_attribute, &a);
	if (!l->failed)
		return a.all;
	json_decref(a.all);
	error_no_memory(err, "the attributes of an object");
	return NULL;
}

int hdf5_listing_open(struct hdf5_listing *l, struct hdf5_source *s,
		      hid_t object, const struct hdf5_lost *lost,
		      struct error *err)
{
	*l = (struct hdf5_listing){
		.s = s, .paths = hdf5_paths_new(object), .lost = *lost};
	return l->paths ? 0 : error_no_memory(err, "the paths of objects");
}

void hdf5_listing_close(struct hdf5_listing *l)
{
	hdf5_paths_free(l->paths);
	l->paths = NULL;
	json_decref(l->lost.names);
	l->lost.names = NULL;
}

/* ---- the question --------------------------------------------------------- */

char *hdf5_attributes_here(const struct hdf5_place *at, struct error *err)
{
	struct hdf5_listing l;
	struct hdf5_opened o;
	struct hdf5_lost lost;
	json_t *all = NULL;
	char *text = NULL;

	if (hdf5_lost_open(at, &o, &lost, err) < 0)
		return NULL;
	if (!hdf5_listing_open(&l, at->s, o.object, &lost, err))
		all = hdf5_list_attributes(&l, o.object, err);
	if (all)
		text = json_exact(all, HDF5_LISTING_DUMP);
	if (all && !text)
		error_no_memory(err, "the attributes of an object");
	if (!text)
		hdf5_place_prefix(at, err);
	json_decref(all);
	hdf5_listing_close(&l);
	hdf5_lost_close(&o);
	return text;
}
