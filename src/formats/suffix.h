/* SPDX-License-Identifier: BSD-2-Clause */
/* File name suffixes of the values of a binary column: from option ext=, or from their
 * first bytes. */
#ifndef FORMATS_SUFFIX_H
#define FORMATS_SUFFIX_H

#include "formats/arrays.h"

/* Check the value of option ext=: "jpg", "image:jpg+mask:png", "jpg+mask:png".  Return 0,
 * or -EINVAL with a sentence. */
int suffix_check(const char *option, struct error *err);
/* Return the suffix that the option gives to this column by name, without the dot, and
 * its length in *len; NULL if it gives none. */
const char *suffix_named(const char *option, const char *column, size_t *len);
/* Guess a suffix from the first bytes of a value (from all of it for text).  Never NULL:
 * "bin" if they are unknown. */
const char *suffix_guess(const void *value, size_t n);
/*
 * Set the suffix of a BLOB's files: as the option says, else by the first values that are
 * not empty.  If `unread` is set, no values are read and the suffix is "bin".
 */
int suffix_set(struct array *a, const char *column, bool unread,
	       struct error *err);

#endif
