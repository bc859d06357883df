/* SPDX-License-Identifier: BSD-2-Clause */
/* HDF5 integers, bitfields, floats and enums: as which NumPy numbers they are served. */
#include "formats/hdf5/type/type_private.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define ENUM_NAMES_MAX 200 /* names that are listed */

bool hdf5_type_is_sound(hid_t type)
{
	size_t bits = H5Tget_size(type) * 8, precision = H5Tget_precision(type);
	size_t spos, epos, esize, mpos, msize;
	int offset = H5Tget_offset(type);

	/* In a file these numbers are below 2^32, so sums do not overflow. */
	if (precision == 0 || offset < 0 || (size_t)offset + precision > bits)
		return false;
	if (H5Tget_class(type) != H5T_FLOAT)
		return true;
	return H5Tget_fields(type, &spos, &epos, &esize, &mpos, &msize) >= 0 &&
	       spos < bits && esize > 0 && epos + esize <= bits && msize > 0 &&
	       mpos + msize <= bits;
}

/* ---- integers ------------------------------------------------------------- */

static bool is_whole(hid_t type, size_t size)
{
	return H5Tget_precision(type) == size * 8 && H5Tget_offset(type) == 0;
}

static bool number_byte_order(hid_t type, bool *big)
{
	H5T_order_t order = H5Tget_order(type);

	*big = order == H5T_ORDER_BE && H5Tget_size(type) > 1;
	return order == H5T_ORDER_LE || order == H5T_ORDER_BE ||
	       H5Tget_size(type) == 1;
}

/* The number is served as it is stored, except for its byte order. */
static void number_set_stored(const struct type_reader *r, struct element *e,
			      enum dtype_kind kind, size_t size, bool big)
{
	e->stored.kind = kind;
	e->stored.size = (uint32_t)size;
	e->stored.big_endian = big;
	memcpy(&e->served, &e->stored, sizeof e->served);
	e->served.big_endian = big && r->source_order;
}

/* The library converts the number to one of `size` bytes. */
static void number_set_converted(struct element *e, enum dtype_kind kind,
				 size_t size)
{
	e->stored.kind = DTYPE_OTHER;
	e->stored.size = (uint32_t)e->in_file;
	e->served.kind = kind;
	e->served.size = (uint32_t)size;
}

int hdf5_type_read_integer(struct type_reader *r, hid_t type, const char *name,
			   struct element *e)
{
	size_t size = H5Tget_size(type), bits = H5Tget_precision(type), to = 1;
	enum dtype_kind kind = DTYPE_UINT;
	char why[80];
	bool big;

	if (H5Tget_class(type) == H5T_INTEGER &&
	    H5Tget_sign(type) != H5T_SGN_NONE)
		kind = DTYPE_INT;
	if ((size == 1 || size == 2 || size == 4 || size == 8) &&
	    is_whole(type, size) && number_byte_order(type, &big)) {
		number_set_stored(r, e, kind, size, big);
		return 0;
	}
	if (!hdf5_type_is_sound(type)) {
		snprintf(why, sizeof why,
			 "damaged %s of %zu bytes: bits lie outside of them",
			 name, size);
		return hdf5_type_refuse(r, e, why);
	}
	if (bits > 64) {
		snprintf(why, sizeof why, "%zu-bit %s, which NumPy lacks", bits,
			 name);
		return hdf5_type_refuse(r, e, why);
	}
	/* Not narrower than it is stored, as in h5py. */
	while (to < 8 && (to < size || to * 8 < bits))
		to *= 2;
	number_set_converted(e, kind, to);
	return hdf5_type_say(r, e, "%zu-bit %s, converted", bits, name);
}

/* ---- time ----------------------------------------------------------------- */

/*
 * A number of HDF5's class for time has a size; the library knows nothing else of it, and
 * does not convert it.  H5T_UNIX_D32 and _D64 are named after Unix's time_t.  PyTables
 * (typeconv.c) writes its Time32 as such a number; its Time64 has seconds in the upper
 * and microseconds in the lower half.  So the stored integer is shown.
 */
int hdf5_type_read_time(struct type_reader *r, hid_t type, struct element *e)
{
	size_t size = H5Tget_size(type);
	bool big;

	if ((size != 4 && size != 8) || !is_whole(type, size) ||
	    !number_byte_order(type, &big))
		return hdf5_type_refuse(r, e,
					"HDF5's time with a size other than 4 "
					"or 8 bytes");
	number_set_stored(r, e, DTYPE_INT, size, big);
	return hdf5_type_say_text(
		r, e,
		size == 4 ? "HDF5's time: seconds since 1970"
			  : "HDF5's time: seconds since 1970, or as PyTables "
			    "writes it: seconds << 32 | microseconds");
}

/* ---- floats -------------------------------------------------------------- */

struct float_format {
	const char *name;
	size_t size, precision, spos, epos, esize, msize, bias;
	H5T_norm_t norm;
};
/*
 * The types that NumPy has on this machine, smallest first.  Its longdouble is
 * the C compiler's: x87's extended format on x86-64, IEEE 754's binary128 on
 * aarch64.
 */
static const struct float_format float_formats[] = {
	{"float16", 2, 16, 15, 10, 5, 10, 15, H5T_NORM_IMPLIED},
	{"float32", 4, 32, 31, 23, 8, 23, 127, H5T_NORM_IMPLIED},
	{"float64", 8, 64, 63, 52, 11, 52, 1023, H5T_NORM_IMPLIED},
#if LDBL_MANT_DIG == 64 && LDBL_MAX_EXP == 16384
	{"longdouble", 16, 80, 79, 64, 15, 64, 16383, H5T_NORM_NONE},
#elif LDBL_MANT_DIG == 113 && LDBL_MAX_EXP == 16384
	{"longdouble", 16, 128, 127, 112, 15, 112, 16383, H5T_NORM_IMPLIED},
#endif
};
/* Floats that NumPy lacks. */
static const struct float_format bit_formats[] = {
	{"bfloat16", 2, 16, 15, 7, 8, 7, 127, H5T_NORM_IMPLIED},
	{"float8 E4M3", 1, 8, 7, 3, 4, 3, 7, H5T_NORM_IMPLIED},
	{"float8 E5M2", 1, 8, 7, 2, 5, 2, 15, H5T_NORM_IMPLIED}};

static const struct float_format *
float_find(hid_t type, const struct float_format *f, size_t n)
{
	size_t size = H5Tget_size(type), spos, epos, esize, mpos, msize;
	bool big;

	if (H5Tget_fields(type, &spos, &epos, &esize, &mpos, &msize) < 0 ||
	    mpos != 0 || H5Tget_offset(type) != 0 ||
	    !number_byte_order(type, &big))
		return NULL;
	for (; n > 0; n--, f++)
		if (f->size == size && f->precision == H5Tget_precision(type) &&
		    f->spos == spos && f->epos == epos && f->esize == esize &&
		    f->msize == msize && f->bias == H5Tget_ebias(type) &&
		    f->norm == H5Tget_norm(type))
			return f;
	return NULL;
}

/* The library requires that the fields are set before the size shrinks. */
hid_t hdf5_type_of_bits(const char *text, bool big)
{
	const struct float_format *f = bit_formats;
	const struct float_format *end =
		f + sizeof bit_formats / sizeof *bit_formats;
	hid_t t;

	while (f < end && (!text || strncmp(text, f->name, strlen(f->name))))
		f++;
	if (f == end)
		return H5I_INVALID_HID;
	t = H5Tcopy(H5T_IEEE_F32LE);
	if (t >= 0 &&
	    (H5Tset_fields(t, f->spos, f->epos, f->esize, 0, f->msize) < 0 ||
	     H5Tset_precision(t, f->precision) < 0 ||
	     H5Tset_size(t, f->size) < 0 || H5Tset_ebias(t, f->bias) < 0 ||
	     H5Tset_order(t, big ? H5T_ORDER_BE : H5T_ORDER_LE) < 0)) {
		H5Tclose(t);
		return H5I_INVALID_HID;
	}
	return t;
}

/* Return the name of a float that NumPy lacks and that is shown as bits; NULL for all
 * others. */
static const char *bits_name(hid_t type)
{
	const struct float_format *f =
		H5Tget_class(type) == H5T_FLOAT
			? float_find(type, bit_formats,
				     sizeof bit_formats / sizeof *bit_formats)
			: NULL;

	return f ? f->name : NULL;
}

/* The bits of a mantissa behind the leading one, which some formats store. */
static size_t fraction_bits(size_t msize, H5T_norm_t norm)
{
	return norm == H5T_NORM_IMPLIED ? msize : msize - 1;
}

/*
 * Does `to` hold every value of a sound type, bit for bit?  The exponents of
 * normal numbers go from 1 - bias to 2^esize - 2 - bias, and those of `to` must
 * reach as far both ways; then numbers below the normal ones fit, too.
 */
static bool float_holds(const struct float_format *to, hid_t type)
{
	size_t spos, epos, esize, mpos, msize, bias = H5Tget_ebias(type);
	int64_t top, bottom;

	if (H5Tget_size(type) > to->size ||
	    H5Tget_fields(type, &spos, &epos, &esize, &mpos, &msize) < 0 ||
	    fraction_bits(msize, H5Tget_norm(type)) >
		    fraction_bits(to->msize, to->norm) ||
	    esize > to->esize || bias > INT32_MAX)
		return false;
	top = ((int64_t)1 << esize) - 2 - (int64_t)bias;
	bottom = 1 - (int64_t)bias;
	return top <= ((int64_t)1 << to->esize) - 2 - (int64_t)to->bias &&
	       bottom >= 1 - (int64_t)to->bias;
}

size_t hdf5_type_float_room(hid_t type)
{
	size_t n = sizeof float_formats / sizeof *float_formats;
	H5T_norm_t norm = H5Tget_norm(type);

	/* The library aborts the process if it converts any other normalisation. */
	if (!hdf5_type_is_sound(type) ||
	    (norm != H5T_NORM_IMPLIED && norm != H5T_NORM_NONE))
		return 0;
	for (size_t i = 0; i < n; i++)
		if (float_holds(&float_formats[i], type))
			return float_formats[i].size;
	return 0;
}

/* Refuse a float that no NumPy type of this machine holds, or that the library cannot
 * convert. */
static int refuse_float(struct type_reader *r, hid_t type, struct element *e)
{
	size_t spos, epos, esize, mpos, msize;
	char why[160];

	if (!hdf5_type_is_sound(type) ||
	    H5Tget_fields(type, &spos, &epos, &esize, &mpos, &msize) < 0)
		return hdf5_type_refuse(r, e,
					"a damaged floating-point type: bits "
					"lie outside of its bytes");
	if (H5Tget_norm(type) == H5T_NORM_MSBSET)
		return hdf5_type_refuse(r, e,
					"a floating-point type whose highest "
					"bit of the mantissa is always set, "
					"which libhdf5 cannot convert");
	snprintf(why, sizeof why,
		 "%zu-bit float (exponent of %zu bits with bias %zu, mantissa "
		 "of %zu bits): no NumPy type of this machine holds all its "
		 "values",
		 H5Tget_precision(type), esize, H5Tget_ebias(type), msize);
	return hdf5_type_refuse(r, e, why);
}

int hdf5_type_read_float(struct type_reader *r, hid_t type, struct element *e)
{
	size_t size = H5Tget_size(type), bits = H5Tget_precision(type);
	const char *name = bits_name(type);
	bool big = false;

	if (name) {
		number_byte_order(type, &big);
		number_set_stored(r, e, DTYPE_UINT, size, big);
		return hdf5_type_say(r, e, "%s, shown as its bits", name);
	}
	if (float_find(type, float_formats,
		       sizeof float_formats / sizeof *float_formats)) {
		number_byte_order(type, &big);
		number_set_stored(r, e, DTYPE_FLOAT, size, big);
		return 0;
	}
	size = hdf5_type_float_room(type);
	if (!size)
		return refuse_float(r, type, e);
	number_set_converted(e, DTYPE_FLOAT, size);
	return hdf5_type_say(r, e, "%zu-bit float, converted", bits);
}

/* ---- enumerations -------------------------------------------------------- */

static bool enum_member_is(hid_t type, const char *name, signed char value)
{
	int i = H5Tget_member_index(type, name);
	signed char v = -1;

	return i >= 0 && H5Tget_member_value(type, (unsigned)i, &v) >= 0 &&
	       v == value;
}

bool hdf5_type_is_bool(hid_t type)
{
	return H5Tget_size(type) == 1 && H5Tget_nmembers(type) == 2 &&
	       enum_member_is(type, "FALSE", 0) &&
	       enum_member_is(type, "TRUE", 1);
}

/* A name of an enum, and its value. */
struct name {
	unsigned member;
	bool known, sign;
	union {
		long long i;
		unsigned long long u;
		unsigned char room[64];
	} v;
};

static void enum_read_name(hid_t type, hid_t base, unsigned i, struct name *n)
{
	memset(n, 0, sizeof *n);
	n->member = i;
	n->sign = H5Tget_sign(base) != H5T_SGN_NONE;
	n->known =
		H5Tget_size(base) <= sizeof n->v.room &&
		H5Tget_member_value(type, i, &n->v) >= 0 &&
		H5Tconvert(base, n->sign ? H5T_NATIVE_LLONG : H5T_NATIVE_ULLONG,
			   1, &n->v, NULL, H5P_DEFAULT) >= 0;
}

/* Order names by value, because the library may reorder them. */
static int enum_compare_values(const void *a, const void *b)
{
	const struct name *x = a, *y = b;
	bool less = x->sign ? x->v.i < y->v.i : x->v.u < y->v.u;

	return less ? -1 : x->v.u != y->v.u;
}

static void enum_print_name(FILE *f, hid_t type, const struct name *n)
{
	char *name = H5Tget_member_name(type, n->member);

	fprintf(f, "%s = ", name ? name : "?");
	if (!n->known)
		fputc('?', f);
	else if (n->sign)
		fprintf(f, "%lld", n->v.i);
	else
		fprintf(f, "%llu", n->v.u);
	if (name)
		H5free_memory(name);
}

/* Print all names, sorted by value.  If they are too many, *shown is the length at
 * which the text should be cut. */
static void enum_print_names(FILE *f, hid_t type, hid_t base, size_t n,
			     struct name *names, const size_t *len,
			     size_t *shown)
{
	for (size_t i = 0; i < n; i++)
		enum_read_name(type, base, (unsigned)i, &names[i]);
	qsort(names, n, sizeof *names, enum_compare_values);
	fputs("enum: ", f);
	for (size_t i = 0; i < n; i++) {
		if (i == ENUM_NAMES_MAX && fflush(f) == 0)
			*shown = *len;
		fputs(i ? ", " : "", f);
		enum_print_name(f, type, &names[i]);
	}
}

/* Return the FNV-1a hash of a text.  With that of the names that are not shown, enums
 * are equal if their texts are. */
static uint64_t hash_text(const char *s, size_t n)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	while (n--)
		h = (h ^ (unsigned char)*s++) * UINT64_C(0x100000001b3);
	return h;
}

static int enum_say_names(struct type_reader *r, hid_t type, hid_t base,
			  struct element *e)
{
	int n = H5Tget_nmembers(type);
	cleanup_free struct name *names =
		calloc(n > 0 ? (size_t)n : 1, sizeof *names);
	cleanup_free char *text = NULL, *more = NULL;
	size_t len = 0, shown = 0;
	FILE *f = names ? open_memstream(&text, &len) : NULL;

	if (!f)
		return -ENOMEM;
	enum_print_names(f, type, base, n > 0 ? (size_t)n : 0, names, &len,
			 &shown);
	if (e->stored.kind == DTYPE_OTHER)
		fputs("; converted", f);
	if (fclose(f))
		return -ENOMEM;
	if (!shown)
		return hdf5_type_say_text(r, e, text);
	if (asprintf(&more, "%.*s, and %d more (%016" PRIx64 ")", (int)shown,
		     text, n - ENUM_NAMES_MAX,
		     hash_text(text + shown, len - shown)) < 0) {
		more = NULL;
		return -ENOMEM;
	}
	return hdf5_type_say_text(r, e, more);
}

int hdf5_type_read_enum(struct type_reader *r, hid_t type, struct element *e)
{
	hid_t base;
	int rc;

	if (hdf5_type_is_bool(type)) {
		number_set_stored(r, e, DTYPE_BOOL, 1, false);
		return 0;
	}
	base = H5Tget_super(type);
	if (base < 0)
		return hdf5_type_refuse(r, e, "an enum without a base type");
	rc = hdf5_type_read_integer(r, base, "enum", e);
	if (!rc && e->served.kind != DTYPE_OTHER)
		rc = enum_say_names(r, type, base, e);
	H5Tclose(base);
	return rc;
}
