/* SPDX-License-Identifier: BSD-2-Clause */
/* Option order=: what is to be followed, of a tree that is there. */
#ifndef APP_ORDER_FILE_H
#define APP_ORDER_FILE_H

#include "readahead/follow.h"
#include "tree/tree.h"

/* The text of the option; borrowed.  A file that is named is read now.  follow_order_free
 * when it is 0; -EINVAL, -ENOENT, -ENOMEM, ... with a sentence. */
int order_open(struct follow_order *out, const char *text,
	       const struct tree *tree, struct error *err);

#endif
