/* SPDX-License-Identifier: BSD-2-Clause */
/* The HDF5 types of NumPy's types, exactly as h5py makes them. */
#include "formats/hdf5/type/dtype.h"

#include <errno.h>

#include "tensor/dtype_parse.h"

static hid_t make_integer(const struct dtype *d)
{
	bool is_signed = d->kind == DTYPE_INT, big = d->big_endian;

	switch (d->size) {
	case 1:
		return H5Tcopy(is_signed ? H5T_STD_I8LE : H5T_STD_U8LE);
	case 2:
		return H5Tcopy(is_signed ? big ? H5T_STD_I16BE : H5T_STD_I16LE
			       : big     ? H5T_STD_U16BE
					 : H5T_STD_U16LE);
	case 4:
		return H5Tcopy(is_signed ? big ? H5T_STD_I32BE : H5T_STD_I32LE
			       : big     ? H5T_STD_U32BE
					 : H5T_STD_U32LE);
	case 8:
		return H5Tcopy(is_signed ? big ? H5T_STD_I64BE : H5T_STD_I64LE
			       : big     ? H5T_STD_U64BE
					 : H5T_STD_U64LE);
	default:
		return H5I_INVALID_HID;
	}
}

/* IEEE 754 binary16: sign, 5 bits of exponent, 10 of mantissa. */
static hid_t make_half(bool big)
{
	hid_t t = H5Tcopy(big ? H5T_IEEE_F32BE : H5T_IEEE_F32LE);

	if (t >= 0 && (H5Tset_fields(t, 15, 10, 5, 0, 10) < 0 ||
		       H5Tset_size(t, 2) < 0 || H5Tset_ebias(t, 15) < 0)) {
		H5Tclose(t);
		return H5I_INVALID_HID;
	}
	return t;
}

static hid_t make_float(uint32_t size, bool big)
{
	hid_t t;

	switch (size) {
	case 2:
		return make_half(big);
	case 4:
		return H5Tcopy(big ? H5T_IEEE_F32BE : H5T_IEEE_F32LE);
	case 8:
		return H5Tcopy(big ? H5T_IEEE_F64BE : H5T_IEEE_F64LE);
	case 16:
		t = sizeof(long double) == 16 ? H5Tcopy(H5T_NATIVE_LDOUBLE)
					      : H5I_INVALID_HID;
		if (t >= 0)
			H5Tset_order(t, big ? H5T_ORDER_BE : H5T_ORDER_LE);
		return t;
	default:
		return H5I_INVALID_HID;
	}
}

static hid_t make_complex(const struct dtype *d)
{
	hid_t part = make_float(d->size / 2, d->big_endian);
	hid_t t = part < 0 ? part : H5Tcreate(H5T_COMPOUND, d->size);

	if (t >= 0 && (H5Tinsert(t, "r", 0, part) < 0 ||
		       H5Tinsert(t, "i", d->size / 2, part) < 0)) {
		H5Tclose(t);
		t = H5I_INVALID_HID;
	}
	if (part >= 0)
		H5Tclose(part);
	return t;
}

static hid_t make_bool(void)
{
	hid_t t = H5Tenum_create(H5T_STD_I8LE);
	int8_t no = 0, yes = 1;

	if (t >= 0 && (H5Tenum_insert(t, "FALSE", &no) < 0 ||
		       H5Tenum_insert(t, "TRUE", &yes) < 0)) {
		H5Tclose(t);
		return H5I_INVALID_HID;
	}
	return t;
}

static hid_t make_bytes(uint32_t size)
{
	hid_t t = H5Tcopy(H5T_C_S1);

	if (t >= 0 && (H5Tset_size(t, size) < 0 ||
		       H5Tset_strpad(t, H5T_STR_NULLPAD) < 0)) {
		H5Tclose(t);
		return H5I_INVALID_HID;
	}
	return t;
}

int hdf5_type_of_dtype(const struct dtype *d, hid_t *type, struct error *err)
{
	char name[64];
	hid_t t;

	*type = H5I_INVALID_HID;
	switch (d->kind) {
	case DTYPE_INT:
	case DTYPE_UINT:
		t = make_integer(d);
		break;
	case DTYPE_FLOAT:
		t = make_float(d->size, d->big_endian);
		break;
	case DTYPE_COMPLEX:
		t = make_complex(d);
		break;
	case DTYPE_BOOL:
		t = make_bool();
		break;
	case DTYPE_BYTES:
		t = make_bytes(d->size);
		break;
	case DTYPE_OPAQUE:
		t = H5Tcreate(H5T_OPAQUE, d->size);
		break;
	default:
		dtype_name(d, name, sizeof name);
		return error_set(
			err, -ENOTSUP,
			"elements of type %s cannot be written to HDF5 files",
			name);
	}
	if (t < 0)
		return error_no_memory(err, "an HDF5 element type");
	*type = t;
	return 0;
}

int hdf5_type_of_numpy(const char *text, hid_t *type, size_t *size,
		       struct error *err)
{
	struct dtype d;
	int r = dtype_parse(text, &d, err);

	*type = H5I_INVALID_HID;
	if (r < 0)
		return r;
	if (size)
		*size = d.size;
	return hdf5_type_of_dtype(&d, type, err);
}
