/* SPDX-License-Identifier: BSD-2-Clause */
/* Labels of samples that are a column of the same table. */
#include "formats/column_labels.h"

#include <errno.h>
#include <string.h>

#include "views/classes.h"

/* Return true if the source is one of several: such a one may lack what an option
 * names. */
static bool one_of_several(const struct source_args *a)
{
	return a->archive && a->archive->depth;
}

static int column_why_no_labels(const struct array *a, struct error *err)
{
	const char *text = a->t.dtype.text;

	if (a->t.dtype.kind == DTYPE_TEXT && text && strstr(text, " or null"))
		return error_set(err, -EINVAL,
				 "values are missing in it (nulls), but each "
				 "sample needs a label");
	return error_set(err, -EINVAL,
			 "it is not a list of whole numbers or strings");
}

/* Read the labels of column i.  Return 0; -EINVAL or -ENOTSUP if it cannot be labels. */
static int column_labels_read(struct column_labels *l, struct arrays *s,
			      const struct source_args *a,
			      const struct column_ops *ops, uint32_t i,
			      struct error *err)
{
	struct array *array;
	int r = ops->make(s, i, &array, err);

	if (r < 0)
		return r;
	if (!classes_can_be(&array->t)) {
		r = column_why_no_labels(array, err);
		tensor_free(&array->t);
		return r;
	}
	r = classes_of_tensor(&l->at[l->n], &array->t, a->pinner, err);
	if (r == 0)
		l->column[l->n++] = i;
	return r;
}

static int column_labels_find_given(struct column_labels *l, struct arrays *s,
				    const struct source_args *a,
				    const struct column_ops *ops,
				    struct error *err)
{
	const char *name = a->views.labels;
	uint32_t n = ops->count(s), i = 0;
	struct error why = {.code = 0};
	int r;

	name += *name == '/';
	while (i < n && strcmp(ops->name(s, i), name))
		i++;
	if (i == n)
		return one_of_several(a)
			       ? 0
			       : error_set(err, -ENOENT,
					   "labels: it has no column '%s'",
					   name);
	l->given = true;
	r = column_labels_read(l, s, a, ops, i, &why);
	return r < 0 ? error_set(err, r == -ENOTSUP ? -EINVAL : r,
				 "labels: '%s': %s", name, why.text)
		     : 0;
}

int column_labels_find(struct column_labels *l, struct arrays *s,
		       const struct source_args *a,
		       const struct column_ops *ops, struct error *err)
{
	int r = 0;

	if (a->views.classes)
		return 0;
	if (a->views.labels)
		return column_labels_find_given(l, s, a, ops, err);
	for (uint32_t i = 0; i < ops->count(s) && l->n < COLUMN_LABELS_MAX;
	     i++) {
		struct error why = {.code = 0};

		if (!classes_is_name(ops->name(s, i)))
			continue;
		r = column_labels_read(l, s, a, ops, i, &why);
		if (r == -ENOMEM)
			return error_set(err, r, "%s", why.text);
	}
	return 0;
}

void column_labels_offer(const struct column_labels *l, uint32_t i,
			 struct array *array)
{
	const struct view_options *o = &array->source->views;
	unsigned axes = view_sample_axes(o, &array->t);
	struct classes *only = NULL;

	for (unsigned k = 0; k < l->n; k++) {
		if (l->column[k] == i)
			return;
		if (!classes_fit(l->at[k], &array->t, axes))
			continue;
		if (only)
			return; /* ambiguous */
		only = l->at[k];
	}
	classes_offer(only, &array->t, axes);
}

int column_labels_check(const struct column_labels *l,
			const struct source_args *a, struct error *err)
{
	if (!l->given)
		return 0;
	if (classes_used(l->at[0])) {
		if (a->views.labels_found)
			*a->views.labels_found = true;
		return 0;
	}
	return one_of_several(a)
		       ? 0
		       : classes_fail_unused(l->at[0], a->views.labels, err);
}

void column_labels_free(struct column_labels *l)
{
	for (unsigned k = 0; k < l->n; k++)
		classes_free(l->at[k]);
	l->n = 0;
}
