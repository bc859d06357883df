/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files that read HDF5 types share. */
#ifndef FORMATS_HDF5_TYPE_TYPE_PRIVATE_H
#define FORMATS_HDF5_TYPE_TYPE_PRIVATE_H

#include "formats/hdf5/type/type.h"

/* What a type says about one element. */
struct element {
	struct dtype stored, served; /* without the axes of array types */
	unsigned rank;               /* axes of array types */
	uint64_t dims[RANK_MAX];
	uint64_t in_memory; /* bytes with all axes, as H5Dget_type counts */
	uint64_t in_file;   /* bytes with all axes in the file */
	bool laid_out;      /* in_file is certain */
};
struct type_reader {
	struct intern *in;
	bool source_order;
	unsigned depth;
	bool inside; /* inside a compound, where strings are bytes, as in h5py */
	/* Bytes of an address in the file; if that is not known, the likely 8. */
	unsigned address;
	bool address_known;
};

/* All these functions return 0 or -ENOMEM. */
int hdf5_type_read_element(struct type_reader *r, hid_t type,
			   struct element *out);
int hdf5_type_read_compound(struct type_reader *r, hid_t type,
			    struct element *out);
/* `name` is the word for sentences, such as "integer". */
int hdf5_type_read_integer(struct type_reader *r, hid_t type, const char *name,
			   struct element *e);
int hdf5_type_read_float(struct type_reader *r, hid_t type, struct element *e);
int hdf5_type_read_time(struct type_reader *r, hid_t type, struct element *e);
int hdf5_type_read_enum(struct type_reader *r, hid_t type, struct element *e);
/* Set the text of both dtypes to words for people. */
int hdf5_type_say_text(struct type_reader *r, struct element *e,
		       const char *text);
int hdf5_type_say(struct type_reader *r, struct element *e, const char *fmt,
		  ...) __attribute__((format(printf, 3, 4)));
/* Set both dtypes to a type that is not shown; `why` becomes the text. */
int hdf5_type_refuse(struct type_reader *r, struct element *e, const char *why);
/* Set both dtypes to a type that is shown as text; `what` it is becomes the text. */
int hdf5_type_as_text(struct type_reader *r, struct element *e,
		      const char *what);

/* Return a new HDF5 type for floats that are shown as bits, by the name with which the
 * dtype's `text` begins; negative if it names none. */
hid_t hdf5_type_of_bits(const char *text, bool big);
/* Do all bits of an integer, bitfield or float lie within its bytes? libhdf5 does not
 * check that, and converts neighbouring bytes if they do not. */
bool hdf5_type_is_sound(hid_t number_type);
/*
 * Return the size in bytes of the smallest NumPy float of this machine that holds every
 * value of a float type exactly; 0 if there is none, if the type is not sound, or if
 * libhdf5 cannot convert it.
 */
size_t hdf5_type_float_room(hid_t type);
/* Is it what h5py writes for bool: an enum FALSE = 0, TRUE = 1 of one byte? */
bool hdf5_type_is_bool(hid_t enum_type);

#endif
