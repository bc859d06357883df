/* SPDX-License-Identifier: BSD-2-Clause */
/* A tensor's directory: its views as files, all computed from node numbers. */
/*
 * Node 0 is the directory, nodes 1..n its entries (one a view), and after them
 * each view that is a directory has a range of numbers per level of nesting:
 *
 *     0 | 1 .. n | blocks: level 0 | samples: level 0 | samples: level 1 | ...
 *
 * An entry's number is its level's first plus its indices in C order, so names,
 * parents and children are divisions, whatever the number of samples.  Counts
 * come from the tensor: a directory of five views takes 170 bytes.
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

unsigned view_sample_axes(const struct view_options *o, const struct tensor *t)
{
	unsigned axes = !o->sample_axes_given && t->sample_axes
				? t->sample_axes
				: o->sample_axes;

	if (t->dtype.kind == DTYPE_RAGGED || axes > t->rank)
		axes = t->rank;
	return axes;
}

/* ---- nodes --------------------------------------------------------------- */

/* The node is entry number `flat` of this level. */
static void resolve_entry(const struct view *v, unsigned level, uint64_t flat,
			  struct view_node *out)
{
	out->view = v;
	out->depth = level + 1;
	for (unsigned i = level + 1; i-- > 0;) {
		uint64_t n = v->ops->count(v, i);

		out->at[i] = flat % n;
		flat /= n;
	}
}

int view_node_resolve(const struct tensor_files *f, uint64_t node,
		      struct view_node *out)
{
	if (node == 0 || node > f->last_node)
		return -ENOENT;
	if (node <= f->n) {
		out->view = &f->view[node - 1];
		out->depth = 0;
		return 0;
	}
	for (unsigned k = 0; k < f->n; k++) {
		const struct view *v = &f->view[k];
		uint64_t first = v->base, size = 1;

		for (unsigned l = 0; l < v->levels && node >= first; l++) {
			size *= v->ops->count(v, l);
			if (node - first < size) {
				resolve_entry(v, l, node - first, out);
				return 0;
			}
			first += size;
		}
	}
	return -ENOENT;
}

/* Number of the node at `depth` with these indices (depth >= 1). */
static uint64_t node_number(const struct view *v, unsigned depth,
			    const uint64_t *at)
{
	uint64_t flat = 0, first = v->base, size = 1;

	for (unsigned i = 0; i < depth; i++) {
		uint64_t n = v->ops->count(v, i);

		flat = flat * n + at[i];
		size *= n;
		first += i + 1 < depth ? size : 0;
	}
	return first + flat;
}

static uint64_t files_count(const struct files *files, uint64_t dir)
{
	const struct tensor_files *f = tensor_files_of(files);
	struct view_node w;

	if (dir == 0)
		return f->n;
	if (view_node_resolve(f, dir, &w) < 0 || view_node_is_file(&w))
		return 0;
	return w.view->ops->count(w.view, w.depth);
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
		snprintf(buf, n, "%s", f->view[i].ops->top);
		return 0;
	}
	if (view_node_resolve(f, dir, &w) < 0 || view_node_is_file(&w))
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
		if (!strcmp(f->view[k].ops->top, name)) {
			*node = 1 + k;
			return 0;
		}
	if (dir == 0 || view_node_resolve(f, dir, &w) < 0 ||
	    view_node_is_file(&w))
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

/* The header of a box view's file, of 0 bytes when it has none. */
static int view_header(const struct view *v, const struct box *b,
		       struct npy_header *out, struct error *err)
{
	const struct tensor *t = view_tensor(v);

	out->total = 0;
	if (!v->ops->npy ||
	    dtype_npy_header(&t->dtype, t->descr, t->rank - v->drop,
			     b->count + v->drop, out))
		return 0;
	return error_set(err, -ENOTSUP,
			 "%s: its shape is too long for a .npy file", t->name);
}

static bool files_attr_is_slow(const struct files *files, uint64_t node)
{
	struct view_node w;

	return node && !view_node_resolve(tensor_files_of(files), node, &w) &&
	       view_node_is_file(&w) && w.view->ops->size;
}

static int file_size(const struct view_node *w, struct pinner *p,
		     uint64_t *size, struct error *err)
{
	const struct tensor *t = view_tensor(w->view);
	struct npy_header header;
	struct box b;
	int r;

	if (w->view->ops->size)
		return w->view->ops->size(w->view, w->at, p, size, err);
	w->view->ops->box_of(w->view, w->at, &b);
	r = view_header(w->view, &b, &header, err);
	*size = header.total + box_elements(&b, t->rank) * t->dtype.size;
	return r;
}

static int files_attr(struct files *files, uint64_t node, struct pinner *p,
		      struct attr *out, struct error *err)
{
	const struct tensor_files *f = tensor_files_of(files);
	struct view_node w;

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
	if (!view_node_is_file(&w)) {
		if (w.depth + 1 < w.view->levels)
			out->nlink += (uint32_t)min_u64(
				w.view->ops->count(w.view, w.depth),
				UINT32_MAX - 2);
		return 0;
	}
	out->mode = S_IFREG | 0444;
	out->nlink = 1;
	return file_size(&w, p, &out->size, err);
}

static int files_prepare(struct files *files, uint64_t node, uint64_t off,
			 uint64_t len, struct error *err)
{
	const struct tensor_files *f = tensor_files_of(files);
	struct npy_header header;
	struct view_node w;
	struct box b;
	int r;

	if (view_node_resolve(f, node, &w) < 0)
		return error_set(err, -ENOENT, "no such file");
	if (w.view->ops->size)
		return 0;
	w.view->ops->box_of(w.view, w.at, &b);
	r = view_header(w.view, &b, &header, err);
	if (r < 0)
		return r;
	if (off + len <= header.total)
		return 0;
	if (off < header.total) {
		len -= header.total - off;
		off = header.total;
	}
	return tensor_prepare_box(f->tensor, &b, off - header.total, len, err);
}

static int files_map(const struct files *files, uint64_t node, uint64_t off,
		     struct plan *plan, struct error *err)
{
	const struct tensor_files *f = tensor_files_of(files);
	struct npy_header header;
	struct view_node w;
	struct box b;
	int r;

	if (view_node_resolve(f, node, &w) < 0)
		return error_set(err, -ENOENT, "no such file");
	if (w.view->ops->map)
		return w.view->ops->map(w.view, w.at, off, plan, err);
	w.view->ops->box_of(w.view, w.at, &b);
	r = view_header(w.view, &b, &header, err);
	if (r < 0)
		return r;
	if (off < header.total)
		off += dtype_npy_map(&header, off, plan);
	if (!plan_open(plan) || off < header.total)
		return 0;
	return tensor_map_box(f->tensor, &b, off - header.total, plan, err);
}

static void files_free(struct files *files)
{
	struct tensor_files *f = (struct tensor_files *)files;

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
		if (mul_overflows(size, v->ops->count(v, l), &size) ||
		    size >= FILES_NODE_MAX || at + size >= FILES_NODE_MAX)
			return false;
		at += size;
	}
	v->base = *next;
	*next = at;
	return true;
}

bool view_add_note(struct tensor *t, const char *top, const char *why)
{
	cleanup_free char *before = t->note;

	t->note = NULL;
	if (asprintf(&t->note, "%s%s%s/ is left out: %s", before ? before : "",
		     before ? "; " : "", top, why) >= 0)
		return true;
	t->note = NULL;
	return false;
}

/* Views are made at the end of the list ... */
static bool files_add(struct tensor_files *f, unsigned row,
		      const struct view_options *o, uint64_t *next)
{
	struct view *v = &f->view[f->n];

	memset(v, 0, sizeof *v);
	v->ops = view_table[row];
	v->index = (uint8_t)f->n;
	if (v->ops->name && !(o->views & 1u << row))
		return true;
	if (!v->ops->init(v, o))
		return true;
	if (!view_number(v, next))
		return view_add_note(f->tensor, v->ops->top,
				     "more files than a directory tree here "
				     "can number");
	f->n++;
	return true;
}

/* ... and then sorted by name, as the directory lists them. */
static void files_sort(struct tensor_files *f)
{
	for (unsigned i = 1; i < f->n; i++) {
		struct view v = f->view[i];
		unsigned k = i;

		for (; k && strcmp(f->view[k - 1].ops->top, v.ops->top) > 0;
		     k--)
			f->view[k] = f->view[k - 1];
		f->view[k] = v;
	}
	for (unsigned i = 0; i < f->n; i++)
		f->view[i].index = (uint8_t)i;
}

static int tensor_text_make(struct tensor *t, const struct view_options *o,
			    struct error *err)
{
	if (t->why_not || dtype_is_binary(&t->dtype) ||
	    t->dtype.kind == DTYPE_OTHER)
		return 0;
	return text_new(&t->text, t, o->sample_axes, err);
}

int tensor_files_new(struct files **out, struct tensor *t,
		     const struct view_options *o, struct error *err)
{
	struct view_options own = *o;
	uint64_t next = VIEWS_MAX + 1;
	struct tensor_files *f, *fit;
	bool ok = true;
	int r;

	own.sample_axes = view_sample_axes(o, t);
	r = tensor_text_make(t, &own, err);
	/* One place more, for a view that turns out not to be one. */
	f = r < 0 ? NULL
		  : malloc(sizeof *f + (VIEWS_MAX + 1) * sizeof *f->view);
	if (!f) {
		tensor_free(t);
		return r < 0 ? r : error_set(err, -ENOMEM, "out of memory");
	}
	f->files.ops = &tensor_files_ops;
	f->tensor = t;
	f->n = 0;
	for (unsigned row = 0; ok && view_table[row]; row++)
		ok = files_add(f, row, &own, &next);
	f->last_node = next - 1;
	files_sort(f);
	if (!ok) {
		files_free(&f->files);
		return error_set(err, -ENOMEM, "out of memory");
	}
	fit = realloc(f, sizeof *f + f->n * sizeof *f->view);
	*out = fit ? &fit->files : &f->files;
	return 0;
}
