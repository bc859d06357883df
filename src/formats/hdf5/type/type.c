/* SPDX-License-Identifier: BSD-2-Clause */
/* HDF5 element types: which NumPy type has the same bytes. */

/*
 * A type that NumPy has as well is served from the stored bytes.  Any other number is
 * served as the next larger one that NumPy has; the library converts it.  Types that are
 * not arrays of numbers are served as text or as sequences.
 *
 * H5Dget_type returns the type as it is in memory.  There, text of variable length is a
 * pointer; in the file it is a reference to a heap: a length (4 bytes), an address, an
 * index (4 bytes).  So two sizes are counted for each type.
 */
#include "formats/hdf5/type/type_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"

#define DEPTH_MAX 32 /* types nested in types */

/* ---- words --------------------------------------------------------------- */

int hdf5_type_say_text(struct type_reader *r, struct element *e, const char *s)
{
	e->stored.text = e->served.text = intern_bytes(r->in, s, strlen(s) + 1);
	return e->stored.text ? 0 : -ENOMEM;
}

int hdf5_type_say(struct type_reader *r, struct element *e, const char *fmt,
		  ...)
{
	char s[320];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s, sizeof s, fmt, ap);
	va_end(ap);
	return hdf5_type_say_text(r, e, s);
}

static void set_both(struct element *e, enum dtype_kind kind)
{
	uint64_t size = min_u64(e->in_file, UINT32_MAX);

	e->rank = 0;
	memset(&e->stored, 0, sizeof e->stored);
	e->stored.kind = kind;
	e->stored.size = (uint32_t)size;
	memcpy(&e->served, &e->stored, sizeof e->served);
}

int hdf5_type_refuse(struct type_reader *r, struct element *e, const char *why)
{
	set_both(e, DTYPE_OTHER);
	return hdf5_type_say_text(r, e, why);
}

int hdf5_type_as_text(struct type_reader *r, struct element *e,
		      const char *what)
{
	set_both(e, DTYPE_TEXT);
	return hdf5_type_say_text(r, e, what);
}

/* ---- strings and other bytes --------------------------------------------- */

static void type_set_in_heap(const struct type_reader *r, struct element *e)
{
	e->in_file = 4 + r->address + 4;
	e->laid_out = r->address_known;
}

static int read_string(struct type_reader *r, hid_t type, struct element *e)
{
	const char *set =
		H5Tget_cset(type) == H5T_CSET_UTF8 ? "UTF-8" : "ASCII";
	bool vlen = H5Tis_variable_str(type) > 0;

	if (vlen)
		type_set_in_heap(r, e);
	if (!vlen && r->inside) {
		set_both(e, DTYPE_BYTES);
		if (H5Tget_strpad(type) == H5T_STR_NULLTERM)
			e->stored.padding = PADDED_AFTER_NUL;
		if (H5Tget_strpad(type) == H5T_STR_SPACEPAD)
			e->stored.padding = PADDED_SPACES;
		return 0;
	}
	set_both(e, DTYPE_STRING);
	e->stored.vlen = e->served.vlen = vlen;
	if (vlen)
		return hdf5_type_say(r, e, "variable-length %s string", set);
	return hdf5_type_say(r, e, "%s string of %u bytes", set,
			     (unsigned)e->stored.size);
}

static int read_opaque(struct type_reader *r, hid_t type, struct element *e)
{
	char *tag = H5Tget_tag(type);
	int rc = 0;

	set_both(e, DTYPE_OPAQUE);
	if (tag && *tag)
		rc = hdf5_type_say_text(r, e, tag);
	if (tag)
		H5free_memory(tag);
	return rc;
}

static int read_reference(struct type_reader *r, hid_t type, struct element *e)
{
	if (H5Tequal(type, H5T_STD_REF_OBJ) > 0)
		return hdf5_type_as_text(r, e, "object reference");
	if (H5Tequal(type, H5T_STD_REF_DSETREG) > 0)
		return hdf5_type_as_text(r, e, "region reference");
	e->laid_out = false;
	return hdf5_type_refuse(r, e, "a reference of an unknown kind");
}

/* ---- arrays and sequences ------------------------------------------------ */

static int read_super(struct type_reader *r, hid_t type, struct element *out)
{
	hid_t base = H5Tget_super(type);
	int rc;

	if (base < 0)
		return hdf5_type_refuse(r, out, "a type without a base type");
	rc = hdf5_type_read_element(r, base, out);
	H5Tclose(base);
	return rc;
}

/* Read an array type.  Its axes come before those of its elements. */
static int read_array(struct type_reader *r, hid_t type, struct element *e)
{
	hsize_t dims[RANK_MAX];
	int rank = H5Tget_array_ndims(type);
	struct element of = {.rank = 0};
	uint64_t n = 1, memory = 0;
	int rc = read_super(r, type, &of);

	if (rc < 0)
		return rc;
	if (rank < 1 || rank > RANK_MAX ||
	    H5Tget_array_dims2(type, dims) != rank)
		return hdf5_type_refuse(r, e, "a damaged array type");
	for (int i = 0; i < rank; i++)
		if (mul_overflows(n, dims[i], &n))
			n = 0;
	if (n == 0 || mul_overflows(n, of.in_memory, &memory) ||
	    memory != e->in_memory || mul_overflows(n, of.in_file, &e->in_file))
		return hdf5_type_refuse(r, e, "a damaged array type");
	e->laid_out = of.laid_out;
	if (of.served.kind == DTYPE_OTHER)
		return hdf5_type_refuse(r, e, of.served.text);
	if (of.rank + (unsigned)rank > RANK_MAX)
		return hdf5_type_refuse(r, e, "arrays of more than 32 axes");
	e->rank = of.rank + (unsigned)rank;
	memcpy(e->dims, dims, (size_t)rank * sizeof *dims);
	memcpy(e->dims + rank, of.dims, of.rank * sizeof *of.dims);
	memcpy(&e->stored, &of.stored, sizeof e->stored);
	memcpy(&e->served, &of.served, sizeof e->served);
	return 0;
}

static const struct dtype_field *sequence_of(struct type_reader *r,
					     const struct element *of,
					     const struct dtype *type)
{
	struct dtype_field f;

	memset(&f, 0, sizeof f);
	memcpy(&f.type, type, sizeof f.type);
	f.name = intern_bytes(r->in, "", 1);
	f.rank = of->rank;
	if (of->rank)
		f.dims = intern_bytes(r->in, of->dims,
				      of->rank * sizeof *of->dims);
	if (!f.name || (of->rank && !f.dims))
		return NULL;
	return intern_bytes(r->in, &f, sizeof f);
}

static int read_sequence(struct type_reader *r, hid_t type, struct element *e)
{
	struct element of = {.rank = 0};
	bool inside = r->inside;
	int rc;

	r->inside = false; /* sequences of strings are text everywhere */
	rc = read_super(r, type, &of);
	r->inside = inside;
	if (rc < 0)
		return rc;
	type_set_in_heap(r, e);
	if (of.served.kind == DTYPE_OTHER)
		return hdf5_type_refuse(r, e, of.served.text);
	if (!dtype_is_binary(&of.served))
		return hdf5_type_as_text(r, e,
					 of.served.kind == DTYPE_STRING
						 ? "sequence of strings"
						 : "sequence of text");
	set_both(e, DTYPE_RAGGED);
	e->stored.nfields = e->served.nfields = 1;
	e->stored.fields = sequence_of(r, &of, &of.stored);
	e->served.fields = sequence_of(r, &of, &of.served);
	if (!e->stored.fields || !e->served.fields)
		return -ENOMEM;
	return of.served.text ? hdf5_type_say_text(r, e, of.served.text) : 0;
}

/* ---- all of them --------------------------------------------------------- */

static int read_class(struct type_reader *r, hid_t type, struct element *e)
{
	switch (H5Tget_class(type)) {
	case H5T_INTEGER:
		return hdf5_type_read_integer(r, type, "integer", e);
	case H5T_FLOAT:
		return hdf5_type_read_float(r, type, e);
	case H5T_BITFIELD:
		return hdf5_type_read_integer(r, type, "bitfield", e) < 0
			       ? -ENOMEM
		       : e->served.text ? 0
					: hdf5_type_say_text(r, e, "bitfield");
	case H5T_ENUM:
		return hdf5_type_read_enum(r, type, e);
	case H5T_STRING:
		return read_string(r, type, e);
	case H5T_OPAQUE:
		return read_opaque(r, type, e);
	case H5T_REFERENCE:
		return read_reference(r, type, e);
	case H5T_ARRAY:
		return read_array(r, type, e);
	case H5T_VLEN:
		return read_sequence(r, type, e);
	case H5T_COMPOUND:
		return hdf5_type_read_compound(r, type, e);
	case H5T_TIME:
		return hdf5_type_read_time(r, type, e);
	default:
		return hdf5_type_refuse(r, e, "a type of an unknown class");
	}
}

int hdf5_type_read_element(struct type_reader *r, hid_t type, struct element *e)
{
	int rc;

	memset(e, 0, sizeof *e);
	e->in_memory = e->in_file = H5Tget_size(type);
	e->laid_out = true;
	if (e->in_memory == 0 || e->in_memory > UINT32_MAX / 2)
		return hdf5_type_refuse(r, e, "elements of 2 GiB and more");
	if (r->depth == DEPTH_MAX)
		return hdf5_type_refuse(r, e, "types nested too deeply");
	r->depth++;
	rc = read_class(r, type, e);
	r->depth--;
	return rc;
}

/* Find out how many bytes an address has in the dataset's file. */
static void learn_address(struct type_reader *r, hid_t dset)
{
	hid_t file = H5Iget_file_id(dset), fcpl = H5I_INVALID_HID;
	size_t address = 0, size = 0;

	if (file >= 0)
		fcpl = H5Fget_create_plist(file);
	if (fcpl >= 0 && H5Pget_sizes(fcpl, &address, &size) >= 0 &&
	    address <= 32) {
		r->address = (unsigned)address;
		r->address_known = true;
	}
	if (fcpl >= 0)
		H5Pclose(fcpl);
	if (file >= 0)
		H5Fclose(file);
}

int hdf5_type_read(struct intern *in, hid_t of, bool source_order,
		   struct hdf5_type *out)
{
	struct type_reader r = {
		.in = in, .source_order = source_order, .address = 8};
	struct element e = {.rank = 0};
	hid_t type = of;
	int rc;

	if (H5Iget_type(of) == H5I_DATASET) {
		learn_address(&r, of);
		type = H5Dget_type(of);
	}
	if (type < 0)
		rc = hdf5_type_refuse(&r, &e, "a type that cannot be read");
	else
		rc = hdf5_type_read_element(&r, type, &e);
	if (type >= 0 && type != of)
		H5Tclose(type);
	if (rc < 0)
		return rc;
	memset(out, 0, sizeof *out);
	memcpy(&out->stored, &e.stored, sizeof out->stored);
	memcpy(&out->served, &e.served, sizeof out->served);
	out->rank = e.rank;
	memcpy(out->dims, e.dims, e.rank * sizeof *e.dims);
	return 0;
}

uint32_t hdf5_type_bytes(const struct hdf5_type *type)
{
	uint64_t bytes = type->stored.size;

	for (unsigned i = 0; i < type->rank; i++)
		if (mul_overflows(bytes, type->dims[i], &bytes))
			return 0;
	return bytes <= UINT32_MAX ? (uint32_t)bytes : 0;
}
