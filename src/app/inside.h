/* SPDX-License-Identifier: BSD-2-Clause */
/* Find and open sources that lie inside other sources. */
#ifndef APP_INSIDE_H
#define APP_INSIDE_H

#include "app/cli.h"
#include "formats/registry/nest.h"
#include "tree/graft.h"

/* Return the source that a node belongs to, NULL if it is not known. */
struct source *inside_source(const struct session *s, const struct node *n);
/* If the node is a source that was not opened yet, open it and update *n.  Return 0 or
 * -errno; -ENOTSUP if it is a view, which is not stored. */
int inside_enter(const struct tree *t, struct node *n, struct error *err);
/* Find the next source below `top`, from number *i on, but not inside a source that is
 * itself below `top`.  Return NULL at the end.  *out is its node; the source is not
 * opened. */
struct graft *inside_next(const struct tree *t, const struct node *top,
			  uint32_t *i, struct node *out);

#endif
