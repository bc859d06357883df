/* SPDX-License-Identifier: BSD-2-Clause */
/* One element of any HDF5 type as JSON: from a plan of the type. */

/*
 * The library is asked about the type once (formats/hdf5/value/plan.c); going through an
 * element afterwards is going through a tree.
 */
#include "formats/hdf5/value/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "formats/hdf5/value/plan.h"

struct hdf5_json {
	struct hdf5_paths *paths;
	struct plan_node root;
	size_t left; /* values and letters of this element */
	int code;    /* why it failed */
};

static json_t *element_value(struct hdf5_json *j, const struct plan_node *n,
			     const unsigned char *p);

static json_t *fail_element(struct hdf5_json *j, int code)
{
	if (!j->code)
		j->code = code;
	return NULL;
}

static bool spend_letters(struct hdf5_json *j, size_t n)
{
	if (n > j->left) {
		fail_element(j, -ENOTSUP);
		return false;
	}
	j->left -= n;
	return true;
}

/* ---- numbers ------------------------------------------------------------- */

static uint64_t gather_integer(const unsigned char *p, size_t size, bool big)
{
	uint64_t v = 0;

	for (size_t i = 0; i < size; i++)
		v = v << 8 | p[big ? i : size - 1 - i];
	return v;
}

static json_t *integer_value(uint64_t v, bool sign)
{
	char digits[24];

	if (sign || v <= INT64_MAX)
		return json_integer((json_int_t)v);
	snprintf(digits, sizeof digits, "%llu", (unsigned long long)v);
	return json_string(digits);
}

static json_t *hex_digits(struct hdf5_json *j, const unsigned char *p, size_t n)
{
	static const char digit[] = "0123456789abcdef";
	cleanup_free char *s = NULL;

	if (!spend_letters(j, 2 * n))
		return NULL;
	s = malloc(2 * n + 1);
	if (!s)
		return fail_element(j, -ENOMEM);
	for (size_t i = 0; i < n; i++) {
		s[2 * i] = digit[p[i] >> 4];
		s[2 * i + 1] = digit[p[i] & 15];
	}
	return json_stringn(s, 2 * n);
}

/* Digits of a little-endian two's complement number; `p` is spoilt. */
static json_t *wide_integer_value(unsigned char *p, size_t size, bool sign)
{
	char digits[PLAN_NUMBER_MAX * 3 + 2], *d = digits + sizeof digits;
	bool minus = sign && p[size - 1] & 0x80, more = true;
	unsigned carry = 1;

	for (size_t i = 0; minus && i < size; i++) {
		carry += (unsigned char)~p[i];
		p[i] = (unsigned char)carry;
		carry >>= 8;
	}
	*--d = '\0';
	while (more) {
		unsigned rest = 0;

		more = false;
		for (size_t i = size; i-- > 0;) {
			rest = rest << 8 | p[i];
			p[i] = (unsigned char)(rest / 10);
			rest %= 10;
			more = more || p[i];
		}
		*--d = (char)('0' + rest);
	}
	if (minus)
		*--d = '-';
	return json_string(d);
}

/* The number as a type that this machine has, or in whole bytes. */
static bool convert_number(const struct plan_node *n, const unsigned char *p,
			   void *room)
{
	memcpy(room, p, n->size);
	return H5Tconvert(n->type, n->into, 1, room, NULL, H5P_DEFAULT) >= 0;
}

static json_t *number_value(struct hdf5_json *j, const struct plan_node *n,
			    const unsigned char *p)
{
	unsigned char room[PLAN_NUMBER_MAX];
	uint64_t v;

	switch (n->how) {
	case PLAN_DIRECT:
		v = gather_integer(p, n->size, n->big);
		if (n->sign && n->size < 8 && v >> (n->size * 8 - 1))
			v |= UINT64_MAX << n->size * 8;
		return integer_value(v, n->sign);
	case PLAN_CONVERTED:
		if (!convert_number(n, p, room))
			break;
		memcpy(&v, room, sizeof v);
		return integer_value(v, n->sign);
	case PLAN_WIDE:
		if (!convert_number(n, p, room))
			break;
		return wide_integer_value(room, n->size, n->sign);
	case PLAN_BYTES:
		break;
	}
	return hex_digits(j, p, n->size);
}

static json_t *real_value(struct hdf5_json *j, const struct plan_node *n,
			  const unsigned char *p)
{
	unsigned char room[PLAN_NUMBER_MAX];
	char digits[64];
	long double wide;
	double v;

	if (n->how == PLAN_DIRECT) {
		uint64_t bits = gather_integer(p, n->size, n->big);
		uint32_t low = (uint32_t)bits;
		float f;

		memcpy(&f, &low, sizeof f);
		memcpy(&v, &bits, sizeof v);
		return json_number(n->size == 4 ? (double)f : v);
	}
	if (n->how != PLAN_CONVERTED || !convert_number(n, p, room))
		return hex_digits(j, p, n->size);
	memcpy(&wide, room, sizeof wide);
	v = (double)wide;
	if (isnan(v) || (long double)v == wide)
		return json_number(v);
	snprintf(digits, sizeof digits, "%.21Lg", wide);
	return json_string(digits);
}

static json_t *enum_value(struct hdf5_json *j, const struct plan_node *n,
			  const unsigned char *p)
{
	const char *name;

	if (n->is_bool && *p <= 1)
		return json_boolean(*p);
	name = plan_name(n, p);
	if (!name)
		return number_value(j, n->child, p);
	if (!spend_letters(j, strlen(name)))
		return NULL;
	return json_text(name, strlen(name));
}

/* ---- text and references ------------------------------------------------- */

size_t hdf5_string_length(const char *s, size_t width, H5T_str_t pad)
{
	const char *nul = memchr(s, 0, width);

	if (pad == H5T_STR_NULLTERM)
		return nul ? (size_t)(nul - s) : width;
	while (pad == H5T_STR_SPACEPAD && width && s[width - 1] == ' ')
		width--;
	/* (NumPy strips NULs whatever the file calls padding.) */
	while (width && s[width - 1] == '\0')
		width--;
	return width;
}

static json_t *string_value(struct hdf5_json *j, const struct plan_node *n,
			    const unsigned char *p)
{
	const char *s = (const char *)p;
	size_t len;

	if (n->vlen) {
		memcpy(&s, p, sizeof s);
		len = s ? strlen(s) : 0;
	} else {
		len = hdf5_string_length(s, n->size, n->pad);
	}
	return spend_letters(j, len) ? json_text(s ? s : "", len) : NULL;
}

static json_t *reference_value(struct hdf5_json *j, const struct plan_node *n,
			       const unsigned char *p)
{
	struct hdf5_meaning m;
	json_t *v;

	if (hdf5_reference_read(j->paths, n->type, p, &m) < 0)
		return fail_element(j, -ENOMEM);
	if (!m.path) {
		v = json_null();
	} else if (!m.selection) {
		v = json_text(m.path, strlen(m.path));
	} else {
		v = json_object();
		json_object_set_new(v, "path",
				    json_text(m.path, strlen(m.path)));
		json_object_set_new(v, "selection", json_string(m.selection));
	}
	hdf5_meaning_free(&m);
	return v;
}

/* ---- what consists of others --------------------------------------------- */

static json_t *compound_value(struct hdf5_json *j, const struct plan_node *n,
			      const unsigned char *p)
{
	json_t *o = json_object();

	for (size_t i = 0; i < n->n && !j->code; i++) {
		const struct plan_node *m = &n->child[i];

		if (json_object_set_new(o, m->name,
					element_value(j, m, p + m->offset)) < 0)
			fail_element(j, -ENOMEM);
	}
	return o;
}

static json_t *list_elements(struct hdf5_json *j, const struct plan_node *of,
			     const unsigned char *p, size_t n)
{
	json_t *a = json_array();

	for (size_t i = 0; i < n && !j->code; i++, p += of->size)
		if (json_array_append_new(a, element_value(j, of, p)) < 0)
			fail_element(j, -ENOMEM);
	return a;
}

/* Arrays from `axis` on; *p moves behind what was taken. */
static json_t *nest_array(struct hdf5_json *j, const struct plan_node *n,
			  unsigned axis, const unsigned char **p)
{
	json_t *a;

	if (axis + 1 == n->rank) {
		a = list_elements(j, n->child, *p, n->dims[axis]);
		*p += n->dims[axis] * n->child->size;
		return a;
	}
	a = json_array();
	for (hsize_t i = 0; i < n->dims[axis] && !j->code; i++)
		if (json_array_append_new(a, nest_array(j, n, axis + 1, p)) < 0)
			fail_element(j, -ENOMEM);
	return a;
}

static json_t *element_value(struct hdf5_json *j, const struct plan_node *n,
			     const unsigned char *p)
{
	hvl_t sequence;

	if (!spend_letters(j, 1))
		return NULL;
	switch (n->class) {
	case H5T_INTEGER:
	case H5T_BITFIELD:
	case H5T_TIME:
		return number_value(j, n, p);
	case H5T_FLOAT:
		return real_value(j, n, p);
	case H5T_ENUM:
		return enum_value(j, n, p);
	case H5T_STRING:
		return string_value(j, n, p);
	case H5T_REFERENCE:
		return reference_value(j, n, p);
	case H5T_COMPOUND:
		return compound_value(j, n, p);
	case H5T_ARRAY:
		return nest_array(j, n, 0, &p);
	case H5T_VLEN:
		memcpy(&sequence, p, sizeof sequence);
		return list_elements(j, n->child, sequence.p, sequence.len);
	default:
		return hex_digits(j, p, n->size);
	}
}

int hdf5_json_value(struct hdf5_json *j, const void *data, json_t **out,
		    struct error *err)
{
	json_t *v;

	j->left = HDF5_JSON_MAX;
	j->code = 0;
	*out = NULL;
	v = element_value(j, &j->root, data);
	if (!j->code && !v)
		j->code = -ENOMEM;
	if (!j->code) {
		*out = v;
		return 0;
	}
	json_decref(v);
	if (j->code == -ENOTSUP)
		return error_set(err, -ENOTSUP,
				 "a value of more than %zu numbers and letters "
				 "is not shown as text",
				 HDF5_JSON_MAX);
	return error_no_memory(err, "a value as text");
}

int hdf5_json_new(hid_t type, struct hdf5_paths *paths, struct hdf5_json **out,
		  struct error *err)
{
	struct hdf5_json *j = calloc(1, sizeof *j);
	int r = j ? plan_node_open(&j->root, type, 0) : -ENOMEM;

	*out = NULL;
	if (r < 0) {
		hdf5_json_free(j);
		return r == -ENOMEM
			       ? error_no_memory(err, "the plan of a type")
			       : error_set(err, r, "its type cannot be read");
	}
	j->paths = paths;
	*out = j;
	return 0;
}

void hdf5_json_free(struct hdf5_json *j)
{
	if (j)
		plan_node_close(&j->root);
	free(j);
}
