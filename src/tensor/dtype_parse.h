/* SPDX-License-Identifier: BSD-2-Clause */
/* Element types as people and .npy files spell them. */
#ifndef TENSOR_DTYPE_PARSE_H
#define TENSOR_DTYPE_PARSE_H

#include "base/error.h"
#include "tensor/dtype.h"

/*
 * What numpy.dtype(text) is, for numbers and fixed-length bytes: "float32", "<f4",
 * "f4", "d", "bool", "S8", "V12".  No order, '=' and '|': little-endian, whatever
 * the machine.  Never a kind that has no NumPy array, never of size 0.
 * -EINVAL: a word that says no type; -ENOTSUP: a type of NumPy that HDF5 has
 * nothing for (text, dates, objects), or that has fields.  The sentence begins
 * with the text and says what to do.
 */
int dtype_parse(const char *text, struct dtype *out, struct error *err);
/*
 * The same for the elements of a file that is shown: NumPy's dates and times, "<M8[ns]", are
 * their int64, which out->text says (kept by `in`).  -ENOTSUP says what the elements are.
 */
struct intern;
int dtype_parse_stored(const char *text, struct intern *in, struct dtype *out,
		       struct error *err);

#endif
