/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the option order= for a tree that is complete. */
#ifndef APP_ORDER_FILE_H
#define APP_ORDER_FILE_H

#include "readahead/follow.h"
#include "tree/tree.h"

/* Parse the text of the option (borrowed), and read the file if it names one.  Return 0,
 * and the caller frees *out with follow_order_free; or -EINVAL, -ENOENT, -ENOMEM, ...
 * with a sentence. */
int order_open(struct follow_order *out, const char *text,
	       const struct tree *tree, struct error *err);

#endif
