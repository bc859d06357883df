/* SPDX-License-Identifier: BSD-2-Clause */
/* A .npy that is a member of an archive, as a tensor. */
#ifndef FORMATS_NUMPY_NPY_MEMBER_H
#define FORMATS_NUMPY_NPY_MEMBER_H

#include "formats/arrays.h"
#include "stream/backing.h"
#include "tensor/npy_read.h"

struct npy_member {
	struct backing bytes;
	struct npy_file file;
};
/* Read the header of a .npy in bytes `b`.  Return 0, -EBADMSG or -ENOTSUP if it is
 * not an array or cannot be shown, -ENOMEM, or an error of the source. */
int npy_member_read(struct arrays *s, const struct backing *b,
		    struct npy_member *out, struct error *err);
/* Make the array, or that of a field of its elements; as npy_array. */
int npy_member_array(struct arrays *s, const struct npy_member *m,
		     const struct dtype_field *field, const char *name,
		     struct array **out, struct error *err);

#endif
