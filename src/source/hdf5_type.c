/* SPDX-License-Identifier: BSD-2-Clause */
/* HDF5 element types: which NumPy type has the same bytes. */
#include "source/hdf5.h"

#include <stdio.h>
#include <string.h>

static bool is_whole(hid_t type, size_t size)
{
	return H5Tget_precision(type) == size * 8 && H5Tget_offset(type) == 0;
}

static bool order_of(hid_t type, bool *big)
{
	H5T_order_t order = H5Tget_order(type);

	*big = order == H5T_ORDER_BE;
	return order == H5T_ORDER_LE || order == H5T_ORDER_BE;
}

static bool read_integer(hid_t type, struct dtype *d)
{
	size_t size = H5Tget_size(type);

	if ((size != 1 && size != 2 && size != 4 && size != 8) ||
	    !is_whole(type, size) || !order_of(type, &d->big_endian))
		return false;
	d->kind = H5Tget_sign(type) == H5T_SGN_NONE ? DTYPE_UINT : DTYPE_INT;
	d->size = (uint32_t)size;
	return true;
}

/* IEEE 754 binary16, 32 or 64 and nothing else. */
static bool read_float(hid_t type, struct dtype *d)
{
	static const struct {
		size_t size, spos, epos, esize, msize, bias;
	} ieee[] = {{2, 15, 10, 5, 10, 15},
		    {4, 31, 23, 8, 23, 127},
		    {8, 63, 52, 11, 52, 1023}};
	size_t size = H5Tget_size(type), spos, epos, esize, mpos, msize;

	if (H5Tget_fields(type, &spos, &epos, &esize, &mpos, &msize) < 0 ||
	    !is_whole(type, size) || !order_of(type, &d->big_endian))
		return false;
	for (unsigned i = 0; i < sizeof ieee / sizeof *ieee; i++)
		if (ieee[i].size == size && ieee[i].spos == spos &&
		    ieee[i].epos == epos && ieee[i].esize == esize &&
		    ieee[i].msize == msize && mpos == 0 &&
		    ieee[i].bias == H5Tget_ebias(type) &&
		    H5Tget_norm(type) == H5T_NORM_IMPLIED) {
			d->kind = DTYPE_FLOAT;
			d->size = (uint32_t)size;
			return true;
		}
	return false;
}

static bool member_is(hid_t type, unsigned i, const char *name)
{
	char *have = H5Tget_member_name(type, i);
	bool same = have && !strcmp(have, name);

	if (have)
		H5free_memory(have);
	return same;
}

/* What h5py writes for complex numbers: {r, i} of one float type. */
static bool read_complex(hid_t type, struct dtype *d)
{
	struct dtype part[2] = {{0}, {0}};

	if (H5Tget_nmembers(type) != 2 || !member_is(type, 0, "r") ||
	    !member_is(type, 1, "i"))
		return false;
	for (unsigned i = 0; i < 2; i++) {
		hid_t m = H5Tget_member_type(type, i);
		bool ok =
			H5Tget_class(m) == H5T_FLOAT && read_float(m, &part[i]);

		H5Tclose(m);
		if (!ok || part[i].size < 4)
			return false;
	}
	if (part[0].size != part[1].size ||
	    part[0].big_endian != part[1].big_endian ||
	    H5Tget_size(type) != 2 * part[0].size ||
	    H5Tget_member_offset(type, 0) != 0 ||
	    H5Tget_member_offset(type, 1) != part[0].size)
		return false;
	d->kind = DTYPE_COMPLEX;
	d->size = 2 * part[0].size;
	d->big_endian = part[0].big_endian;
	return true;
}

/* What h5py writes for bool: an enum FALSE = 0, TRUE = 1 of one byte. */
static bool read_bool(hid_t type, struct dtype *d)
{
	signed char v[2] = {-1, -1};

	if (H5Tget_size(type) != 1 || H5Tget_nmembers(type) != 2 ||
	    !member_is(type, 0, "FALSE") || !member_is(type, 1, "TRUE") ||
	    H5Tget_member_value(type, 0, &v[0]) < 0 ||
	    H5Tget_member_value(type, 1, &v[1]) < 0 || v[0] != 0 || v[1] != 1)
		return false;
	d->kind = DTYPE_BOOL;
	d->size = 1;
	return true;
}

static void read_string(hid_t type, struct dtype *d)
{
	const char *set =
		H5Tget_cset(type) == H5T_CSET_UTF8 ? "UTF-8" : "ASCII";

	d->kind = DTYPE_STRING;
	d->vlen = H5Tis_variable_str(type) > 0;
	d->size = (uint32_t)H5Tget_size(type);
	if (d->vlen)
		snprintf(d->text, sizeof d->text, "variable-length %s string",
			 set);
	else
		snprintf(d->text, sizeof d->text, "%s string of %u bytes", set,
			 (unsigned)d->size);
}

static const char *class_name(H5T_class_t class)
{
	switch (class) {
	case H5T_INTEGER:
		return "integer of unusual width";
	case H5T_FLOAT:
		return "floating-point type that is not IEEE 754";
	case H5T_TIME:
		return "time";
	case H5T_BITFIELD:
		return "bitfield";
	case H5T_OPAQUE:
		return "opaque";
	case H5T_COMPOUND:
		return "compound";
	case H5T_REFERENCE:
		return "reference";
	case H5T_ENUM:
		return "enum";
	case H5T_VLEN:
		return "variable-length sequence";
	case H5T_ARRAY:
		return "array";
	default:
		return "unknown type";
	}
}

void hdf5_type_read(hid_t type, struct dtype *out)
{
	H5T_class_t class = H5Tget_class(type);
	bool ok = false;

	memset(out, 0, sizeof *out);
	if (class == H5T_INTEGER)
		ok = read_integer(type, out);
	else if (class == H5T_FLOAT)
		ok = read_float(type, out);
	else if (class == H5T_COMPOUND)
		ok = read_complex(type, out);
	else if (class == H5T_ENUM)
		ok = read_bool(type, out);
	else if (class == H5T_STRING) {
		read_string(type, out);
		ok = true;
	}
	if (out->size == 1)
		out->big_endian = false;
	if (ok)
		return;
	memset(out, 0, sizeof *out);
	out->kind = DTYPE_OTHER;
	out->size = (uint32_t)H5Tget_size(type);
	snprintf(out->text, sizeof out->text, "%s", class_name(class));
}
