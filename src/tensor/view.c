/* SPDX-License-Identifier: BSD-2-Clause */
/* A tensor's directory: its views as files, all computed from node numbers. */
/*
 * Node 0 is the directory, nodes 1..n its entries (one a view), and after them
 * each view that is a directory has a range of numbers per level of nesting:
 *
 *     0 | 1 .. n | blocks: level 0 | samples: level 0 | samples: level 1 | ...
 *
 * An entry's number is its level's base plus its indices in C order, so names,
 * parents and children are divisions, whatever the number of samples.
 */
#include "tensor/view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "tensor/text.h"
#include "tensor/view_node.h"

/* ---- options ------------------------------------------------------------- */

void view_options_default(struct view_options *o)
{
	memset(o, 0, sizeof *o);
	o->sample_axes = 1;
	o->views = UINT32_MAX;
}

/* All rows of that name (samples are numbers or text). */
static uint32_t view_bits(const char *name, size_t len)
{
	uint32_t bits = 0;

	for (unsigned i = 0; view_table[i]; i++) {
		const char *have = view_table[i]->name;

		if (have && strlen(have) == len && !memcmp(have, name, len))
			bits |= 1u << i;
	}
	return bits;
}

int view_options_parse(struct view_options *o, const char *list,
		       struct error *err)
{
	uint32_t views = 0;

	while (*list) {
		size_t len = strcspn(list, ",+");
		uint32_t bits = len == 3 && !memcmp(list, "all", 3)
					? UINT32_MAX
					: view_bits(list, len);

		if (!bits)
			return error_set(err, -EINVAL,
					 "there is no view '%.*s' (views: %s)",
					 (int)len, list, view_names());
		views |= bits;
		list += len + (list[len] != 0);
	}
	if (!views)
		return error_set(err, -EINVAL, "no view given (views: %s)",
				 view_names());
	o->views = views;
	return 0;
}

const char *view_names(void)
{
	return "array, bin, text, blocks, samples";
}

/* ---- nodes --------------------------------------------------------------- */

int view_node_resolve(const struct tensor_files *f, uint64_t node,
		      struct view_node *out)
{
	uint64_t size, flat;

	if (node == 0 || node > f->last_node)
		return -ENOENT;
	if (node <= f->n) {
		out->view = (struct view *)&f->view[node - 1];
		out->depth = 0;
		return 0;
	}
	for (unsigned k = 0; k < f->n; k++) {
		const struct view *v = &f->view[k];

		size = 1;
		for (unsigned l = 0; l < v->levels; l++) {
			size *= v->level[l].count;
			if (node < v->level[l].base ||
			    node - v->level[l].base >= size)
				continue;
			flat = node - v->level[l].base;
			out->view = (struct view *)v;
			out->depth = l + 1;
			for (unsigned i = l + 1; i-- > 0;) {
				out->at[i] = flat % v->level[i].count;
				flat /= v->level[i].count;
			}
			return 0;
		}
	}
	return -ENOENT;
}

static bool is_file(const struct view_node *w)
{
	return w->depth == w->view->levels;
}

/* Number of the node at `depth` with these indices (depth >= 1). */
static uint64_t node_number(const struct view *v, unsigned depth,
			    const uint64_t *at)
{
	uint64_t flat = 0;

	for (unsigned i = 0; i < depth; i++)
		flat = flat * v->level[i].count + at[i];
	return v->level[depth - 1].base + flat;
}

static uint64_t files_count(const struct files *files, uint64_t dir)
{
	const struct tensor_files *f = tensor_files_of(files);
	struct view_node w;

	if (dir == 0)
		return f->n;
	if (view_node_resolve(f, dir, &w) < 0 || is_file(&w))
		return 0;
	return w.view->level[w.depth].count;
}

static uint64_t files_child(const struct files *files, uint64_t dir, uint64_t i,
			    uint32_t *type)
{
	const struct tensor_files *f = tensor_files_of(files);
	struct view_node w;

	if (dir == 0) {
		*type = f->view[i].levels ? S_IFDIR : S_IFREG;
		return 1 + i;
	}
	view_node_resolve(f, dir, &w);
	w.at[w.depth] = i;
	*type = w.depth + 1 < w.view->levels ? S_IFDIR : S_IFREG;
	return node_number(w.view, w.depth + 1, w.at);
}

static int files_name(const struct files *files, uint64_t dir, uint64_t i,
		      char *buf, size_t n)
{
	const struct tensor_files *f = tensor_files_of(files);
	struct view_node w;

	if (dir == 0) {
		snprintf(buf, n, "%s", f->view[i].top);
		return 0;
	}
	if (view_node_resolve(f, dir, &w) < 0 || is_file(&w))
		return -ENOENT;
	w.at[w.depth] = i;
	w.view->ops->name_of(w.view, w.depth, w.at, buf, n);
	return 0;
}

static int files_find(const struct files *files, uint64_t dir, const char *name,
		      uint64_t *node)
{
	const struct tensor_files *f = tensor_files_of(files);
	struct view_node w;
	int r;

	for (unsigned k = 0; dir == 0 && k < f->n; k++)
		if (!strcmp(f->view[k].top, name)) {
			*node = 1 + k;
			return 0;
		}
	if (dir == 0 || view_node_resolve(f, dir, &w) < 0 || is_file(&w))
		return -ENOENT;
	r = w.view->ops->find(w.view, w.depth, w.at, name, &w.at[w.depth]);
	if (r < 0)
		return r;
	*node = node_number(w.view, w.depth + 1, w.at);
	return 0;
}

static int files_parent(const struct files *files, uint64_t node, uint64_t *dir)
{
	const struct tensor_files *f = tensor_files_of(files);
	struct view_node w;

	if (view_node_resolve(f, node, &w) < 0)
		return -ENOENT;
	if (w.depth == 0)
		*dir = 0;
	else if (w.depth == 1)
		*dir = 1 + (uint64_t)(w.view - f->view);
	else
		*dir = node_number(w.view, w.depth - 1, w.at);
	return 0;
}

/* ---- sizes and extents --------------------------------------------------- */

/* Header and shape of a box view's file. */
static size_t view_header(const struct view *v, const struct box *b, void *buf,
			  size_t n)
{
	if (!v->ops->npy)
		return 0;
	return dtype_npy_header(&v->tensor->dtype, v->tensor->rank - v->drop,
				b->count + v->drop, buf, n);
}

static bool files_attr_is_slow(const struct files *files, uint64_t node)
{
	struct view_node w;

	return node && !view_node_resolve(tensor_files_of(files), node, &w) &&
	       is_file(&w) && w.view->ops->size;
}

static int files_attr(struct files *files, uint64_t node, struct pinner *p,
		      struct attr *out, struct error *err)
{
	const struct tensor_files *f = tensor_files_of(files);
	unsigned char header[PLAN_SCRATCH];
	struct view_node w;
	struct box b;

	out->mtime = f->tensor->mtime;
	out->mode = S_IFDIR | 0555;
	out->nlink = 2;
	out->size = 0;
	if (node == 0) {
		for (unsigned k = 0; k < f->n; k++)
			out->nlink += f->view[k].levels > 0;
		return 0;
	}
	if (view_node_resolve(f, node, &w) < 0)
		return -ENOENT;
	if (!is_file(&w)) {
		if (w.depth + 1 < w.view->levels)
			out->nlink += (uint32_t)min_u64(
				w.view->level[w.depth].count, UINT32_MAX - 2);
		return 0;
	}
	out->mode = S_IFREG | 0444;
	out->nlink = 1;
	if (w.view->ops->size)
		return w.view->ops->size(w.view, w.at, p, &out->size, err);
	w.view->ops->box_of(w.view, w.at, &b);
	out->size = view_header(w.view, &b, header, sizeof header) +
		    box_elements(&b, f->tensor->rank) * f->tensor->dtype.size;
	return 0;
}

static int files_prepare(struct files *files, uint64_t node, uint64_t off,
			 uint64_t len, struct error *err)
{
	const struct tensor_files *f = tensor_files_of(files);
	unsigned char header[PLAN_SCRATCH];
	struct view_node w;
	struct box b;
	size_t head;

	if (view_node_resolve(f, node, &w) < 0)
		return error_set(err, -ENOENT, "no such file");
	if (!w.view->ops->box_of)
		return 0;
	w.view->ops->box_of(w.view, w.at, &b);
	head = view_header(w.view, &b, header, sizeof header);
	if (off + len <= head)
		return 0;
	if (off < head) {
		len -= head - off;
		off = head;
	}
	return tensor_prepare_box(f->tensor, &b, off - head, len, err);
}

static int files_map(const struct files *files, uint64_t node, uint64_t off,
		     struct plan *plan, struct error *err)
{
	const struct tensor_files *f = tensor_files_of(files);
	unsigned char header[PLAN_SCRATCH];
	struct view_node w;
	struct box b;
	size_t head;

	if (view_node_resolve(f, node, &w) < 0)
		return error_set(err, -ENOENT, "no such file");
	if (w.view->ops->map)
		return w.view->ops->map(w.view, w.at, off, plan, err);
	w.view->ops->box_of(w.view, w.at, &b);
	head = view_header(w.view, &b, header, sizeof header);
	if (off < head)
		off += plan_copy(plan, header + off, head - off);
	if (!plan_open(plan) || off < head)
		return 0;
	return tensor_map_box(f->tensor, &b, off - head, plan, err);
}

static void files_free(struct files *files)
{
	struct tensor_files *f = (struct tensor_files *)files;

	for (unsigned k = 0; k < f->n; k++)
		free(f->view[k].level);
	tensor_free(f->tensor);
	free(f);
}

static const struct files_ops tensor_files_ops = {
	.count = files_count,
	.child = files_child,
	.name = files_name,
	.find = files_find,
	.parent = files_parent,
	.attr_is_slow = files_attr_is_slow,
	.attr = files_attr,
	.prepare = files_prepare,
	.map = files_map,
	.xattr = view_node_xattr,
	.xattr_keys = view_node_xattr_keys,
	.free = files_free,
};

/* ---- making one ---------------------------------------------------------- */

struct tensor *tensor_of_files(const struct files *f)
{
	return f && f->ops == &tensor_files_ops ? tensor_files_of(f)->tensor
						: NULL;
}

/* Give the levels of a view their node numbers; false: too many files. */
static bool view_number(struct view *v, uint64_t *next)
{
	uint64_t size = 1, at = *next;

	for (unsigned l = 0; l < v->levels; l++) {
		if (mul_overflows(size, v->level[l].count, &size) ||
		    size >= FILES_NODE_MAX || at + size >= FILES_NODE_MAX)
			return false;
		v->level[l].base = at;
		at += size;
	}
	*next = at;
	return true;
}

/* Keep the views sorted by name, as the directory lists them. */
static void files_insert(struct tensor_files *f, const struct view *v)
{
	unsigned k = f->n++;

	for (; k > 0 && strcmp(f->view[k - 1].top, v->top) > 0; k--)
		f->view[k] = f->view[k - 1];
	f->view[k] = *v;
}

static bool files_add(struct tensor_files *f, unsigned row,
		      const struct view_options *o, uint64_t *next)
{
	struct view_level level[RANK_MAX] = {{0, 0, 0}};
	struct view v = {
		.ops = view_table[row], .tensor = f->tensor, .level = level};

	if (v.ops->name && !(o->views & 1u << row))
		return true;
	if (!v.ops->init(&v, o))
		return true;
	if (!view_number(&v, next)) {
		free(f->tensor->note);
		return asprintf(&f->tensor->note,
				"%s/ is left out: more files than a directory "
				"tree here can number",
				v.top) >= 0;
	}
	v.level = NULL;
	if (v.levels) {
		v.level = malloc(v.levels * sizeof *v.level);
		if (!v.level)
			return false;
		memcpy(v.level, level, v.levels * sizeof *v.level);
	}
	files_insert(f, &v);
	return true;
}

int tensor_files_new(struct files **out, struct tensor *t,
		     const struct view_options *o, struct error *err)
{
	uint64_t next = VIEWS_MAX + 1;
	struct tensor_files *f;
	bool ok = true;
	int r = 0;

	if (!t->why_not && t->dtype.kind == DTYPE_STRING)
		r = text_new(&t->text, t, o->sample_axes, err);
	f = r < 0 ? NULL : calloc(1, sizeof *f);
	if (!f) {
		tensor_free(t);
		return r < 0 ? r : error_set(err, -ENOMEM, "out of memory");
	}
	f->files.ops = &tensor_files_ops;
	f->tensor = t;
	for (unsigned row = 0; ok && view_table[row]; row++)
		ok = files_add(f, row, o, &next);
	f->last_node = next - 1;
	if (!ok) {
		files_free(&f->files);
		return error_set(err, -ENOMEM, "out of memory");
	}
	*out = &f->files;
	return 0;
}
