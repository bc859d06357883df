/* SPDX-License-Identifier: BSD-2-Clause */
/* Views with an entry for each sample: the names of entries, and their boxes. */
#ifndef VIEWS_SAMPLES_H
#define VIEWS_SAMPLES_H

#include "views/view.h"

/* As count, name_of and find of view_ops, for rows that have `samples`; names end with
 * view_samples_suffix. */
uint64_t view_samples_count(const struct view *v, unsigned level);
void view_samples_name(const struct view *v, unsigned level, const uint64_t *at,
		       char *buf, size_t n);
int view_samples_find(const struct view *v, unsigned level, const uint64_t *at,
		      const char *name, uint64_t *index);
/* Return the suffix of the view's files: ops->suffix, else ".npy" or ".txt". */
const char *view_samples_suffix(const struct view *v);
/* Set *out to the box of a sample (view_ops.box_of). */
void view_samples_box(const struct view *v, const uint64_t *at,
		      struct box *out);

#endif
