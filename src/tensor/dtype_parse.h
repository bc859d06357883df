/* SPDX-License-Identifier: BSD-2-Clause */
/* Element types as people and .npy files spell them. */
#ifndef TENSOR_DTYPE_PARSE_H
#define TENSOR_DTYPE_PARSE_H

#include "base/error.h"
#include "tensor/dtype.h"

/*
 * Parse what numpy.dtype(text) accepts, for numbers and fixed-length bytes: "float32",
 * "<f4", "f4", "d", "bool", "S8", "V12".  Without an order, with '=' or with '|', the
 * type is little-endian on every machine.  The result is always of a kind that NumPy
 * has arrays of, and never of size 0.
 *
 * Return 0; -EINVAL for a word that names no type; -ENOTSUP for a type of NumPy that
 * HDF5 cannot hold (text, dates, objects), or one that has fields.  The sentence begins
 * with the text and says what to do.
 */
int dtype_parse(const char *text, struct dtype *out, struct error *err);
/*
 * Parse the type of the elements of a file that is shown.  NumPy's dates and times,
 * "<M8[ns]", are read as their int64, which out->text says; `in` owns that text.
 * Errors are as those of dtype_parse; -ENOTSUP says what the elements are.
 */
struct intern;
int dtype_parse_stored(const char *text, struct intern *in, struct dtype *out,
		       struct error *err);

#endif
