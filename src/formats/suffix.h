/* SPDX-License-Identifier: BSD-2-Clause */
/* How files that are values of a binary column end: as told, or as they begin. */
#ifndef FORMATS_SUFFIX_H
#define FORMATS_SUFFIX_H

#include "formats/arrays.h"

/* Option ext=: "jpg", "image:jpg+mask:png", "jpg+mask:png".  -EINVAL and a sentence. */
int suffix_check(const char *option, struct error *err);
/* What the option says of a column itself, without the dot; its bytes in *len.  NULL:
 * nothing. */
const char *suffix_named(const char *option, const char *column, size_t *len);
/* By the first bytes of a value (all of it for text); never NULL: "bin". */
const char *suffix_guess(const void *value, size_t n);
/*
 * A BLOB's files end as the option says, else as the first values that are not empty
 * look like.  `unread`: these are not looked at.
 */
int suffix_set(struct array *a, const char *column, bool unread,
	       struct error *err);

#endif
