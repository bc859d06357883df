/* SPDX-License-Identifier: BSD-2-Clause */
/* May elements of one type stand where another is mapped? */

/*
 * A virtual dataset and its source may differ in type.  Then a program that reads by
 * libhdf5 gets what H5Tconvert makes of the source for the type in memory, and one that
 * reads by h5py gets what h5py's own converter makes of integers for enums.  This code
 * does the same for numbers.  Their meaning counts, and not only their form: bits that
 * are a float (bfloat16) are converted as that number, and enums by name.  Names are not
 * kept here, so two enums have to be equal; two different enums, and two different
 * structures, are an error.
 */
#include "formats/hdf5/type/type.h"

#include <stdio.h>
#include <string.h>

/* The meaning of a served number. */
enum meaning {
	NUMBER,
	FLOAT_BITS, /* a float that NumPy lacks, served as unsigned */
	BITFIELD,
	ENUM,
	BOOL, /* also an enum */
	NO_NUMBER
};

static enum meaning meaning_of(const struct dtype *d)
{
	const char *t = d->text;

	if (d->kind == DTYPE_BOOL)
		return BOOL;
	if (d->kind != DTYPE_INT && d->kind != DTYPE_UINT &&
	    d->kind != DTYPE_FLOAT)
		return NO_NUMBER;
	if (!t)
		return NUMBER;
	return !strncmp(t, "enum: ", 6)   ? ENUM
	       : strstr(t, "as its bits") ? FLOAT_BITS
	       : strstr(t, "bitfield")    ? BITFIELD
					  : NUMBER;
}

static bool match_same_text(const struct dtype *a, const struct dtype *b)
{
	return a->text == b->text ||
	       (a->text && b->text && !strcmp(a->text, b->text));
}

/* A string of fixed length fits if it is not longer than the wanted one, and any
 * string fits one of variable length. */
static bool string_fits(const struct dtype *is, const struct dtype *wanted)
{
	return wanted->vlen || (!is->vlen && is->size <= wanted->size);
}

static bool match_is_same(const struct hdf5_type *is,
			  const struct hdf5_type *wanted)
{
	if (is->rank != wanted->rank ||
	    memcmp(is->dims, wanted->dims, is->rank * sizeof *is->dims))
		return false;
	if (is->served.kind == wanted->served.kind) {
		if (is->served.kind == DTYPE_STRING)
			return string_fits(&is->served, &wanted->served);
		/* Text is made of any value of the type.  Only a compound with fields
		 * must have them at equal offsets (below). */
		if (is->served.kind == DTYPE_TEXT && !wanted->served.nfields)
			return match_same_text(&is->served, &wanted->served);
	}
	return is->stored.kind != DTYPE_OTHER &&
	       dtype_equal(&is->stored, &wanted->stored);
}

/* May a bitfield stand for an unsigned number, or the other way round?  Only if no bit
 * has to move. */
static bool bits_are_number(const struct dtype *a, const struct dtype *b)
{
	return a->kind == DTYPE_UINT && b->kind == DTYPE_UINT &&
	       a->size == b->size && !a->big_endian && !b->big_endian;
}

/* Do both enums have equal names for equal integers, of a size that the library has to
 * convert (3 bytes)? */
static bool same_odd_enum(const struct hdf5_type *a, const struct hdf5_type *b)
{
	return a->stored.kind == DTYPE_OTHER && b->stored.kind == DTYPE_OTHER &&
	       a->stored.size == b->stored.size &&
	       dtype_equal(&a->served, &b->served);
}

static bool number_converts(const struct hdf5_type *is,
			    const struct hdf5_type *wanted)
{
	enum meaning from = meaning_of(&is->served);

	if (from == NO_NUMBER)
		return false;
	switch (meaning_of(&wanted->served)) {
	case NUMBER:
		return from != BITFIELD ||
		       bits_are_number(&is->stored, &wanted->stored);
	case FLOAT_BITS:
		return from != BITFIELD;
	case BITFIELD:
		return from == BITFIELD ||
		       (from == NUMBER &&
			bits_are_number(&is->stored, &wanted->stored));
	case ENUM:
		return (from == NUMBER && is->served.kind != DTYPE_FLOAT) ||
		       (from == ENUM && same_odd_enum(is, wanted));
	default:
		return false;
	}
}

/* Is it a conversion that a recode cannot do? */
static bool needs_library(const struct dtype *is, const struct dtype *wanted)
{
	enum meaning a = meaning_of(is), b = meaning_of(wanted);

	return a == FLOAT_BITS || b == FLOAT_BITS ||
	       (a == BITFIELD && b == BITFIELD);
}

void hdf5_type_describe(const struct dtype *d, char *buf, size_t n)
{
	size_t used = dtype_descr(d, buf, n);

	if (d->text && d->kind != DTYPE_OTHER && used < n)
		snprintf(buf + used, n - used, " (%s)", d->text);
}

enum hdf5_match hdf5_type_match(const struct hdf5_type *is,
				const struct hdf5_type *wanted,
				struct dtype *stored)
{
	if (match_is_same(is, wanted))
		return HDF5_SAME;
	if (is->rank || wanted->rank ||
	    (!number_converts(is, wanted) &&
	     (is->served.kind != DTYPE_COMPLEX ||
	      wanted->served.kind != DTYPE_COMPLEX)))
		return HDF5_DIFFERENT;
	/* Leave out what points into the memory of this process. */
	memset(stored, 0, sizeof *stored);
	stored->kind = needs_library(&is->served, &wanted->served)
			       ? DTYPE_OTHER
			       : is->stored.kind;
	stored->size = is->stored.size;
	stored->big_endian = is->stored.big_endian;
	return HDF5_CONVERTIBLE;
}
