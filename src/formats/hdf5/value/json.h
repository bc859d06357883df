/* SPDX-License-Identifier: BSD-2-Clause */
/* One element of any HDF5 type as JSON. */
#ifndef FORMATS_HDF5_VALUE_JSON_H
#define FORMATS_HDF5_VALUE_JSON_H

#include <hdf5.h>

#include "base/error.h"
#include "base/json.h"
#include "formats/hdf5/value/reference.h"

/*
 *   integers, bitfields  a number; beyond int64, which jansson cannot hold, a
 *                        string of its decimal digits
 *   floats               a number with 17 digits; "NaN", "Infinity",
 *                        "-Infinity"; a long double that is no double: a string
 *   enum                 its name; the number where it has none; h5py's bool:
 *                        true, false
 *   string               a string; bytes that are not UTF-8 are read as Latin-1
 *   opaque               a string of hexadecimal digits
 *   compound             an object
 *   array, sequence      an array (of arrays)
 *   object reference     the path that it means, or null
 *   region reference     {"path": "/x", "selection": "(0,0)-(3,4)"}, or null
 *   time                 the integer that it is stored as
 *
 * Numbers are exact: Python's json reads what was stored.
 */
struct hdf5_json;
/*
 * Learn how to write elements of `type`, as H5Dget_type or H5Aget_type give it
 * (or a member of that); they are to be read with this very type, so that the
 * library has nothing to convert.  `paths` is borrowed.  Lock of the library
 * held for all calls.  -ENOMEM, -EIO.
 */
int hdf5_json_new(hid_t type, struct hdf5_paths *paths, struct hdf5_json **out,
		  struct error *err);
/* Convert one element. -ENOTSUP if it has more than HDF5_JSON_MAX values and
 * letters; -ENOMEM. */
#define HDF5_JSON_MAX ((size_t)64 << 20)
int hdf5_json_value(struct hdf5_json *j, const void *data, json_t **out,
		    struct error *err);
void hdf5_json_free(struct hdf5_json *j);

/* Return the length of a string of fixed width without its padding, in bytes. */
size_t hdf5_string_length(const char *s, size_t width, H5T_str_t pad);

#endif
