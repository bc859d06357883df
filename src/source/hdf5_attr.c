/* SPDX-License-Identifier: BSD-2-Clause */
/* HDF5 attributes as JSON: numbers, strings, bools, and arrays of them. */
#include "source/hdf5.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/number.h"

/* Larger arrays are described, not listed. */
#define VALUES_MAX 4096
#define BYTES_MAX (UINT64_C(1) << 20)

struct value {
	hid_t type;
	struct dtype d;
	hsize_t n; /* values */
	int rank;
	hsize_t dims[RANK_MAX];
};

/* One element of a numeric array that was read in native types. */
static json_t *number_at(const struct value *v, const void *data, size_t i)
{
	double re, im;

	switch (v->d.kind) {
	case DTYPE_INT:
		return json_integer(((const int64_t *)data)[i]);
	case DTYPE_UINT:
		if (((const uint64_t *)data)[i] > INT64_MAX)
			return json_number((double)((const uint64_t *)data)[i]);
		return json_integer((json_int_t)((const uint64_t *)data)[i]);
	case DTYPE_BOOL:
		return json_boolean(((const int8_t *)data)[i]);
	case DTYPE_COMPLEX:
		re = ((const double *)data)[2 * i];
		im = ((const double *)data)[2 * i + 1];
		return json_pack("[o, o]", json_number(re), json_number(im));
	default:
		return json_number(((const double *)data)[i]);
	}
}

static json_t *string_at(const struct value *v, const void *data, size_t i)
{
	const char *s = v->d.vlen ? ((char *const *)data)[i]
				  : (const char *)data + i * v->d.size;

	if (!s)
		return json_string("");
	return json_text(s, v->d.vlen ? strlen(s) : strnlen(s, v->d.size));
}

/* Values from number *at on as nested arrays, as the shape says. */
static json_t *nest(const struct value *v, const void *data, int axis,
		    size_t *at)
{
	json_t *a;

	if (axis == v->rank) {
		size_t i = (*at)++;

		return v->d.kind == DTYPE_STRING ? string_at(v, data, i)
						 : number_at(v, data, i);
	}
	a = json_array();
	for (hsize_t i = 0; i < v->dims[axis]; i++)
		json_array_append_new(a, nest(v, data, axis + 1, at));
	return a;
}

/* The type to read into; the library converts. */
static hid_t memory_type(const struct value *v, size_t *size)
{
	hid_t t;

	*size = 8;
	switch (v->d.kind) {
	case DTYPE_INT:
		return H5Tcopy(H5T_NATIVE_INT64);
	case DTYPE_UINT:
		return H5Tcopy(H5T_NATIVE_UINT64);
	case DTYPE_FLOAT:
		return H5Tcopy(H5T_NATIVE_DOUBLE);
	case DTYPE_COMPLEX:
		t = H5Tcreate(H5T_COMPOUND, 16);
		H5Tinsert(t, "r", 0, H5T_NATIVE_DOUBLE);
		H5Tinsert(t, "i", 8, H5T_NATIVE_DOUBLE);
		*size = 16;
		return t;
	case DTYPE_STRING:
		*size = v->d.vlen ? sizeof(char *) : v->d.size;
		return H5Tcopy(v->type);
	default:
		*size = v->d.size;
		return H5Tcopy(v->type);
	}
}

static json_t *read_values(hid_t attr, const struct value *v)
{
	cleanup_free void *data = NULL;
	size_t size, at = 0;
	hid_t type = memory_type(v, &size);
	json_t *j = NULL;

	data = calloc(v->n ? v->n : 1, size);
	if (data && type >= 0 && H5Aread(attr, type, data) >= 0) {
		hid_t space = H5Aget_space(attr);

		j = nest(v, data, 0, &at);
		if (v->d.kind == DTYPE_STRING && v->d.vlen)
			H5Dvlen_reclaim(type, space, H5P_DEFAULT, data);
		H5Sclose(space);
	}
	if (type >= 0)
		H5Tclose(type);
	return j;
}

static json_t *described(const struct value *v, const char *why)
{
	char name[80], text[160];

	dtype_name(&v->d, name, sizeof name);
	snprintf(text, sizeof text, "(%llu values of type %s: %s)",
		 (unsigned long long)v->n, name, why);
	return json_string(text);
}

static json_t *read_attribute(hid_t attr)
{
	struct value v = {.n = 1};
	bool none = false;
	hid_t space = H5Aget_space(attr);
	H5S_class_t class = H5Sget_simple_extent_type(space);
	json_t *j;

	v.type = H5Aget_type(attr);
	hdf5_type_read(v.type, &v.d);
	v.rank = class == H5S_SIMPLE
			 ? H5Sget_simple_extent_dims(space, v.dims, NULL)
			 : 0;
	/* An axis of no values counts as one: (2^40, 0) would nest for ever. */
	for (int i = 0; i < v.rank; i++) {
		none |= v.dims[i] == 0;
		if (__builtin_mul_overflow(v.n, max_u64(v.dims[i], 1), &v.n))
			v.n = HSIZE_UNDEF;
	}
	H5Sclose(space);
	if (class == H5S_NULL)
		j = json_null();
	else if (v.d.kind == DTYPE_OTHER)
		j = described(&v, "not shown");
	else if (v.n > VALUES_MAX || H5Tget_size(v.type) > BYTES_MAX / v.n)
		j = described(&v, "too many to list");
	else if (none)
		j = json_array();
	else
		j = read_values(attr, &v);
	H5Tclose(v.type);
	return j ? j : json_string("(cannot be read)");
}

static herr_t each(hid_t object, const char *name, const H5A_info_t *info,
		   void *ctx)
{
	json_t *o = ctx, *key;
	hid_t attr = H5Aopen(object, name, H5P_DEFAULT);

	(void)info;
	if (attr < 0)
		return 0;
	key = json_text(name, strlen(name));
	json_object_set_new(o, json_string_value(key), read_attribute(attr));
	json_decref(key);
	H5Aclose(attr);
	return 0;
}

char *hdf5_attributes_read(hid_t object, struct error *err)
{
	json_t *o = json_object();
	hsize_t at = 0;
	char *text = NULL;

	if (H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, &at, each, o) < 0)
		error_set(err, -EIO, "the attributes cannot be read");
	else
		text = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(17));
	json_decref(o);
	return text;
}
