/* SPDX-License-Identifier: BSD-2-Clause */
/* Labels of samples that are a column of the same table. */
#ifndef FORMATS_COLUMN_LABELS_H
#define FORMATS_COLUMN_LABELS_H

#include "formats/arrays.h"

/* The columns that labels= names, or whose names say that they are labels.  Zero it
 * before use; the source owns it. */
#define COLUMN_LABELS_MAX 8
struct column_labels {
	struct classes *at[COLUMN_LABELS_MAX];
	uint32_t column[COLUMN_LABELS_MAX]; /* number of the column of at[i] */
	unsigned n;
	bool given;
};
/* How a format describes its columns.  `make` makes an array of one that is not in the
 * tree; -ENOTSUP with a sentence if that is impossible. */
struct column_ops {
	uint32_t (*count)(const struct arrays *s);
	const char *(*name)(const struct arrays *s, uint32_t i);
	int (*make)(struct arrays *s, uint32_t i, struct array **out,
		    struct error *err);
};
/* Find the columns that are labels, before columns are published.  Return 0; -ENOENT
 * if the column that labels= names does not exist; -EINVAL if it cannot be labels;
 * -ENOMEM. */
int column_labels_find(struct column_labels *l, struct arrays *s,
		       const struct source_args *a,
		       const struct column_ops *ops, struct error *err);
/* Give column i, before it is published, the labels that labels= names, or the only ones
 * that fit. */
void column_labels_offer(const struct column_labels *l, uint32_t i,
			 struct array *array);
/* After all columns are published: return -EINVAL if the labels that labels= names fit no
 * column. */
int column_labels_check(const struct column_labels *l,
			const struct source_args *a, struct error *err);
/* Free the labels, after the tree. */
void column_labels_free(struct column_labels *l);

#endif
