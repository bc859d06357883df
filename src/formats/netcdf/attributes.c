/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes of a netCDF-3 file as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/number.h"
#include "formats/netcdf/header.h"

/* Longer lists, in values, and texts, in bytes, are described in words, as those of HDF5
 * files are, and so are lists behind the first values of an object. */
#define VALUES_MAX 131072
#define OBJECT_VALUES_MAX (UINT32_C(1) << 20)
#define TEXT_MAX (UINT32_C(1) << 20)

/* JSON has integers of up to 2^63 - 1; larger ones are strings of their digits. */
static json_t *netcdf_unsigned(uint64_t v)
{
	char digits[DIGITS_MAX + 1];

	if (v <= INT64_MAX)
		return json_integer((json_int_t)v);
	digits[digits_put(digits, v)] = '\0';
	return json_string(digits);
}

static uint64_t netcdf_load(const unsigned char *p, uint32_t size)
{
	switch (size) {
	case 1:
		return *p;
	case 2:
		return load_be16(p);
	case 4:
		return load_be32(p);
	default:
		return load_be64(p);
	}
}

static json_t *netcdf_float(uint64_t bits, uint32_t size)
{
	uint32_t half = (uint32_t)bits;
	double wide;
	float narrow;

	memcpy(&wide, &bits, sizeof wide);
	memcpy(&narrow, &half, sizeof narrow);
	return json_number(size == 4 ? (double)narrow : wide);
}

static json_t *netcdf_number(const struct netcdf_attribute *a, size_t i)
{
	uint32_t size = a->dtype.size, unused = 64 - 8 * size;
	uint64_t bits = netcdf_load(a->values + i * size, size);

	if (a->dtype.kind == DTYPE_FLOAT)
		return netcdf_float(bits, size);
	if (a->dtype.kind == DTYPE_UINT)
		return netcdf_unsigned(bits);
	return json_integer((json_int_t)(bits << unused) >> unused);
}

static json_t *netcdf_words(const struct netcdf_attribute *a)
{
	char type[64], text[128];

	dtype_name(&a->dtype, type, sizeof type);
	snprintf(text, sizeof text, "(%zu values of type %s)", a->n, type);
	return json_string(text);
}

/* Text loses the NULs at its end, which are a terminator or padding. */
static json_t *netcdf_text(const struct netcdf_attribute *a)
{
	size_t n = a->n;

	while (n && !a->values[n - 1])
		n--;
	return json_text((const char *)a->values, n);
}

/* Return the value of an attribute: a text, a number, or a list of numbers.  NULL: no
 * memory.  *left is how many more values the object may have. */
static json_t *netcdf_value(const struct netcdf_attribute *a, size_t *left)
{
	json_t *list;

	if (a->dtype.kind == DTYPE_BYTES)
		return a->n > TEXT_MAX ? netcdf_words(a) : netcdf_text(a);
	if (a->n > VALUES_MAX || a->n > *left)
		return netcdf_words(a);
	*left -= a->n;
	if (a->n == 1)
		return netcdf_number(a, 0);
	list = json_array();
	for (size_t i = 0; list && i < a->n; i++)
		if (json_array_append_new(list, netcdf_number(a, i)) < 0) {
			json_decref(list);
			return NULL;
		}
	return list;
}

/* Set the member that has the name of an attribute.  Return -1 if memory is out. */
static int netcdf_put(json_t *o, const struct netcdf_attribute *a, size_t *left)
{
	json_t *name = json_text((const char *)a->name, a->name_len);
	json_t *value = name ? netcdf_value(a, left) : NULL;
	int r = value ? json_object_set_new(o, json_string_value(name), value)
		      : -1;

	json_decref(name);
	return r;
}

json_t *netcdf_attributes(const unsigned char *head, const struct netcdf *f,
			  size_t at)
{
	struct netcdf_input in = {
		.at = head + at, .left = f->size - at, .wide = f->version == 5};
	struct netcdf_attribute a;
	json_t *o = json_object();
	size_t n, left = OBJECT_VALUES_MAX;
	int r = netcdf_take_list(&in, NETCDF_ATTRIBUTE,
				 netcdf_attribute_least(&in), &n, NULL);

	for (; o && r == 0 && n; n--) {
		r = netcdf_take_attribute(&in, &a, NULL);
		if (r == 0 && netcdf_put(o, &a, &left) < 0) {
			json_decref(o);
			return NULL;
		}
	}
	return o;
}
