/* SPDX-License-Identifier: BSD-2-Clause */
/* Read the Python literals that headers of .npy files consist of. */
#ifndef TENSOR_NPY_LITERAL_H
#define TENSOR_NPY_LITERAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/intern.h"
#include "tensor/dtype.h"

/* The part of a header that was not read yet. */
struct npy_text {
	const char *at, *end;
	bool utf8; /* true for version 3 of .npy; the others are Latin-1 */
};

/* Skip blanks; if the next character is `c`, skip it, too, and return true. */
bool npy_take(struct npy_text *t, char c);
/* Skip blanks; return true if the next character is `c`. */
bool npy_next(struct npy_text *t, char c);
/* Is nothing left but blanks and comments? */
bool npy_ends(struct npy_text *t);
/* Skip blanks; if `word` follows, skip it, too, and return true. */
bool npy_take_word(struct npy_text *t, const char *word);
/* Read a whole number as Python writes it: 12, 0xc, 1_000; with or without the L of
 * Python 2. */
bool npy_take_number(struct npy_text *t, uint64_t *out);
/*
 * Read a string and undo its escapes; the result is UTF-8, where \udc80 to \udcff are
 * the bytes that os.fsencode makes of them.  Return false if there is no string, if it
 * contains a NUL or an invalid character, or if it does not fit.
 */
bool npy_take_string(struct npy_text *t, char *out, size_t room);
/* Read a tuple of sizes.  Return 0; -EBADMSG if it is not one; -ENOTSUP for more than
 * RANK_MAX sizes, or a negative one. */
int npy_take_shape(struct npy_text *t, unsigned *rank, uint64_t *shape,
		   struct error *err);
/*
 * Read the list of a structure's fields, as dtype.descr of NumPy 1.24 spells it:
 * padding is a nameless void, a name may be a tuple of title and name.  `in` owns the
 * fields.  Return 0; -ENOMEM; -EBADMSG if it is not such a list; -ENOTSUP for fields of
 * a type that dtype_parse_stored refuses, fields without bytes, and structures that are
 * too large or too deeply nested.
 */
int npy_take_fields(struct npy_text *t, struct intern *in, struct dtype *out,
		    struct error *err);

#endif
