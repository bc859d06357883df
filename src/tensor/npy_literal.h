/* SPDX-License-Identifier: BSD-2-Clause */
/* The literals of Python that headers of .npy files consist of. */
#ifndef TENSOR_NPY_LITERAL_H
#define TENSOR_NPY_LITERAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/intern.h"
#include "tensor/dtype.h"

/* What is left of a header. */
struct npy_text {
	const char *at, *end;
	bool utf8; /* version 3; others are Latin-1 */
};

/* The next character that is no blank, when it is `c`. */
bool npy_take(struct npy_text *t, char c);
/* The same, which stays. */
bool npy_next(struct npy_text *t, char c);
/* Is nothing left but blanks?  Comments count as such. */
bool npy_ends(struct npy_text *t);
bool npy_take_word(struct npy_text *t, const char *word);
/* A whole number as Python writes it: 12, 0xc, 1_000; with the L of Python 2 or without. */
bool npy_take_number(struct npy_text *t, uint64_t *out);
/*
 * A string, escapes undone, as UTF-8; \udc80 to \udcff are the bytes that
 * os.fsencode makes of them.  False: there is none, it has a NUL or what is no
 * character, or it does not fit.
 */
bool npy_take_string(struct npy_text *t, char *out, size_t room);
/* A tuple of at most RANK_MAX sizes.  -ENOTSUP: of more. */
int npy_take_shape(struct npy_text *t, unsigned *rank, uint64_t *shape,
		   struct error *err);
/*
 * The list of a structure's fields, as dtype.descr of NumPy 1.24 has it: padding is
 * a nameless void, a name may be a tuple of title and name.  `in` keeps the fields.
 * -EBADMSG: no such list; -ENOTSUP: fields of a type that dtype_parse_stored refuses,
 * without bytes, or too many or too deep.
 */
int npy_take_fields(struct npy_text *t, struct intern *in, struct dtype *out,
		    struct error *err);

#endif
