/* SPDX-License-Identifier: BSD-2-Clause */
/* The schema of a Parquet file: which columns there are, and of which types. */
#ifndef FORMATS_PARQUET_SCHEMA_H
#define FORMATS_PARQUET_SCHEMA_H

#include "formats/parquet/meta.h"
#include "formats/parquet/thrift.h"

/* The list of SchemaElement at `f`: leaves in order become columns of `m`, which had
 * none.  -EBADMSG, -ENOMEM. */
int parquet_schema_read(struct thrift *t, const struct thrift_field *f,
			struct parquet_meta *m, struct error *err);

/* formats/parquet/tree.c: an element that follows; with all of them, which columns they have. */
int parquet_tree_add(struct parquet_meta *m, const char *name, size_t len,
		     int64_t repetition, uint32_t children, struct error *err);
int parquet_tree_finish(struct parquet_meta *m, struct error *err);
void parquet_tree_free(struct parquet_meta *m);
/* Whether the repeated element `n` of a list is an item itself, rather than a group around
 * each item: LogicalTypes.md of parquet-format, "backward-compatibility rules". */
bool parquet_tree_is_item(const struct parquet_node *list,
			  const struct parquet_node *n);
/* The leaf of a list without structures, whose values have no names: the repeated element
 * below the root, or the item of a list.  *repeated is what repeats.  NULL: `top` is
 * anything else. */
const struct parquet_node *
parquet_tree_plain_list(const struct parquet_node *top,
			const struct parquet_node **repeated);

#endif
