/* SPDX-License-Identifier: BSD-2-Clause */
/* HDF5 element types and the NumPy types they are served as. */
#ifndef FORMATS_HDF5_TYPE_TYPE_H
#define FORMATS_HDF5_TYPE_TYPE_H

#include <hdf5.h>

#include "base/intern.h"
#include "tensor/dtype.h"
#include "tensor/grid.h"

/*
 * Array types add their axes to the dataset's (as h5py does), so both dtypes
 * are of one element behind these.
 *
 *   served.kind    stored                       bytes come by
 *   binary         the same kind, file's order  pread, recoded
 *   binary         OTHER (3-byte integers, ...) H5Dread, converted by libhdf5
 *   STRING, TEXT   the same                     values (H5Dread), as text
 *   RAGGED         the same; size is that of    values, as bytes
 *                  the reference in the file
 *   OTHER          OTHER                        not at all; `text` says what
 *
 * A compound with members that are no NumPy array is TEXT, and both dtypes list
 * all its members, at their offsets in the file.  A member whose stored type is
 * OTHER (served: binary) comes by H5Dread only.
 *
 * A structure with a member that must be converted is OTHER as a whole (with
 * fields), and served without padding.
 */
struct hdf5_type {
	struct dtype stored, served;
	unsigned rank; /* axes of an array type */
	uint64_t dims[RANK_MAX];
};
/*
 * Read the type of a dataset.  `of` is the dataset, or only its type: then the
 * size of addresses in the file is not known, and members of a compound beside
 * ones of variable length come by H5Dread.  `source_order`: serve the file's
 * byte order (dtype-order=source).  Everything that pointers in `out` point to
 * is interned in `in`: equal types have equal pointers.  Lock of the library
 * held.  -ENOMEM.
 */
int hdf5_type_read(struct intern *in, hid_t of, bool source_order,
		   struct hdf5_type *out);
/*
 * The type to give H5Dread for elements as served; closed by the caller.
 * `type` is the dataset's (H5Dget_type), with its array axes if it has any.
 * `member` as in hdf5.h: a compound with only this member, nested, and in arrays,
 * as need be (its bytes are the member's, `served` is the member's type).  STRING
 * and TEXT are read as they are stored.  Negative when the types do not fit.
 */
hid_t hdf5_type_memory(hid_t type, const struct dtype *served,
		       const char *member);
/* The type of a member (NULL: of all) behind the axes of array types, outside
 * the member and in it, which are *rank `dims`.  Negative: no such member, or
 * more than RANK_MAX axes. */
hid_t hdf5_type_member(hid_t type, const char *member, unsigned *rank,
		       uint64_t *dims);
/* Bytes of one element in the file, axes of array types included; 0: 4 GiB and more. */
uint32_t hdf5_type_bytes(const struct hdf5_type *type);
/* For sentences: "<i4", "|i1 (enum: A = 0, B = 1)"; cut off where it is long. */
void hdf5_type_describe(const struct dtype *d, char *buf, size_t n);
/*
 * May elements of type `is` stand where `wanted` is mapped?  formats/hdf5/type/match.c says
 * which do.  CONVERTIBLE: `*stored` is what a recode starts from; of kind OTHER
 * when the library has to convert.
 */
enum hdf5_match { HDF5_SAME, HDF5_CONVERTIBLE, HDF5_DIFFERENT };
enum hdf5_match hdf5_type_match(const struct hdf5_type *is,
				const struct hdf5_type *wanted,
				struct dtype *stored);

#endif
