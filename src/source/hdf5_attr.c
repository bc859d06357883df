/* SPDX-License-Identifier: BSD-2-Clause */
/* HDF5 attributes of every kind as a JSON object. */
#include "source/hdf5.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "source/hdf5_json.h"

/* Larger arrays are described, not listed. */
#define VALUES_MAX 131072
#define BYTES_MAX (UINT64_C(1) << 20)
/* Values listed of one object, and bytes of them; then all are described. */
#define OBJECT_VALUES_MAX (UINT64_C(1) << 20)
#define OBJECT_BYTES_MAX (UINT64_C(64) << 20)

struct attributes {
	struct hdf5_source *s;
	struct hdf5_paths *paths;
	json_t *all;
	uint64_t values, bytes; /* listed so far */
	bool failed;            /* no memory */
};
struct value {
	hid_t attr, type, space;
	H5S_class_t class;
	uint64_t n, size; /* values; bytes of one */
	bool none;        /* an axis has no elements */
	int rank;
	hsize_t dims[RANK_MAX];
};

static json_t *described(struct attributes *a, const struct value *v,
			 const char *why)
{
	char name[80] = "unknown", text[160];
	struct hdf5_type t;

	if (!hdf5_type_read(&a->s->intern, v->type, false, &t))
		dtype_name(&t.served, name, sizeof name);
	snprintf(text, sizeof text, "(%llu values of type %s: %s)",
		 (unsigned long long)v->n, name, why);
	return json_text(text, strlen(text));
}

/* Values from *p on as nested arrays, as the shape says; NULL: one failed. */
static json_t *nest(struct hdf5_json *j, const struct value *v, int axis,
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
		if (json_array_append_new(a, nest(j, v, axis + 1, p, err)) <
		    0) {
			json_decref(a);
			return NULL;
		}
	return a;
}

static json_t *listed(struct attributes *a, const struct value *v,
		      struct hdf5_json *j, struct error *err)
{
	cleanup_free char *data = calloc(v->n, v->size);
	const char *p = data;
	json_t *out = NULL;

	if (!data)
		return NULL;
	if (H5Aread(v->attr, v->type, data) < 0)
		return json_string("(cannot be read)");
	out = nest(j, v, 0, &p, err);
	if (H5Tdetect_class(v->type, H5T_VLEN) > 0 ||
	    H5Tdetect_class(v->type, H5T_STRING) > 0)
		H5Dvlen_reclaim(v->type, v->space, H5P_DEFAULT, data);
	a->values += v->n;
	a->bytes += v->n * v->size;
	return out;
}

static json_t *read_value(struct attributes *a, const struct value *v)
{
	struct error err = {.code = 0};
	struct hdf5_json *j;
	json_t *out;

	if (v->class == H5S_NULL)
		return json_null();
	if (v->n > VALUES_MAX || v->size > BYTES_MAX / v->n ||
	    v->n > OBJECT_VALUES_MAX - min_u64(a->values, OBJECT_VALUES_MAX) ||
	    a->bytes > OBJECT_BYTES_MAX)
		return described(a, v, "too many to list");
	if (v->none)
		return json_array();
	if (hdf5_json_new(v->type, a->paths, &j, &err) < 0)
		return err.code == -ENOMEM ? NULL
					   : described(a, v, "not shown");
	out = listed(a, v, j, &err);
	if (!out && err.code == -ENOTSUP)
		out = described(a, v, "too long to list");
	hdf5_json_free(j);
	return out;
}

/* False when the library does not say. */
static bool open_value(struct value *v)
{
	v->type = H5Aget_type(v->attr);
	v->space = H5Aget_space(v->attr);
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

static json_t *read_attribute(struct attributes *a, hid_t attr)
{
	struct value v = {.attr = attr};
	json_t *j = open_value(&v) ? read_value(a, &v)
				   : json_string("(cannot be read)");

	if (v.space >= 0)
		H5Sclose(v.space);
	if (v.type >= 0)
		H5Tclose(v.type);
	return j;
}

static herr_t each(hid_t object, const char *name, const H5A_info_t *info,
		   void *ctx)
{
	hid_t attr = H5Aopen(object, name, H5P_DEFAULT);
	struct attributes *a = ctx;
	json_t *key = json_text(name, strlen(name));
	json_t *v = attr < 0 ? json_string("(cannot be read)")
			     : read_attribute(a, attr);

	(void)info;
	a->failed = !key ||
		    json_object_set_new(a->all, json_string_value(key), v) < 0;
	json_decref(key);
	if (attr >= 0)
		H5Aclose(attr);
	return a->failed ? -1 : 0;
}

static char *attributes_read(struct attributes *a, hid_t object,
			     struct error *err)
{
	hsize_t at = 0;
	char why[256], *text = NULL;

	if (!a->all || !a->paths)
		a->failed = true;
	else if (H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, &at, each,
			     a) >= 0)
		text = json_dumps(a->all,
				  JSON_COMPACT | JSON_REAL_PRECISION(17));
	else if (!a->failed) {
		hdf5_why(why, sizeof why);
		error_set(err, -EIO, "the attributes cannot be read: %s", why);
		return NULL;
	}
	if (!text)
		error_set(err, -ENOMEM, "out of memory");
	return text;
}

char *hdf5_attributes_here(const struct hdf5_place *at, struct error *err)
{
	struct attributes a = {.s = at->s};
	struct hdf5_opened o;
	char *text;

	if (hdf5_place_open(at, &o, err) < 0)
		return NULL;
	a.all = json_object();
	a.paths = hdf5_paths_new(o.object);
	text = attributes_read(&a, o.object, err);
	if (!text)
		hdf5_place_prefix(at, err);
	json_decref(a.all);
	hdf5_paths_free(a.paths);
	hdf5_place_close(&o);
	return text;
}
