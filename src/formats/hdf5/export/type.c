/* SPDX-License-Identifier: BSD-2-Clause */
/* Types of array.h5 and merged.h5: those of the source, for elements as served. */

/*
 * Where bytes are served as they are stored, but for their order, the type is the
 * source's own: names of enums, tags, formats of floats that NumPy lacks are kept.  What
 * is converted has the type that it is converted to.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "formats/hdf5/export/monolith.h"
#include "formats/hdf5/type/type.h"

static hid_t served_element_type(hid_t type, const struct dtype *is,
				 const struct dtype *as);

static H5T_order_t served_byte_order(const struct dtype *d)
{
	return d->big_endian ? H5T_ORDER_BE : H5T_ORDER_LE;
}

static hid_t close_failed_type(hid_t t)
{
	if (t >= 0)
		H5Tclose(t);
	return H5I_INVALID_HID;
}

static hid_t served_number_type(hid_t type, const struct dtype *as)
{
	hid_t t = H5Tcopy(type);

	if (t < 0 || as->size == 1 ||
	    H5Tset_order(t, served_byte_order(as)) >= 0)
		return t;
	return close_failed_type(t);
}

static void reverse_bytes(unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		unsigned char c = p[i];

		p[i] = p[n - 1 - i];
		p[n - 1 - i] = c;
	}
}

static bool insert_enum_name(hid_t to, hid_t type, unsigned i, size_t size)
{
	char *name = H5Tget_member_name(type, i);
	unsigned char value[16];
	bool ok = name && size <= sizeof value &&
		  H5Tget_member_value(type, i, value) >= 0;

	if (ok) {
		reverse_bytes(value, size);
		ok = H5Tenum_insert(to, name, value) >= 0;
	}
	if (name)
		H5free_memory(name);
	return ok;
}

/* An enum has its order of bytes for good: one in the other order is made anew. */
static hid_t served_enum_type(hid_t type, const struct dtype *as)
{
	hid_t base = H5Tget_super(type), t = H5I_INVALID_HID;
	int n = H5Tget_nmembers(type);

	if (base < 0)
		return base;
	if (as->size == 1 || H5Tget_order(base) == served_byte_order(as)) {
		H5Tclose(base);
		return H5Tcopy(type);
	}
	if (H5Tset_order(base, served_byte_order(as)) >= 0)
		t = H5Tenum_create(base);
	for (int i = 0; t >= 0 && i < n; i++)
		if (!insert_enum_name(t, type, (unsigned)i, as->size))
			t = close_failed_type(t);
	H5Tclose(base);
	return t;
}

static bool insert_served_field(hid_t to, hid_t type,
				const struct dtype_field *is,
				const struct dtype_field *as)
{
	int i = H5Tget_member_index(type, as->name);
	hid_t m =
		i < 0 ? H5I_INVALID_HID : H5Tget_member_type(type, (unsigned)i);
	hid_t t = m < 0 ? m : served_element_type(m, &is->type, &as->type);
	uint64_t count, size;
	bool ok = t >= 0 && dtype_field_size(as, &count, &size) &&
		  H5Tget_size(t) == size &&
		  H5Tinsert(to, as->name, as->offset, t) >= 0;

	if (t >= 0)
		H5Tclose(t);
	if (m >= 0)
		H5Tclose(m);
	return ok;
}

static hid_t served_compound_type(hid_t type, const struct dtype *is,
				  const struct dtype *as)
{
	hid_t t = is->nfields == as->nfields ? H5Tcreate(H5T_COMPOUND, as->size)
					     : H5I_INVALID_HID;

	cleanup_free uint32_t *order = calloc(as->nfields + 1, sizeof *order);

	if (!order)
		return close_failed_type(t);
	dtype_declared(as, order);
	for (uint32_t i = 0; t >= 0 && i < as->nfields; i++)
		if (!insert_served_field(t, type, &is->fields[order[i]],
					 &as->fields[order[i]]))
			t = close_failed_type(t);
	return t;
}

static hid_t served_array_type(hid_t type, const struct dtype *is,
			       const struct dtype *as)
{
	hid_t base = H5Tget_super(type), of, t = H5I_INVALID_HID;
	int rank = H5Tget_array_ndims(type);
	hsize_t dims[RANK_MAX];

	of = base < 0 ? base : served_element_type(base, is, as);
	if (of >= 0 && rank > 0 && rank <= RANK_MAX &&
	    H5Tget_array_dims2(type, dims) == rank)
		t = H5Tarray_create2(of, (unsigned)rank, dims);
	if (of >= 0)
		H5Tclose(of);
	if (base >= 0)
		H5Tclose(base);
	return t;
}

static hid_t served_element_type(hid_t type, const struct dtype *is,
				 const struct dtype *as)
{
	H5T_class_t class = H5Tget_class(type);
	bool kept = is->kind != DTYPE_OTHER && H5Tget_size(type) == as->size;

	if (class == H5T_ARRAY)
		return served_array_type(type, is, as);
	if (class == H5T_COMPOUND && as->kind == DTYPE_STRUCT)
		return served_compound_type(type, is, as);
	if (class == H5T_ENUM && kept)
		return served_enum_type(type, as);
	if ((class == H5T_INTEGER || class == H5T_FLOAT ||
	     class == H5T_BITFIELD || class == H5T_TIME) &&
	    kept)
		return served_number_type(type, as);
	return hdf5_type_memory(type, as, NULL);
}

hid_t monolith_type(hid_t type, const struct hdf5_tensor *h)
{
	const struct dtype *is = h->t.field ? &h->t.field->type : &h->t.stored;
	uint64_t dims[RANK_MAX];
	hsize_t axes[RANK_MAX];
	unsigned rank;
	hid_t leaf = hdf5_type_member(type, h->member, &rank, dims);
	hid_t t = leaf < 0 ? leaf : served_element_type(leaf, is, &h->t.dtype),
	      array;

	if (leaf >= 0)
		H5Tclose(leaf);
	if (t >= 0 && dtype_is_binary(&h->t.dtype) &&
	    H5Tget_size(t) != h->t.dtype.size)
		t = close_failed_type(t);
	if (t < 0 || h->member || !rank)
		return t;
	for (unsigned i = 0; i < rank; i++)
		axes[i] = dims[i];
	array = H5Tarray_create2(t, rank, axes);
	H5Tclose(t);
	return array;
}
