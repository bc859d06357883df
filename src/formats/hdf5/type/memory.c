/* SPDX-License-Identifier: BSD-2-Clause */
/* The types that H5Dread converts to: elements as they are served. */

/*
 * A dtype lacks some of what the library needs (tags of opaque bytes, padding of strings,
 * which unsigned numbers are bits), so the stored type is walked together with it.
 */
#include "formats/hdf5/type/type_private.h"

#include <string.h>

static hid_t memory_type(hid_t type, const struct dtype *served);

static hid_t with_order(hid_t type, bool big)
{
	hid_t t = H5Tcopy(type);

	if (t >= 0 && H5Tset_order(t, big ? H5T_ORDER_BE : H5T_ORDER_LE) < 0) {
		H5Tclose(t);
		return H5I_INVALID_HID;
	}
	return t;
}

static hid_t memory_half(bool big)
{
	hid_t t = H5Tcopy(H5T_IEEE_F32LE);

	if (t >= 0 &&
	    (H5Tset_fields(t, 15, 10, 5, 0, 10) < 0 || H5Tset_size(t, 2) < 0 ||
	     H5Tset_ebias(t, 15) < 0 ||
	     H5Tset_order(t, big ? H5T_ORDER_BE : H5T_ORDER_LE) < 0)) {
		H5Tclose(t);
		return H5I_INVALID_HID;
	}
	return t;
}

static hid_t memory_float(size_t size, bool big)
{
	switch (size) {
	case 2:
		return memory_half(big);
	case 4:
		return with_order(H5T_IEEE_F32LE, big);
	case 8:
		return with_order(H5T_IEEE_F64LE, big);
	case 16:
		return sizeof(long double) == 16
			       ? with_order(H5T_NATIVE_LDOUBLE, big)
			       : H5I_INVALID_HID;
	default:
		return H5I_INVALID_HID;
	}
}

static unsigned log2_of(size_t size)
{
	return size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;
}

static hid_t memory_integer(hid_t type, const struct dtype *d)
{
	const hid_t table[3][4] = {
		{H5T_STD_I8LE, H5T_STD_I16LE, H5T_STD_I32LE, H5T_STD_I64LE},
		{H5T_STD_U8LE, H5T_STD_U16LE, H5T_STD_U32LE, H5T_STD_U64LE},
		{H5T_STD_B8LE, H5T_STD_B16LE, H5T_STD_B32LE, H5T_STD_B64LE}};
	unsigned row = d->kind == DTYPE_UINT;
	hid_t bits = hdf5_type_of_bits(d->text, d->big_endian);

	if (bits >= 0)
		return bits;
	/* The library does not convert times, so their type stays. */
	if (H5Tget_class(type) == H5T_TIME)
		return with_order(type, d->big_endian);
	if (H5Tget_class(type) == H5T_BITFIELD)
		row = 2;
	return with_order(table[row][log2_of(d->size)], d->big_endian);
}

static hid_t memory_complex(const struct dtype *d)
{
	hid_t part = memory_float(d->size / 2, d->big_endian), t;

	if (part < 0)
		return part;
	t = H5Tcreate(H5T_COMPOUND, d->size);
	if (t >= 0 && (H5Tinsert(t, "r", 0, part) < 0 ||
		       H5Tinsert(t, "i", d->size / 2, part) < 0)) {
		H5Tclose(t);
		t = H5I_INVALID_HID;
	}
	H5Tclose(part);
	return t;
}

/* Return a copy of a type whose bytes are served unchanged: its size and class must be
 * those of `d`. */
static hid_t memory_same_bytes(hid_t type, const struct dtype *d,
			       H5T_class_t class)
{
	if (H5Tget_class(type) != class || H5Tget_size(type) != d->size)
		return H5I_INVALID_HID;
	return H5Tcopy(type);
}

/* Make `string` a string padded with NULs, as in NumPy.  Return it, or close it and
 * return a negative number. */
static hid_t memory_padded(hid_t string)
{
	if (string >= 0 && H5Tset_strpad(string, H5T_STR_NULLPAD) < 0) {
		H5Tclose(string);
		return H5I_INVALID_HID;
	}
	return string;
}

static bool memory_insert_field(hid_t to, hid_t type,
				const struct dtype_field *f)
{
	int i = H5Tget_member_index(type, f->name);
	hid_t m =
		i < 0 ? H5I_INVALID_HID : H5Tget_member_type(type, (unsigned)i);
	hid_t t = m < 0 ? m : memory_type(m, &f->type);
	uint64_t size = f->type.size;
	bool ok;

	for (unsigned k = 0; k < f->rank; k++)
		size *= f->dims[k]; /* no overflow: checked when the type was read */
	ok = t >= 0 && H5Tget_size(t) == size &&
	     H5Tinsert(to, f->name, f->offset, t) >= 0;
	if (t >= 0)
		H5Tclose(t);
	if (m >= 0)
		H5Tclose(m);
	return ok;
}

static hid_t memory_structure(hid_t type, const struct dtype *d)
{
	hid_t t;

	if (H5Tget_class(type) != H5T_COMPOUND)
		return H5I_INVALID_HID;
	t = H5Tcreate(H5T_COMPOUND, d->size);
	for (uint32_t i = 0; t >= 0 && i < d->nfields; i++)
		if (!memory_insert_field(t, type, &d->fields[i])) {
			H5Tclose(t);
			t = H5I_INVALID_HID;
		}
	return t;
}

/* Return the array or sequence type that has the shape of `type`, and elements (or
 * only `member` of them) as `served` says. */
static hid_t memory_container(hid_t type, const struct dtype *served,
			      const char *member)
{
	hid_t base = H5Tget_super(type);
	hid_t of = base < 0 ? base : hdf5_type_memory(base, served, member);
	hid_t t = H5I_INVALID_HID;
	hsize_t dims[RANK_MAX];
	int rank;

	if (of >= 0 && H5Tget_class(type) == H5T_ARRAY) {
		rank = H5Tget_array_ndims(type);
		if (rank > 0 && rank <= RANK_MAX &&
		    H5Tget_array_dims2(type, dims) == rank)
			t = H5Tarray_create2(of, (unsigned)rank, dims);
	} else if (of >= 0) {
		t = H5Tvlen_create(of);
	}
	if (of >= 0)
		H5Tclose(of);
	if (base >= 0)
		H5Tclose(base);
	return t;
}

static hid_t memory_type(hid_t type, const struct dtype *d)
{
	H5T_class_t class = H5Tget_class(type);

	if (d->kind == DTYPE_STRING || d->kind == DTYPE_TEXT)
		return H5Tcopy(type);
	if (class == H5T_ARRAY)
		return memory_container(type, d, NULL);
	switch (d->kind) {
	case DTYPE_INT:
	case DTYPE_UINT:
		return memory_integer(type, d);
	case DTYPE_BOOL:
		return H5Tcopy(H5T_STD_I8LE);
	case DTYPE_FLOAT:
		return memory_float(d->size, d->big_endian);
	case DTYPE_COMPLEX:
		return memory_complex(d);
	case DTYPE_BYTES:
		return memory_padded(memory_same_bytes(type, d, H5T_STRING));
	case DTYPE_OPAQUE:
		return memory_same_bytes(type, d, H5T_OPAQUE);
	case DTYPE_STRUCT:
		return memory_structure(type, d);
	case DTYPE_RAGGED:
		return class == H5T_VLEN
			       ? memory_container(type, &d->fields[0].type,
						  NULL)
			       : H5I_INVALID_HID;
	default:
		return H5I_INVALID_HID;
	}
}

/* ---- members ------------------------------------------------------------- */

/* Return the number of the member with whose name a path begins, or -1.  *rest is what
 * follows, or NULL if nothing does.  A name may contain a slash: the longest name that
 * fits is taken. */
static int member_find(hid_t type, const char *path, const char **rest)
{
	int n = H5Tget_class(type) == H5T_COMPOUND ? H5Tget_nmembers(type) : 0;
	int found = -1;
	size_t best = 0;

	for (int i = 0; i < n; i++) {
		char *name = H5Tget_member_name(type, (unsigned)i);
		size_t len = name ? strlen(name) : 0;
		bool fits = name && !strncmp(path, name, len) &&
			    (path[len] == '\0' || path[len] == '/');

		if (name)
			H5free_memory(name);
		if (fits && (found < 0 || len > best)) {
			found = i;
			best = len;
		}
	}
	*rest = found >= 0 && path[best] ? path + best + 1 : NULL;
	return found;
}

/* Return the type of the elements of (nested) arrays; append their axes to `dims`. */
static hid_t behind_arrays(hid_t type, unsigned *rank, uint64_t *dims)
{
	hid_t t = H5Tcopy(type), of;

	while (t >= 0 && H5Tget_class(t) == H5T_ARRAY) {
		int n = H5Tget_array_ndims(t);

		of = H5I_INVALID_HID;
		if (n > 0 && (unsigned)n <= RANK_MAX - *rank &&
		    H5Tget_array_dims2(t, (hsize_t *)dims + *rank) == n) {
			*rank += (unsigned)n;
			of = H5Tget_super(t);
		}
		H5Tclose(t);
		t = of;
	}
	return t;
}

static hid_t member_behind(hid_t type, const char *path, unsigned *rank,
			   uint64_t *dims)
{
	hid_t t = behind_arrays(type, rank, dims), m, out;
	const char *rest;
	int i;

	if (t < 0 || !path)
		return t;
	i = member_find(t, path, &rest);
	m = i < 0 ? H5I_INVALID_HID : H5Tget_member_type(t, (unsigned)i);
	H5Tclose(t);
	if (m < 0)
		return m;
	out = member_behind(m, rest, rank, dims);
	H5Tclose(m);
	return out;
}

hid_t hdf5_type_member(hid_t type, const char *path, unsigned *rank,
		       uint64_t *dims)
{
	*rank = 0;
	return member_behind(type, path, rank, dims);
}

/* Return a compound with only member i of `type`, as type `t`. */
static hid_t memory_wrap_member(hid_t type, int i, hid_t t)
{
	char *name = H5Tget_member_name(type, (unsigned)i);
	hid_t out = name ? H5Tcreate(H5T_COMPOUND, H5Tget_size(t))
			 : H5I_INVALID_HID;

	if (out >= 0 && H5Tinsert(out, name, 0, t) < 0) {
		H5Tclose(out);
		out = H5I_INVALID_HID;
	}
	if (name)
		H5free_memory(name);
	return out;
}

hid_t hdf5_type_memory(hid_t type, const struct dtype *served, const char *path)
{
	hid_t m, t, out = H5I_INVALID_HID;
	const char *rest;
	int i;

	if (!path)
		return memory_type(type, served);
	if (H5Tget_class(type) == H5T_ARRAY)
		return memory_container(type, served, path);
	i = member_find(type, path, &rest);
	m = i < 0 ? H5I_INVALID_HID : H5Tget_member_type(type, (unsigned)i);
	if (m < 0)
		return m;
	t = hdf5_type_memory(m, served, rest);
	if (t >= 0) {
		out = memory_wrap_member(type, i, t);
		H5Tclose(t);
	}
	H5Tclose(m);
	return out;
}
