/* SPDX-License-Identifier: BSD-2-Clause */
/* Labels that are an attribute: whole numbers or strings, read with the names of datasets. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/hdf5/value/json.h"
#include "formats/hdf5/file/vlen.h"
#include "formats/hdf5/value/value.h"
#include "views/classes.h"

/* Limit of an attribute and of the strings that it refers to, in bytes. */
#define BYTES_MAX (UINT64_C(256) << 20)

struct attribute {
	hid_t id, type, space;
	const char *name;
	uint64_t n;
	size_t size; /* of a value */
	unsigned rank;
	hsize_t dims[RANK_MAX];
};

static int unreadable_label_attribute(const struct attribute *a,
				      struct error *err)
{
	return error_set(err, -EIO, "the attribute '%s' cannot be read",
			 a->name);
}

/* The attribute is open, its type and space may be. */
static int learn_label_attribute(struct attribute *a, struct error *err)
{
	H5S_class_t class = H5S_NO_CLASS;
	uint64_t bytes;
	int rank = 0;

	if (a->space >= 0)
		class = H5Sget_simple_extent_type(a->space);
	if (a->type < 0 || class == H5S_NO_CLASS)
		return unreadable_label_attribute(a, err);
	if (class == H5S_SIMPLE)
		rank = H5Sget_simple_extent_ndims(a->space);
	a->size = H5Tget_size(a->type);
	if (rank < 0 || rank > RANK_MAX || !a->size ||
	    (rank && H5Sget_simple_extent_dims(a->space, a->dims, NULL) < 0))
		return unreadable_label_attribute(a, err);
	a->rank = (unsigned)rank;
	a->n = class != H5S_NULL;
	for (unsigned i = 0; i < a->rank; i++)
		if (mul_overflows(a->n, a->dims[i], &a->n))
			return unreadable_label_attribute(a, err);
	if (!a->n)
		return error_set(err, -EINVAL, "the attribute '%s' is empty",
				 a->name);
	if (mul_overflows(a->n, max_u64(a->size, 8), &bytes) ||
	    bytes > BYTES_MAX)
		return error_set(err, -EFBIG,
				 "the attribute '%s' is too large for labels",
				 a->name);
	return 0;
}

/* ---- numbers ---------------------------------------------------------------- */

/* Enumerations are read as their numbers. */
static bool is_unsigned(hid_t type)
{
	hid_t base = H5Tget_class(type) == H5T_ENUM ? H5Tget_super(type) : -1;
	bool is = H5Tget_sign(base < 0 ? type : base) == H5T_SGN_NONE;

	if (base >= 0)
		H5Tclose(base);
	return is;
}

static int read_label_numbers(const struct attribute *a, struct class_labels *l,
			      struct error *err)
{
	cleanup_free int64_t *v = calloc(a->n, sizeof *v);
	const bool natural = is_unsigned(a->type);

	if (!v)
		return error_no_memory(err, "the labels");
	if (a->size > sizeof *v ||
	    H5Aread(a->id, natural ? H5T_NATIVE_UINT64 : H5T_NATIVE_INT64, v) <
		    0)
		return unreadable_label_attribute(a, err);
	for (uint64_t i = 0; i < a->n; i++) {
		if (natural && v[i] < 0)
			return error_set(err, -ERANGE,
					 "label %" PRIu64
					 " of the attribute '%s' is too large",
					 i, a->name);
		l->at[i].number = v[i];
	}
	return 0;
}

/* ---- strings ---------------------------------------------------------------- */

struct strings {
	const struct attribute *a;
	const char *data; /* as read */
	bool variable;
	H5T_str_t pad;
};

/* Return the length of string i; set *s to its first byte. */
static size_t label_string_at(const struct strings *x, uint64_t i,
			      const char **s)
{
	const char *at = x->data + i * x->a->size;

	*s = at;
	if (!x->variable)
		return hdf5_string_length(at, x->a->size, x->pad);
	memcpy(s, at, sizeof(char *));
	return *s ? strlen(*s) : 0;
}

static int store_label_strings(const struct strings *x, struct class_labels *l,
			       struct error *err)
{
	const char *s;
	size_t all = 0;
	char *to;

	for (uint64_t i = 0; i < l->n; i++)
		all += label_string_at(x, i, &s) + 1;
	to = l->text = malloc(all);
	if (!to)
		return error_no_memory(err, "the labels");
	for (uint64_t i = 0; i < l->n; i++) {
		size_t n = label_string_at(x, i, &s);

		if (n && memchr(s, 0, n))
			return error_set(err, -EBADMSG,
					 "label %" PRIu64
					 " of the attribute '%s' has a NUL in "
					 "it",
					 i, x->a->name);
		l->at[i].text = to;
		if (n)
			memcpy(to, s, n);
		to += n;
		*to++ = '\0';
	}
	return 0;
}

static int read_label_strings(const struct attribute *a, struct class_labels *l,
			      struct error *err)
{
	cleanup_free char *data = calloc(a->n, a->size);
	struct strings x = {a, data, H5Tis_variable_str(a->type) > 0,
			    H5Tget_strpad(a->type)};
	int r;

	if (!data)
		return error_no_memory(err, "the labels");
	if (x.variable && a->size != sizeof(char *))
		return unreadable_label_attribute(a, err);
	hdf5_vlen_begin(a->id, BYTES_MAX);
	r = H5Aread(a->id, a->type, data) < 0
		    ? unreadable_label_attribute(a, err)
		    : store_label_strings(&x, l, err);
	hdf5_vlen_end();
	return r;
}

/* ---- labels ----------------------------------------------------------------- */

static int read_label_values(const struct attribute *a, struct class_labels *l,
			     struct error *err)
{
	H5T_class_t class = H5Tget_class(a->type);

	if (class != H5T_INTEGER && class != H5T_ENUM && class != H5T_STRING)
		return error_set(err, -EINVAL,
				 "the attribute '%s' is not a list of whole "
				 "numbers or strings",
				 a->name);
	l->n = a->n;
	l->at = calloc(a->n, sizeof *l->at);
	if (!l->at)
		return error_no_memory(err, "the table of labels");
	for (uint64_t i = 0; i < a->n; i++)
		l->at[i].row = (uint32_t)i;
	return class == H5T_STRING ? read_label_strings(a, l, err)
				   : read_label_numbers(a, l, err);
}

static int make_attribute_labels(const struct attribute *a, const char *called,
				 struct classes **out, struct error *err)
{
	struct class_labels l = {0};
	struct class_index *x = NULL;
	uint64_t shape[RANK_MAX];
	int r = read_label_values(a, &l, err);

	if (r == 0)
		r = class_index_new(&x, &l, err);
	free(l.at);
	free(l.text);
	if (r == 0)
		r = classes_of_index(out, x, called, err);
	for (unsigned i = 0; i < a->rank; i++)
		shape[i] = a->dims[i];
	if (r == 0)
		classes_set_shape(*out, a->rank, shape);
	return r;
}

int hdf5_labels_attribute(hid_t object, const char *name, const char *called,
			  struct classes **out, struct error *err)
{
	struct attribute a = {.type = -1, .space = -1, .name = name};
	int r;

	if (H5Aexists(object, name) <= 0)
		return error_set(err, -ENOENT, "there is no attribute '%s'",
				 name);
	a.id = H5Aopen(object, name, H5P_DEFAULT);
	if (a.id < 0)
		return unreadable_label_attribute(&a, err);
	a.type = H5Aget_type(a.id);
	a.space = H5Aget_space(a.id);
	r = learn_label_attribute(&a, err);
	if (r == 0)
		r = make_attribute_labels(&a, called, out, err);
	if (a.space >= 0)
		H5Sclose(a.space);
	if (a.type >= 0)
		H5Tclose(a.type);
	H5Aclose(a.id);
	return r;
}
