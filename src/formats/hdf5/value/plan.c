/* SPDX-License-Identifier: BSD-2-Clause */
/* How elements of an HDF5 type lie in memory, as a tree. */
#include "formats/hdf5/value/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "formats/hdf5/type/type_private.h"

#define DEPTH_MAX 64 /* types in types */

void plan_node_close(struct plan_node *n)
{
	for (size_t i = 0; i < n->n; i++)
		plan_node_close(&n->child[i]);
	for (size_t i = 0; i < n->nnames; i++)
		H5free_memory(n->names[i].name);
	if (n->type > 0)
		H5Tclose(n->type);
	if (n->into > 0)
		H5Tclose(n->into);
	free(n->child);
	free(n->names);
	free(n->name);
	free(n->dims);
}

static int children_new(struct plan_node *n, size_t count)
{
	n->child = calloc(count, sizeof *n->child);
	if (!n->child)
		return -ENOMEM;
	n->n = count;
	return 0;
}

static int open_super(struct plan_node *n, hid_t type, unsigned depth)
{
	hid_t base = H5Tget_super(type);
	int r = base < 0 ? -EIO : children_new(n, 1);

	if (!r)
		r = plan_node_open(n->child, base, depth + 1);
	if (base >= 0)
		H5Tclose(base);
	return r;
}

/* ---- numbers ------------------------------------------------------------- */

/* Both types that H5Tconvert wants; `into` becomes ours. */
static int plan_conversion(struct plan_node *n, hid_t type, hid_t into,
			   enum plan_how how)
{
	n->how = how;
	n->into = into;
	n->type = H5Tcopy(type);
	return n->into < 0 || n->type < 0 ? -EIO : 0;
}

static hid_t whole_bytes(hid_t type, size_t size)
{
	hid_t t = H5Tcopy(type);

	if (t >= 0 &&
	    (H5Tset_order(t, H5T_ORDER_LE) < 0 || H5Tset_offset(t, 0) < 0 ||
	     H5Tset_precision(t, size * 8) < 0)) {
		H5Tclose(t);
		return H5I_INVALID_HID;
	}
	return t;
}

static int open_integer(struct plan_node *n, hid_t type)
{
	H5T_order_t order = H5Tget_order(type);
	size_t bits = H5Tget_precision(type);
	hid_t native = H5T_NATIVE_B64;

	n->big = order == H5T_ORDER_BE;
	n->sign = n->class == H5T_TIME || (n->class == H5T_INTEGER &&
					   H5Tget_sign(type) != H5T_SGN_NONE);
	if (n->class == H5T_INTEGER)
		native = n->sign ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64;
	n->how = PLAN_DIRECT;
	if ((n->size == 1 || n->size == 2 || n->size == 4 || n->size == 8) &&
	    bits == n->size * 8 && H5Tget_offset(type) == 0 &&
	    (order == H5T_ORDER_LE || order == H5T_ORDER_BE || n->size == 1))
		return 0;
	n->how = PLAN_BYTES;
	if (n->class == H5T_TIME || n->size > PLAN_NUMBER_MAX ||
	    !hdf5_type_is_sound(type))
		return 0;
	if (bits <= 64)
		return plan_conversion(n, type, H5Tcopy(native),
				       PLAN_CONVERTED);
	if (n->class == H5T_INTEGER)
		return plan_conversion(n, type, whole_bytes(type, n->size),
				       PLAN_WIDE);
	return 0;
}

static int open_float(struct plan_node *n, hid_t type)
{
	n->big = H5Tequal(type, H5T_IEEE_F32BE) > 0 ||
		 H5Tequal(type, H5T_IEEE_F64BE) > 0;
	if (n->big || H5Tequal(type, H5T_IEEE_F32LE) > 0 ||
	    H5Tequal(type, H5T_IEEE_F64LE) > 0)
		return 0;
	n->how = PLAN_BYTES;
	if (n->size > PLAN_NUMBER_MAX || !hdf5_type_float_room(type))
		return 0;
	return plan_conversion(n, type, H5Tcopy(H5T_NATIVE_LDOUBLE),
			       PLAN_CONVERTED);
}

/* ---- enums --------------------------------------------------------------- */

static int compare_enum_values(const void *a, const void *b)
{
	return memcmp(a, b, sizeof((struct plan_enum *)0)->value);
}

const char *plan_name(const struct plan_node *n, const unsigned char *p)
{
	struct plan_enum key = {.name = NULL};
	const struct plan_enum *e;

	if (!n->nnames)
		return NULL;
	memcpy(key.value, p, n->size);
	e = bsearch(&key, n->names, n->nnames, sizeof key, compare_enum_values);
	return e ? e->name : NULL;
}

static int open_enum(struct plan_node *n, hid_t type, unsigned depth)
{
	int count = H5Tget_nmembers(type);
	int r = open_super(n, type, depth);

	if (r < 0)
		return r;
	if (n->child->class != H5T_INTEGER || n->child->size != n->size)
		return -EIO;
	n->is_bool = hdf5_type_is_bool(type);
	if (count <= 0 || n->size > sizeof n->names->value)
		return 0; /* numbers, then */
	n->names = calloc((size_t)count, sizeof *n->names);
	if (!n->names)
		return -ENOMEM;
	for (int i = 0; i < count; i++) {
		struct plan_enum *e = &n->names[i];

		e->name = H5Tget_member_name(type, (unsigned)i);
		if (!e->name)
			return -EIO;
		n->nnames++;
		if (H5Tget_member_value(type, (unsigned)i, e->value) < 0)
			return -EIO;
	}
	qsort(n->names, n->nnames, sizeof *n->names, compare_enum_values);
	return 0;
}

/* ---- what consists of others --------------------------------------------- */

static int open_member(struct plan_node *n, hid_t compound, unsigned i,
		       size_t room, unsigned depth)
{
	hid_t type = H5Tget_member_type(compound, i);
	char *name = H5Tget_member_name(compound, i);
	json_t *key = name ? json_text(name, strlen(name)) : NULL;
	int r = type < 0 || !name ? -EIO : -ENOMEM;

	n->offset = H5Tget_member_offset(compound, i);
	n->name = key ? strdup(json_string_value(key)) : NULL;
	if (n->name)
		r = plan_node_open(n, type, depth + 1);
	if (!r && (n->offset > room || n->size > room - n->offset))
		r = -EIO;
	json_decref(key);
	if (name)
		H5free_memory(name);
	if (type >= 0)
		H5Tclose(type);
	return r;
}

static int open_compound(struct plan_node *n, hid_t type, unsigned depth)
{
	int count = H5Tget_nmembers(type);
	int r = count <= 0 ? -EIO : children_new(n, (size_t)count);

	for (int i = 0; i < count && !r; i++)
		r = open_member(&n->child[i], type, (unsigned)i, n->size,
				depth);
	return r;
}

static int open_array(struct plan_node *n, hid_t type, unsigned depth)
{
	int rank = H5Tget_array_ndims(type);
	int r = open_super(n, type, depth);
	uint64_t size;

	if (r < 0)
		return r;
	if (rank < 1 || rank > RANK_MAX)
		return -EIO;
	n->rank = (unsigned)rank;
	n->dims = calloc(n->rank, sizeof *n->dims);
	if (!n->dims)
		return -ENOMEM;
	if (H5Tget_array_dims2(type, n->dims) != rank)
		return -EIO;
	size = n->child->size;
	for (unsigned i = 0; i < n->rank; i++)
		if (mul_overflows(size, n->dims[i], &size))
			return -EIO;
	return size == n->size ? 0 : -EIO;
}

static int open_class(struct plan_node *n, hid_t type, unsigned depth)
{
	switch (n->class) {
	case H5T_INTEGER:
	case H5T_BITFIELD:
	case H5T_TIME:
		return open_integer(n, type);
	case H5T_FLOAT:
		return open_float(n, type);
	case H5T_ENUM:
		return open_enum(n, type, depth);
	case H5T_STRING:
		n->vlen = H5Tis_variable_str(type) > 0;
		n->pad = H5Tget_strpad(type);
		return 0;
	case H5T_REFERENCE:
		n->type = H5Tcopy(type);
		return n->type < 0 ? -EIO : 0;
	case H5T_COMPOUND:
		return open_compound(n, type, depth);
	case H5T_ARRAY:
		return open_array(n, type, depth);
	case H5T_VLEN:
		return open_super(n, type, depth);
	case H5T_OPAQUE:
		return 0;
	default:
		return -EIO;
	}
}

int plan_node_open(struct plan_node *n, hid_t type, unsigned depth)
{
	n->class = H5Tget_class(type);
	n->size = H5Tget_size(type);
	return n->size == 0 || depth > DEPTH_MAX ? -EIO
						 : open_class(n, type, depth);
}
