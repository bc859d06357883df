/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads element types of Zarr, of version 2 (NumPy's spelling) and 3 (names). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/zarr/meta.h"
#include "tensor/dtype_parse.h"

#define DEPTH_MAX 16 /* how deep structures may be nested */
#define FIELDS_MAX 4096

static int element_check_size(const struct dtype *d, struct error *err)
{
	if (d->size > ZARR_ELEMENT_MAX)
		return error_set(err, -ENOTSUP,
				 "its elements of %u bytes are too large",
				 d->size);
	return 0;
}

/* ---- version 2 ----------------------------------------------------------- */

static int v2_read_numpy_type(const char *text, struct intern *in,
			      struct dtype *out, struct error *err)
{
	struct error why = {0};
	int r = dtype_parse_stored(text, in, out, &why);

	if (r == -EINVAL)
		return error_set(err, -EBADMSG,
				 "'%.40s' is not a type of NumPy", text);
	if (r < 0)
		return error_set(err, r, "%s", why.text);
	return element_check_size(out, err);
}

static int v2_read_fields(const json_t *v, struct intern *in, unsigned depth,
			  struct dtype *out, struct error *err);

static int v2_read_any(const json_t *v, struct intern *in, unsigned depth,
		       struct dtype *out, struct error *err)
{
	memset(out, 0, sizeof *out);
	if (json_is_string(v))
		return v2_read_numpy_type(json_string_value(v), in, out, err);
	if (json_is_array(v))
		return v2_read_fields(v, in, depth, out, err);
	return error_set(err, -EBADMSG, "'dtype' is not a type");
}

/* Read the axes of a subarray: a list, or one number. */
static int v2_read_dims(const json_t *v, struct intern *in,
			struct dtype_field *f, struct error *err)
{
	uint64_t dims[RANK_MAX];
	size_t n = json_is_array(v) ? json_array_size(v) : 1;

	if (n > RANK_MAX)
		return error_set(err, -ENOTSUP, "a field has more than %d axes",
				 RANK_MAX);
	for (size_t i = 0; i < n; i++)
		if (!zarr_count(json_is_array(v) ? json_array_get(v, i) : v,
				&dims[i]) ||
		    !dims[i])
			return error_set(err, -EBADMSG,
					 "a field's shape is not a list of "
					 "whole numbers");
	if (!n)
		return 0;
	f->rank = (uint32_t)n;
	f->dims = intern_bytes(in, dims, n * sizeof *dims);
	return f->dims ? 0 : error_no_memory(err, "the shape of a field");
}

/* Read a field: ["name", type] or ["name", type, shape].  Returns 0, 1 if the field is
 * padding, or -errno. */
static int v2_read_field(const json_t *v, struct intern *in, unsigned depth,
			 struct dtype_field *f, struct error *err)
{
	const json_t *name = json_array_get(v, 0);
	size_t n = json_array_size(v);
	int r;

	memset(f, 0, sizeof *f);
	if (!json_is_string(name) || n < 2 || n > 3)
		return error_set(err, -EBADMSG,
				 "a field of 'dtype' is not a list of name, "
				 "type and shape");
	r = v2_read_any(json_array_get(v, 1), in, depth + 1, &f->type, err);
	if (r == 0 && n == 3)
		r = v2_read_dims(json_array_get(v, 2), in, f, err);
	if (r < 0)
		return r;
	if (!json_string_length(name))
		return f->type.kind == DTYPE_OPAQUE
			       ? 1
			       : error_set(err, -EBADMSG,
					   "a field has no name");
	if (strlen(json_string_value(name)) != json_string_length(name))
		return error_set(err, -EBADMSG, "a field's name has a NUL");
	f->name = intern_text(in, json_string_value(name));
	return f->name ? 0 : error_no_memory(err, "the name of a field");
}

static bool fields_have_name(const struct dtype_field *f, uint32_t n,
			     const char *name)
{
	for (uint32_t i = 0; i < n; i++)
		if (!strcmp(f[i].name, name))
			return true;
	return false;
}

/* Read the fields of a structure, which are stored one behind the other. */
static int v2_read_fields(const json_t *v, struct intern *in, unsigned depth,
			  struct dtype *out, struct error *err)
{
	size_t n = json_array_size(v);
	cleanup_free struct dtype_field *f = calloc(n + 1, sizeof *f);
	uint64_t at = 0, count, size;
	uint32_t have = 0;

	if (!f)
		return error_no_memory(err, "the fields of a structure");
	if (!n)
		return error_set(err, -EBADMSG, "a structure has no fields");
	if (n > FIELDS_MAX || depth > DEPTH_MAX)
		return error_set(err, -ENOTSUP,
				 "its type has too many fields, or structures "
				 "nested too deep");
	for (size_t i = 0; i < n; i++) {
		struct dtype_field *x = &f[have];
		int r = v2_read_field(json_array_get(v, i), in, depth, x, err);

		if (r < 0)
			return r;
		x->offset = (uint32_t)at;
		if (!dtype_field_size(x, &count, &size) ||
		    add_overflows(at, size, &at) || at > ZARR_ELEMENT_MAX)
			return error_set(err, -ENOTSUP,
					 "its elements are too large");
		if (r == 0 && fields_have_name(f, have, x->name))
			return error_set(err, -EBADMSG,
					 "two fields are named '%.80s'",
					 x->name);
		have += r == 0;
	}
	if (!have)
		return error_set(err, -EBADMSG, "a structure has no fields");
	out->kind = DTYPE_STRUCT;
	out->size = (uint32_t)at;
	out->nfields = have;
	out->fields = intern_bytes(in, f, have * sizeof *f);
	return out->fields ? 0
			   : error_no_memory(err, "the fields of a structure");
}

int zarr_v2_type(const json_t *v, struct intern *in, struct dtype *out,
		 struct error *err)
{
	return v2_read_any(v, in, 0, out, err);
}

/* ---- version 3 ----------------------------------------------------------- */

/* Read a raw type: "r16" is 16 bits without meaning.  Returns false if it is not one. */
static bool v3_read_raw(const char *name, struct dtype *out)
{
	uint64_t bits = 0;

	if (*name++ != 'r' || !*name || strlen(name) > 8)
		return false;
	for (; *name >= '0' && *name <= '9'; name++)
		bits = bits * 10 + (uint64_t)(*name - '0');
	if (*name || !bits || bits % 8)
		return false;
	*out = (struct dtype){.kind = DTYPE_OPAQUE,
			      .size = (uint32_t)(bits / 8)};
	return true;
}

/* Read the types numpy.datetime64 and numpy.timedelta64 of zarr-extensions: a count of
 * units, each of `scale_factor` times `unit`.  Returns 0, 1 if it is neither, or
 * -errno. */
static int v3_read_date(const char *name, const json_t *config,
			struct intern *in, struct dtype *out, struct error *err)
{
	const char *unit = json_string_value(json_object_get(config, "unit"));
	const json_t *factor = json_object_get(config, "scale_factor");
	char spelled[80], scale[24] = "";
	uint64_t n = 1;
	int r;

	if (strcmp(name, "numpy.datetime64") != 0 &&
	    strcmp(name, "numpy.timedelta64") != 0)
		return 1;
	if (!unit || strlen(unit) > 8 || (factor && !zarr_count(factor, &n)))
		return error_set(
			err, -EBADMSG,
			"'data_type' %s has no valid unit or scale_factor",
			name);
	if (n != 1)
		snprintf(scale, sizeof scale, "%llu", (unsigned long long)n);
	if (!strcmp(unit, "generic"))
		snprintf(spelled, sizeof spelled, "%s", name + 6);
	else
		snprintf(spelled, sizeof spelled, "%s[%s%s]", name + 6, scale,
			 unit);
	r = dtype_parse_stored(spelled, in, out, err);
	return r == -EINVAL
		       ? error_set(err, -EBADMSG,
				   "'data_type' %s has an unknown unit", name)
		       : r;
}

int zarr_v3_type(const json_t *v, struct intern *in, struct dtype *out,
		 struct error *err)
{
	static const char *const names[] = {
		"bool",    "int8",    "int16",     "int32",     "int64",
		"uint8",   "uint16",  "uint32",    "uint64",    "float16",
		"float32", "float64", "complex64", "complex128"};
	const json_t *as = json_is_object(v) ? json_object_get(v, "name") : v;
	const char *name = json_string_value(as);

	int r;

	memset(out, 0, sizeof *out);
	if (!name)
		return error_set(err, -EBADMSG, "'data_type' is not a type");
	r = v3_read_date(name, json_object_get(v, "configuration"), in, out,
			 err);
	if (r <= 0)
		return r;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(name, names[i]))
			return dtype_parse(name, out, err);
	if (v3_read_raw(name, out))
		return element_check_size(out, err);
	return error_set(err, -ENOTSUP,
			 "its elements are '%.40s', which is not supported",
			 name);
}
