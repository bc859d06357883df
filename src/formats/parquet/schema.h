/* SPDX-License-Identifier: BSD-2-Clause */
/* The schema of a Parquet file: which columns there are, and of which types. */
#ifndef FORMATS_PARQUET_SCHEMA_H
#define FORMATS_PARQUET_SCHEMA_H

#include "formats/parquet/meta.h"
#include "formats/parquet/thrift.h"

/* Read the list of SchemaElement at `f`; its leaves become the columns of `m`, in order.
 * `m` must have no columns.  Returns 0, -EBADMSG, -ENOTSUP or -ENOMEM. */
int parquet_schema_read(struct thrift *t, const struct thrift_field *f,
			struct parquet_meta *m, struct error *err);

/* In tree.c. parquet_tree_add appends an element; parquet_tree_finish, after the last
 * one, sets the levels of all elements and their columns. */
int parquet_tree_add(struct parquet_meta *m, const char *name, size_t len,
		     int64_t repetition, uint32_t children, struct error *err);
int parquet_tree_finish(struct parquet_meta *m, struct error *err);
void parquet_tree_free(struct parquet_meta *m);
/* Return true if the repeated element `n` of a list is an item itself, not a group
 * around each item: LogicalTypes.md of parquet-format, "backward-compatibility
 * rules". */
bool parquet_tree_is_item(const struct parquet_node *list,
			  const struct parquet_node *n);
/* Return the leaf of a list that has no structures in it: a repeated element below the
 * root, or the item of a list.  *repeated is set to the element that repeats.  Returns
 * NULL if `top` is anything else. */
const struct parquet_node *
parquet_tree_plain_list(const struct parquet_node *top,
			const struct parquet_node **repeated);

#endif
