/* SPDX-License-Identifier: BSD-2-Clause */
/* array.h5 of arrays that are in no HDF5 file: their type, shape and attributes. */

/*
 * Nothing of a file is read here: libhdf5 only writes what is known already, so it does
 * that in this process.  Types are those that h5py makes of NumPy's.  Attributes are
 * JSON: strings, numbers, booleans, and lists of one kind of these are attributes of
 * HDF5; a line in the notes tells that any other value is left out.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "formats/hdf5/type/dtype.h"
#include "formats/hdf5/export/monolith.h"

/* ---- types --------------------------------------------------------------- */

static int structure_type(const struct dtype *d, hid_t *out, struct error *err);

static int field_type(const struct dtype_field *f, hid_t *out,
		      struct error *err)
{
	hsize_t dims[RANK_MAX];
	hid_t element;
	int r = f->type.kind == DTYPE_STRUCT
			? structure_type(&f->type, &element, err)
			: hdf5_type_of_dtype(&f->type, &element, err);

	*out = element;
	if (r < 0 || !f->rank)
		return r;
	*out = H5I_INVALID_HID;
	for (unsigned i = 0; i < f->rank && i < RANK_MAX; i++)
		dims[i] = f->dims[i];
	if (f->rank <= RANK_MAX)
		*out = H5Tarray_create2(element, f->rank, dims);
	H5Tclose(element);
	return *out < 0
		       ? error_set(err, -ENOTSUP,
				   "HDF5 has no type for its field %s", f->name)
		       : 0;
}

static int structure_type(const struct dtype *d, hid_t *out, struct error *err)
{
	hid_t t = H5Tcreate(H5T_COMPOUND, d->size), field;
	int r = t < 0 ? error_no_memory(err, "the type of a dataset") : 0;

	for (uint32_t i = 0; i < d->nfields && r == 0; i++) {
		const struct dtype_field *f = &d->fields[i];

		r = field_type(f, &field, err);
		if (r < 0)
			break;
		if (H5Tinsert(t, f->name, f->offset, field) < 0)
			r = error_set(err, -ENOTSUP,
				      "HDF5 has no place for its field %s",
				      f->name);
		H5Tclose(field);
	}
	if (r < 0 && t >= 0)
		H5Tclose(t);
	*out = r < 0 ? H5I_INVALID_HID : t;
	return r;
}

static int array_type(const struct tensor *t, hid_t *out, struct error *err)
{
	int r = t->dtype.kind == DTYPE_STRUCT
			? structure_type(&t->dtype, out, err)
			: hdf5_type_of_dtype(&t->dtype, out, err);

	if (r == 0 && H5Tget_size(*out) != t->dtype.size) {
		H5Tclose(*out);
		r = error_set(err, -ENOTSUP,
			      "HDF5 has no type with its elements' size");
	}
	return r;
}

/* ---- attributes ---------------------------------------------------------- */

/* The kind of a value, or of all values of a list. */
enum values { NONE, WORDS, WHOLE, REAL, TRUTH };

static enum values kind_of_json_value(const json_t *v)
{
	switch (json_typeof(v)) {
	case JSON_STRING: /* HDF5's strings end with a NUL */
		return strlen(json_string_value(v)) == json_string_length(v)
			       ? WORDS
			       : NONE;
	case JSON_INTEGER:
		return WHOLE;
	case JSON_REAL:
		return REAL;
	case JSON_TRUE:
	case JSON_FALSE:
		return TRUTH;
	default:
		return NONE;
	}
}

static enum values kind_of_json_list(const json_t *list)
{
	enum values all = NONE;

	for (size_t i = 0; i < json_array_size(list); i++) {
		enum values v = kind_of_json_value(json_array_get(list, i));
		bool numbers = (v == WHOLE && all == REAL) ||
			       (v == REAL && all == WHOLE);

		if (v == NONE || (i && v != all && !numbers))
			return NONE;
		all = numbers ? REAL : v;
	}
	return all;
}

static hid_t words_type(void)
{
	hid_t t = H5Tcopy(H5T_C_S1);

	if (t >= 0 && (H5Tset_size(t, H5T_VARIABLE) < 0 ||
		       H5Tset_cset(t, H5T_CSET_UTF8) < 0)) {
		H5Tclose(t);
		t = H5I_INVALID_HID;
	}
	return t;
}

static hid_t values_type(enum values v)
{
	struct dtype is = {.kind = v == TRUTH   ? DTYPE_BOOL
				   : v == WHOLE ? DTYPE_INT
						: DTYPE_FLOAT,
			   .size = v == TRUTH ? 1 : 8};
	struct error err;
	hid_t t;

	if (v == WORDS)
		return words_type();
	hdf5_type_of_dtype(&is, &t, &err);
	return t;
}

/* A value in memory; all but words are little-endian on the machines that we know, and
 * the type says what they are. */
static void store_json_value(const json_t *v, enum values as, void *to)
{
	const char *text;
	int64_t whole;
	double real;
	int8_t truth;

	switch (as) {
	case WORDS:
		text = json_string_value(v);
		memcpy(to, &text, sizeof text);
		break;
	case WHOLE:
		whole = json_integer_value(v);
		memcpy(to, &whole, sizeof whole);
		break;
	case REAL:
		real = json_number_value(v);
		memcpy(to, &real, sizeof real);
		break;
	default:
		truth = json_is_true(v);
		memcpy(to, &truth, sizeof truth);
	}
}

/* Make values for H5Awrite: one value, or all of a list. */
static void *json_values_new(const json_t *v, enum values as)
{
	size_t width = as == TRUTH ? 1 : 8, n = json_array_size(v);
	char *data = calloc(n + 1, width);

	if (data && !json_is_array(v))
		store_json_value(v, as, data);
	for (size_t i = 0; data && i < n; i++)
		store_json_value(json_array_get(v, i), as, data + i * width);
	return data;
}

static int make_attribute(struct making *m, hid_t to, const char *name,
			  const json_t *v)
{
	bool list = json_is_array(v);
	enum values as = list ? kind_of_json_list(v) : kind_of_json_value(v);
	hsize_t n = json_array_size(v);
	hid_t type, space, a = H5I_INVALID_HID;
	cleanup_free void *data = NULL;

	if (as == NONE || !*name) {
		monolith_note(m, m->array->name,
			      "attribute %s: not a string, a number, or a list "
			      "of these",
			      name);
		return 0;
	}
	data = json_values_new(v, as);
	if (!data)
		return error_no_memory(m->err, "an attribute");
	type = values_type(as);
	space = list ? H5Screate_simple(1, &n, NULL) : H5Screate(H5S_SCALAR);
	if (type >= 0 && space >= 0)
		a = H5Acreate2(to, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
	if (a < 0 || H5Awrite(a, type, data) < 0)
		monolith_note(m, m->array->name,
			      "attribute %s: HDF5 has no room for it", name);
	if (a >= 0)
		H5Aclose(a);
	if (space >= 0)
		H5Sclose(space);
	if (type >= 0)
		H5Tclose(type);
	return 0;
}

static int make_attributes(struct making *m, hid_t to)
{
	cleanup_free char *text = m->array->ops->attributes(m->array, m->err);
	json_t *all = text ? json_loads(text, JSON_ALLOW_NUL, NULL) : NULL;
	const char *name;
	json_t *v;
	int r = 0;

	if (!all)
		return error_no_memory(m->err, "the attributes of an array");
	json_object_foreach(all, name, v)
	{
		r = make_attribute(m, to, name, v);
		if (r < 0)
			break;
	}
	json_decref(all);
	return r;
}

/* ---- the dataset --------------------------------------------------------- */

static hid_t array_dataspace(const struct tensor *t)
{
	hsize_t dims[RANK_MAX];

	for (unsigned i = 0; i < t->rank; i++)
		dims[i] = t->shape[i];
	return t->rank ? H5Screate_simple((int)t->rank, dims, NULL)
		       : H5Screate(H5S_SCALAR);
}

int monolith_make_array(struct making *m)
{
	const struct tensor *t = m->array;
	const char *path = *t->name ? t->name : "/data";
	hid_t type, space, to;
	int r = array_type(t, &type, m->err);

	if (r < 0)
		return r;
	r = monolith_parents(m, path);
	if (r < 0) {
		H5Tclose(type);
		return r;
	}
	space = array_dataspace(t);
	to = space < 0 ? H5I_INVALID_HID
		       : H5Dcreate2(m->out, path, type, space, m->lcpl, m->dcpl,
				    H5P_DEFAULT);
	r = to < 0 ? monolith_failed(m, path, "the dataset cannot be made")
		   : make_attributes(m, to);
	if (r == 0 && t->bytes)
		r = monolith_part_add(m, t->bytes, path);
	if (to >= 0)
		H5Dclose(to);
	if (space >= 0)
		H5Sclose(space);
	H5Tclose(type);
	return r;
}
