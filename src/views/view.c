/* SPDX-License-Identifier: BSD-2-Clause */
/* A tensor's directory: its views as files, all found by arithmetic on node numbers. */
#include "views/view.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "tensor/text.h"
#include "views/node.h"
#include "views/state.h"

static uint64_t tensor_files_count(const struct files *files, uint64_t dir)
{
	const struct tensor_files *f = tensor_files_of(files);
	struct view_node w;

	if (dir == 0)
		return f->listed;
	if (view_node_resolve(f, dir, &w) < 0 || view_node_is_file(&w) ||
	    w.view.ops->lookup_only)
		return 0;
	if (w.view.ops->dirs)
		return w.view.ops->dirs->count(f, &w);
	return w.view.ops->count(&w.view, w.depth);
}

static bool tensor_files_endless(const struct files *files, uint64_t dir)
{
	const struct tensor_files *f = tensor_files_of(files);
	const struct view_ops *ops;
	struct view_node w;

	if (!dir || view_node_resolve(f, dir, &w) < 0 || view_node_is_file(&w))
		return false;
	ops = w.view.ops;
	return ops->lookup_only ||
	       (ops->dirs && ops->dirs->endless && ops->dirs->endless(f, &w));
}

static uint64_t tensor_files_child(const struct files *files, uint64_t dir,
				   uint64_t i, uint32_t *type)
{
	const struct tensor_files *f = tensor_files_of(files);
	struct view_node w;

	if (dir == 0) {
		view_at(f, (unsigned)i, &w.view);
		*type = w.view.levels ? S_IFDIR : S_IFREG;
		return 1 + i;
	}
	view_node_resolve(f, dir, &w);
	if (w.view.ops->dirs) {
		uint64_t node = 0;

		w.view.ops->dirs->entry(f, &w, i, &node, NULL, 0);
		*type = view_node_resolve(f, node, &w) < 0 ||
					view_node_is_file(&w)
				? S_IFREG
				: S_IFDIR;
		return node;
	}
	w.at[w.depth++] = i;
	*type = view_node_is_file(&w) ? S_IFREG : S_IFDIR;
	return view_node_number(&w.view, w.depth, w.at);
}

static int tensor_files_name(const struct files *files, uint64_t dir,
			     uint64_t i, char *buf, size_t n)
{
	const struct tensor_files *f = tensor_files_of(files);
	struct view_node w;

	if (dir == 0) {
		snprintf(buf, n, "%s", view_table[f->row[i]]->top);
		return 0;
	}
	if (view_node_resolve(f, dir, &w) < 0 || view_node_is_file(&w))
		return -ENOENT;
	if (w.view.ops->dirs) {
		uint64_t node;

		return w.view.ops->dirs->entry(f, &w, i, &node, buf, n);
	}
	w.at[w.depth] = i;
	w.view.ops->name_of(&w.view, w.depth, w.at, buf, n);
	return 0;
}

static int tensor_files_name_of(const struct files *files, uint64_t node,
				char *buf, size_t n)
{
	struct view_node w;

	if (view_node_resolve(tensor_files_of(files), node, &w) < 0)
		return -ENOENT;
	if (w.depth == 0)
		snprintf(buf, n, "%s", w.view.ops->top);
	else if (w.view.ops->dirs)
		return w.view.ops->dirs->name(tensor_files_of(files), &w, buf,
					      n);
	else
		w.view.ops->name_of(&w.view, w.depth - 1, w.at, buf, n);
	return 0;
}

static int tensor_files_find(const struct files *files, uint64_t dir,
			     const char *name, uint64_t *node)
{
	const struct tensor_files *f = tensor_files_of(files);
	struct view_node w;
	int r;

	for (unsigned k = 0; dir == 0 && k < f->n; k++)
		if (!strcmp(view_table[f->row[k]]->top, name)) {
			*node = 1 + k;
			return 0;
		}
	if (dir == 0 || view_node_resolve(f, dir, &w) < 0 ||
	    view_node_is_file(&w))
		return -ENOENT;
	if (w.view.ops->dirs)
		return w.view.ops->dirs->find(f, &w, name, node);
	r = w.view.ops->find(&w.view, w.depth, w.at, name, &w.at[w.depth]);
	if (r < 0)
		return r;
	*node = view_node_number(&w.view, w.depth + 1, w.at);
	return 0;
}

static int tensor_files_skip(struct files *files, uint64_t dir, uint64_t *i,
			     struct pinner *p, struct error *err)
{
	const struct tensor_files *f = tensor_files_of(files);
	struct view_node w;

	if (!dir || view_node_resolve(f, dir, &w) < 0 ||
	    view_node_is_file(&w) || !w.view.ops->skip)
		return 0;
	return w.view.ops->skip(&w.view, w.depth, w.at, i, p, err);
}

static int tensor_files_parent(const struct files *files, uint64_t node,
			       uint64_t *dir)
{
	const struct tensor_files *f = tensor_files_of(files);
	struct view_node w;

	if (view_node_resolve(f, node, &w) < 0)
		return -ENOENT;
	if (w.depth == 0)
		*dir = 0;
	else if (w.view.ops->dirs)
		return w.view.ops->dirs->parent(f, &w, dir);
	else if (w.depth == 1)
		*dir = 1 + (uint64_t)w.view.index;
	else
		*dir = view_node_number(&w.view, w.depth - 1, w.at);
	return 0;
}

/* ---- sizes and extents --------------------------------------------------- */

/* A file, and what it consists of once view_file_box was called: a header (of 0 bytes if
 * it has none) and a box. */
struct view_file {
	struct view_node w;
	bool boxed;
	struct box box;
	struct npy_header header;
};

static int view_file_resolve(const struct files *files, uint64_t node,
			     struct view_file *f, struct error *err)
{
	f->boxed = false;
	if (view_node_resolve(tensor_files_of(files), node, &f->w) < 0 ||
	    !view_node_is_file(&f->w))
		return error_set(err, -ENOENT, "no such file");
	return 0;
}

static bool view_node_is_document(const struct view_node *w)
{
	const struct view_ops *ops = w->view.ops;

	return ops->document &&
	       (!ops->is_document || ops->is_document(&w->view, w->at));
}

static int view_file_box(struct view_file *f, struct error *err)
{
	const struct view *v = &f->w.view;
	const struct tensor *t = v->tensor;
	struct npy_header *header = &f->header;

	if (f->boxed)
		return 0;
	header->total = 0;
	v->ops->box_of(v, f->w.at, &f->box);
	if (v->ops->header) {
		unsigned char *raw = (unsigned char *)header->back;

		header->front_len = header->descr_len = 0;
		header->total = header->back_len =
			v->ops->header(v, f->w.at, raw);
	} else if (v->ops->npy &&
		   !dtype_npy_header(&t->dtype, t->descr, t->rank - v->drop,
				     f->box.count + v->drop, header)) {
		return error_set(err, -ENOTSUP,
				 "%s: its shape is too long for a .npy file",
				 t->name);
	}
	f->boxed = true;
	return 0;
}

static bool tensor_files_attr_is_slow(const struct files *files, uint64_t node)
{
	struct view_node w;

	return node && !view_node_resolve(tensor_files_of(files), node, &w) &&
	       view_node_is_file(&w) &&
	       ((w.view.ops->size && !w.view.ops->size_is_known) ||
		view_node_is_document(&w));
}

static int view_document_size(const struct view_node *w, struct pinner *p,
			      uint64_t *size, struct error *err)
{
	struct extent e = {.kind = EXTENT_CHUNK, .len = 1};
	struct span span;
	int r = w->view.ops->ready ? w->view.ops->ready(&w->view, p, err) : 0;

	if (r < 0)
		return r;
	e.u.chunk.set = &w->view.tensor->views->documents;
	e.u.chunk.index = tensor_document_chunk(&w->view, w->at);
	e.u.chunk.slice = EXTENT_WHOLE;
	r = p->pin(p, &e, &span, err);
	if (r < 0)
		return r;
	*size = span.buf->size - 1;
	p->unpin(p, &span);
	return 0;
}

static int view_file_size(struct view_file *f, struct pinner *p, uint64_t *size,
			  struct error *err)
{
	const struct view *v = &f->w.view;
	int r;

	if (view_node_is_document(&f->w))
		return view_document_size(&f->w, p, size, err);
	if (v->ops->size)
		return v->ops->size(v, f->w.at, p, size, err);
	r = view_file_box(f, err);
	*size = r < 0 ? 0
		      : f->header.total +
				box_elements(&f->box, v->tensor->rank) *
					v->tensor->dtype.size;
	return r;
}

static int tensor_files_attr(struct files *files, uint64_t node,
			     struct pinner *p, struct attr *out,
			     struct error *err)
{
	const struct tensor_files *f = tensor_files_of(files);
	struct view_file file = {.boxed = false};
	struct view_node *w = &file.w;

	out->mtime = f->tensor->mtime;
	out->mode = S_IFDIR | 0555;
	out->nlink = 2;
	out->size = 0;
	if (node == 0) {
		for (unsigned k = 0; k < f->listed; k++) {
			view_at(f, k, &w->view);
			out->nlink += w->view.levels > 0;
		}
		return 0;
	}
	if (view_node_resolve(f, node, w) < 0)
		return -ENOENT;
	if (w->depth && w->view.ops->generation)
		out->generation = w->view.ops->generation(&w->view, w->at);
	if (!view_node_is_file(w)) {
		if (w->depth + 1 < w->view.levels && !w->view.ops->dirs)
			out->nlink += (uint32_t)min_u64(
				w->view.ops->count(&w->view, w->depth),
				UINT32_MAX - 2);
		return 0;
	}
	out->mode = S_IFREG | 0444;
	out->nlink = 1;
	return view_file_size(&file, p, &out->size, err);
}

static int tensor_files_hold(struct files *files, uint64_t node, int64_t n)
{
	struct view_node w;

	if (view_node_resolve(tensor_files_of(files), node, &w) < 0 ||
	    !w.depth || !w.view.ops->hold)
		return 0;
	return w.view.ops->hold(&w.view, w.at, n);
}

/* A view with a file for each sample is a set of samples. */
static bool tensor_files_sample(struct files *files, uint64_t node,
				struct files_sample *out)
{
	struct view_node w;

	if (view_node_resolve(tensor_files_of(files), node, &w) < 0 ||
	    !w.view.ops->samples || w.depth != w.view.levels)
		return false;
	out->set = w.view.index;
	out->n = view_entries(&w.view);
	out->i = 0;
	for (unsigned i = 0; i < w.depth; i++)
		out->i = out->i * w.view.ops->count(&w.view, i) + w.at[i];
	return true;
}

static uint64_t tensor_files_sample_node(const struct files *files,
					 uint32_t set, uint64_t i)
{
	struct view v;

	view_at(tensor_files_of(files), set, &v);
	return view_entry_node(&v, i);
}

static int view_file_prepare(struct view_file *f, uint64_t off, uint64_t len,
			     struct error *err)
{
	const struct view *v = &f->w.view;
	uint64_t head;
	int r;

	if (view_node_is_document(&f->w))
		return 0;
	if (v->ops->prepare)
		return v->ops->prepare(v, f->w.at, off, len, err);
	if (v->ops->size)
		return 0;
	r = view_file_box(f, err);
	head = f->header.total;
	if (r < 0 || off + len <= head)
		return r;
	if (off < head) {
		len -= head - off;
		off = head;
	}
	return tensor_prepare_box(v->tensor, &f->box, off - head, len, err);
}

static int view_file_map(struct view_file *f, uint64_t off, struct plan *plan,
			 struct error *err)
{
	const struct view *v = &f->w.view;
	uint64_t head;
	int r;

	if (view_node_is_document(&f->w)) {
		plan_chunk(plan, &v->tensor->views->documents,
			   tensor_document_chunk(v, f->w.at), off,
			   plan->want - plan->have);
		return 0;
	}
	if (v->ops->map)
		return v->ops->map(v, f->w.at, off, plan, err);
	r = view_file_box(f, err);
	if (r < 0)
		return r;
	head = f->header.total;
	if (off < head)
		off += dtype_npy_map(&f->header, off, plan);
	if (!plan_open(plan) || off < head)
		return 0;
	return tensor_map_box(v->tensor, &f->box, off - head, plan, err);
}

static unsigned view_file_reversed(struct view_file *f, uint64_t *from)
{
	const struct view *v = &f->w.view;

	if (!v->ops->reversed || view_file_box(f, NULL) < 0)
		return 0;
	*from = f->header.total;
	return v->ops->reversed(v);
}

static int tensor_files_prepare(struct files *files, uint64_t node,
				uint64_t off, uint64_t len, struct error *err)
{
	struct view_file f;
	int r = view_file_resolve(files, node, &f, err);

	return r < 0 ? r : view_file_prepare(&f, off, len, err);
}

static int tensor_files_map(const struct files *files, uint64_t node,
			    uint64_t off, struct plan *plan, struct error *err)
{
	struct view_file f;
	int r = view_file_resolve(files, node, &f, err);

	return r < 0 ? r : view_file_map(&f, off, plan, err);
}

static unsigned tensor_files_reversed(const struct files *files, uint64_t node,
				      uint64_t *from)
{
	struct view_file f;

	return view_file_resolve(files, node, &f, NULL) < 0
		       ? 0
		       : view_file_reversed(&f, from);
}

static int tensor_files_window(struct files *files, uint64_t node, uint64_t off,
			       uint64_t len, struct pinner *p,
			       struct file_window *out, struct plan *plan,
			       struct error *err)
{
	struct view_file f;
	int r = view_file_resolve(files, node, &f, err);

	if (r == 0)
		r = view_file_size(&f, p, &out->size, err);
	if (r < 0 || off >= out->size)
		return r;
	out->len = plan->want = min_u64(len, out->size - off);
	if (!out->len)
		return 0;
	out->reversed = view_file_reversed(&f, &out->reversed_from);
	r = view_file_prepare(&f, off, out->len, err);
	if (r == 0 && !out->reversed)
		r = view_file_map(&f, off, plan, err);
	return r == -ENOENT ? -EIO : r; /* the file itself is there */
}

static void tensor_files_free(struct files *files)
{
	struct tensor_files *f = (struct tensor_files *)files;

	view_state_free(f->tensor);
	tensor_free(f->tensor);
	free(f);
}

const struct files_ops tensor_files_ops = {
	.count = tensor_files_count,
	.endless = tensor_files_endless,
	.why_not = view_node_why_not,
	.child = tensor_files_child,
	.name = tensor_files_name,
	.name_of = tensor_files_name_of,
	.find = tensor_files_find,
	.skip = tensor_files_skip,
	.parent = tensor_files_parent,
	.attr_is_slow = tensor_files_attr_is_slow,
	.attr = tensor_files_attr,
	.hold = tensor_files_hold,
	.sample = tensor_files_sample,
	.sample_node = tensor_files_sample_node,
	.window = tensor_files_window,
	.prepare = tensor_files_prepare,
	.map = tensor_files_map,
	.reversed = tensor_files_reversed,
	.xattr = view_node_xattr,
	.xattr_keys = view_node_xattr_keys,
	.free = tensor_files_free,
};
