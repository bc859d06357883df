/* SPDX-License-Identifier: BSD-2-Clause */
/* classes/NAME/000042.pgm: samples by label, as ImageFolder and DatasetFolder expect
 * them. */

/*
 * The files of a class are those of images/ or samples/ under other names, as hard
 * links are; see views/epochs.c.  Labels are read when the directory is first listed or
 * searched; if they cannot be read, that is an error of the directory.  Samples with
 * several indices are numbered in C order.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/number.h"
#include "views/classes.h"
#include "views/name.h"
#include "views/node.h"
#include "views/samples.h"
#include "views/table.h"

static bool classes_fits(struct tensor *t, unsigned axes)
{
	return t->classes && classes_fit(t->classes, t, axes) &&
	       (view_is_numeric(t) || view_is_text(t) || view_is_sized(t));
}

/* There is a classes-npy/ only where classes/ has pictures. */
static bool classes_npy_fits(struct tensor *t, unsigned axes)
{
	return classes_fits(t, axes) && view_images.fits(t, axes);
}

static const struct class_index *classes_index_or_warn(const struct tensor *t,
						       int *why)
{
	const struct class_index *x;
	struct error err = {0};

	*why = classes_index(t->classes, &x, &err);
	if (*why == 0)
		return x;
	log_warn("%s: %s", t->name, err.text);
	return NULL;
}

/* ---- what is in a class -------------------------------------------------------- */

static bool tensor_files_view(const struct tensor_files *f, const char *top,
			      struct view *out)
{
	for (unsigned k = 0; k < f->n; k++)
		if (!strcmp(view_table[f->row[k]]->top, top)) {
			view_at(f, k, out);
			return true;
		}
	return false;
}

/* Set *out to the view whose files are listed in a class: images/ if there is one, else
 * samples/. */
static bool listed_view(const struct tensor_files *f,
			const struct view_node *dir, struct view *out)
{
	return (dir->view.ops == &view_classes &&
		tensor_files_view(f, view_images.top, out)) ||
	       tensor_files_view(f, view_samples.top, out);
}

static int class_row_find(const struct view *v, const struct class_index *x,
			  const char *name, uint64_t *row)
{
	if (view_read_number(&name, view_width(x->samples - 1), row) < 0 ||
	    *row >= x->samples || strcmp(name, view_samples_suffix(v)) != 0)
		return -ENOENT;
	return 0;
}

static uint64_t class_dirs_count(const struct tensor_files *f,
				 const struct view_node *dir)
{
	const struct class_index *x;
	int r;

	x = classes_index_or_warn(f->tensor, &r);
	if (!x)
		return 1; /* asking for its name returns the error */
	if (!dir->depth)
		return x->n;
	return dir->at[0] < x->n
		       ? x->start[dir->at[0] + 1] - x->start[dir->at[0]]
		       : 0;
}

static int class_dirs_class(const struct view_node *dir,
			    const struct class_index *x, uint64_t i,
			    uint64_t *node, char *buf, size_t n)
{
	if (i >= x->n)
		return -ENOENT;
	*node = view_node_number(&dir->view, 1, &i);
	if (buf)
		snprintf(buf, n, "%s", x->name[i]);
	return 0;
}

static int class_dirs_entry(const struct tensor_files *f,
			    const struct view_node *dir, uint64_t i,
			    uint64_t *node, char *buf, size_t n)
{
	const struct class_index *x;
	struct view v;
	uint64_t row;
	int r;

	*node = 0;
	x = classes_index_or_warn(f->tensor, &r);
	if (!x)
		return r;
	if (!dir->depth)
		return class_dirs_class(dir, x, i, node, buf, n);
	if (dir->at[0] >= x->n || !listed_view(f, dir, &v) ||
	    i >= x->start[dir->at[0] + 1] - x->start[dir->at[0]])
		return -ENOENT;
	row = x->row[x->start[dir->at[0]] + i];
	*node = view_entry_node(&v, row);
	if (buf)
		snprintf(buf, n, "%0*" PRIu64 "%s",
			 (int)view_width(x->samples - 1), row,
			 view_samples_suffix(&v));
	return 0;
}

static int class_dirs_find(const struct tensor_files *f,
			   const struct view_node *dir, const char *name,
			   uint64_t *node)
{
	const char *const tops[] = {view_images.top, view_samples.top};
	const struct class_index *x;
	uint64_t row;
	uint32_t k;
	struct view v;
	int r;

	x = classes_index_or_warn(f->tensor, &r);
	if (!x)
		return r;
	if (!dir->depth) {
		r = class_find(x, name, &k);
		row = k;
		if (r == 0)
			*node = view_node_number(&dir->view, 1, &row);
		return r;
	}
	for (unsigned i = 0; i < 2; i++)
		if (tensor_files_view(f, tops[i], &v) &&
		    class_row_find(&v, x, name, &row) == 0 &&
		    x->of[row] == dir->at[0]) {
			*node = view_entry_node(&v, row);
			return 0;
		}
	return -ENOENT;
}

static int class_dirs_parent(const struct tensor_files *f,
			     const struct view_node *entry, uint64_t *dir)
{
	const struct class_index *x;
	int r;

	x = classes_index_or_warn(f->tensor, &r);
	if (!x)
		return r;
	if (entry->depth != 1 || entry->at[0] >= x->n)
		return -ENOENT;
	*dir = 1 + (uint64_t)entry->view.index;
	return 0;
}

static int class_dirs_name(const struct tensor_files *f,
			   const struct view_node *entry, char *buf, size_t n)
{
	const struct class_index *x;
	uint64_t node;
	int r;

	x = classes_index_or_warn(f->tensor, &r);
	return x ? class_dirs_class(entry, x, entry->at[0], &node, buf, n) : r;
}

/* Classes have node numbers; the files below them are nodes of other views. */
static uint64_t classes_numbers(const struct view *v, unsigned level)
{
	return level ? 1
		     : min_u64(classes_samples(v->tensor->classes),
			       CLASSES_MAX);
}

static const struct view_dirs classes_dirs = {
	.count = class_dirs_count,
	.entry = class_dirs_entry,
	.find = class_dirs_find,
	.parent = class_dirs_parent,
	.name = class_dirs_name,
};
const struct view_ops view_classes = {
	.name = "classes",
	.summary = "classes/LABEL/, samples by their labels",
	.top = "classes",
	.levels = 2,
	.unlisted = true,
	.dirs = &classes_dirs,
	.fits = classes_fits,
	.count = classes_numbers,
};
const struct view_ops view_classes_npy = {
	.name = "classes-npy",
	.summary = "classes-npy/LABEL/, .npy files by label where classes/ has "
		   "pictures",
	.top = "classes-npy",
	.levels = 2,
	.unlisted = true,
	.dirs = &classes_dirs,
	.fits = classes_npy_fits,
	.count = classes_numbers,
};
