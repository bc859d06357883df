/* SPDX-License-Identifier: BSD-2-Clause */
/* HDF5 element types and the NumPy types they are served as. */
#ifndef FORMATS_HDF5_TYPE_TYPE_H
#define FORMATS_HDF5_TYPE_TYPE_H

#include <hdf5.h>

#include "base/intern.h"
#include "tensor/dtype.h"
#include "tensor/grid.h"

/*
 * Array types add their axes to the dataset's (as h5py does); both dtypes are
 * those of one element behind these axes.
 *
 *   served.kind    stored                       bytes come by
 *   binary         the same kind, file's order  pread, recoded
 *   binary         OTHER (3-byte integers, ...) H5Dread, converted by libhdf5
 *   STRING, TEXT   the same                     values (H5Dread), as text
 *   RAGGED         the same; size is that of    values, as bytes
 *                  the reference in the file
 *   OTHER          OTHER                        not at all; `text` says what
 *
 * A compound with members that NumPy has no type for is TEXT, and both dtypes
 * list all its members, at their offsets in the file.  A member whose stored type
 * is OTHER (served: binary) can only be read by H5Dread.
 *
 * A structure with a member that must be converted has the stored type OTHER as a
 * whole (with fields), and is served without padding.
 */
struct hdf5_type {
	struct dtype stored, served;
	unsigned rank; /* axes of an array type */
	uint64_t dims[RANK_MAX];
};
/*
 * Read the type of a dataset.  `of` is the dataset, or only its type: then the size of
 * addresses in the file is not known, and a compound with members of variable length has
 * all its members read by H5Dread.  `source_order`: serve the file's byte order
 * (dtype-order=source).  All that pointers in `out` point to is interned in `in`: equal
 * types have equal pointers.  The library's lock must be held.  Return 0 or -ENOMEM.
 */
int hdf5_type_read(struct intern *in, hid_t of, bool source_order,
		   struct hdf5_type *out);
/*
 * Return the memory type for H5Dread of elements as they are served, which the caller
 * closes; negative if the types do not fit.  `type` is the dataset's (H5Dget_type), with
 * its array axes if it has any.  `member` (may be NULL) is the path of a field, with '/'
 * between nested names: the result is a compound with only this field, nested and in
 * arrays as need be; its bytes are the field's, and `served` is the field's type.  STRING
 * and TEXT are read as they are stored.
 */
hid_t hdf5_type_memory(hid_t type, const struct dtype *served,
		       const char *member);
/* Return the type of a member (NULL: of the element), which the caller closes, without
 * the axes of array types around the member and in it: these are dims[0..*rank).
 * Negative if there is no such member, or if there are more than RANK_MAX axes. */
hid_t hdf5_type_member(hid_t type, const char *member, unsigned *rank,
		       uint64_t *dims);
/* Return the size in bytes of one element in the file, with the axes of array types; 0
 * if it is 4 GiB or more. */
uint32_t hdf5_type_bytes(const struct hdf5_type *type);
/* Describe a type in words for a sentence, cut off where `buf` (`n` bytes) ends: "<i4"
 * or "|i1 (enum: A = 0, B = 1)". */
void hdf5_type_describe(const struct dtype *d, char *buf, size_t n);
/*
 * May elements of type `is` stand where `wanted` is mapped? formats/hdf5/type/match.c
 * says which may.  If the result is HDF5_CONVERTIBLE, *stored is the type that a recode
 * starts from, of kind OTHER if the library has to convert.
 */
enum hdf5_match { HDF5_SAME, HDF5_CONVERTIBLE, HDF5_DIFFERENT };
enum hdf5_match hdf5_type_match(const struct hdf5_type *is,
				const struct hdf5_type *wanted,
				struct dtype *stored);

#endif
