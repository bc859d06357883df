/* SPDX-License-Identifier: BSD-2-Clause */
/* The HDF5 types of NumPy's types, exactly as h5py makes them. */
#ifndef FORMATS_HDF5_TYPE_DTYPE_H
#define FORMATS_HDF5_TYPE_DTYPE_H

#include <hdf5.h>
#include <stddef.h>

#include "base/error.h"
#include "tensor/dtype.h"

/*
 * Make the type for elements of `d`, which the caller closes.  bool becomes an
 * enumeration over int8, a complex number a compound of r and i, bytes (S) a string
 * padded with NULs, void (V) opaque: what h5py.h5t.py_create returns (h5py 3.7, h5t.pyx).
 * The library's lock must be held.  -ENOTSUP: `d` is a structure, text, ...; -ENOMEM.
 */
int hdf5_type_of_dtype(const struct dtype *d, hid_t *type, struct error *err);
/* Make the type for the dtype called `text`: "float32", "<f4", "bool", ...
 * (dtype_parse).  *size (may be NULL) is set to the bytes of an element.  Errors of
 * dtype_parse and hdf5_type_of_dtype. */
int hdf5_type_of_numpy(const char *text, hid_t *type, size_t *size,
		       struct error *err);

#endif
