/* SPDX-License-Identifier: BSD-2-Clause */
/* NumPy's types as HDF5 has them, exactly as h5py makes them. */
#ifndef FORMATS_HDF5_TYPE_DTYPE_H
#define FORMATS_HDF5_TYPE_DTYPE_H

#include <hdf5.h>
#include <stddef.h>

#include "base/error.h"
#include "tensor/dtype.h"

/*
 * A new type for elements of `d`, which the caller closes.  bool is an enumeration over
 * int8, a complex number a compound of r and i, bytes (S) a string padded with NULs,
 * void (V) opaque: what h5py.h5t.py_create gives (h5py 3.7, h5t.pyx).  The library's
 * lock is held.  -ENOTSUP: a structure, text, ...; -ENOMEM.
 */
int hdf5_type_of_dtype(const struct dtype *d, hid_t *type, struct error *err);
/* The same for "float32", "<f4", "bool", ... (dtype_parse); *size: bytes of an element,
 * may be NULL. */
int hdf5_type_of_numpy(const char *text, hid_t *type, size_t *size,
		       struct error *err);

#endif
