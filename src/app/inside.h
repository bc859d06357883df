/* SPDX-License-Identifier: BSD-2-Clause */
/* Sources inside of sources, as commands come across them. */
#ifndef APP_INSIDE_H
#define APP_INSIDE_H

#include "app/cli.h"
#include "formats/registry/nest.h"
#include "tree/graft.h"

/* The source that a node is of.  NULL: not known. */
struct source *inside_source(const struct session *s, const struct node *n);
/* A node that is a source not looked into yet: look into it.  -errno; -ENOTSUP: a view of
 * members, with nothing behind it. */
int inside_enter(const struct tree *t, struct node *n, struct error *err);
/* The next source below `top` (but not inside of another such), from number *i on;
 * NULL at the end.  *out is its node; not opened by this. */
struct graft *inside_next(const struct tree *t, const struct node *top,
			  uint32_t *i, struct node *out);

#endif
