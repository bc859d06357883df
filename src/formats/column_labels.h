/* SPDX-License-Identifier: BSD-2-Clause */
/* Labels of samples that are a column of the same table. */
#ifndef FORMATS_COLUMN_LABELS_H
#define FORMATS_COLUMN_LABELS_H

#include "formats/arrays.h"

/* As labels= names it, or else by its name; zeroed at first, and then owned by the
 * source. */
#define COLUMN_LABELS_MAX 8
struct column_labels {
	struct classes *at[COLUMN_LABELS_MAX];
	uint32_t column[COLUMN_LABELS_MAX]; /* where it came from */
	unsigned n;
	bool given;
};
/* What the format knows of its columns; `make` an array of its own of one, or -ENOTSUP
 * and why. */
struct column_ops {
	uint32_t (*count)(const struct arrays *s);
	const char *(*name)(const struct arrays *s, uint32_t i);
	int (*make)(struct arrays *s, uint32_t i, struct array **out,
		    struct error *err);
};
/* Before columns are published.  -ENOENT, -EINVAL: what labels= names is not there, or
 * cannot be labels; -ENOMEM. */
int column_labels_find(struct column_labels *l, struct arrays *s,
		       const struct source_args *a,
		       const struct column_ops *ops, struct error *err);
/* Column i, before it is published: gets those that are given, or the only ones that
 * fit. */
void column_labels_offer(const struct column_labels *l, uint32_t i,
			 struct array *array);
/* When all are: -EINVAL: what labels= names fits nothing. */
int column_labels_check(const struct column_labels *l,
			const struct source_args *a, struct error *err);
/* After the tree. */
void column_labels_free(struct column_labels *l);

#endif
