/* SPDX-License-Identifier: BSD-2-Clause */
/* A directory that shows all tensors of a tree again, as one Zarr hierarchy. */

/*
 * Nothing is made before the first lookup: then the tree is walked once, and each group
 * and array (views/zarr/catalog.c) takes about 60 bytes.  The nodes of an array are
 * those of the view in the tensor's own directory under other numbers, and all calls
 * are passed on to it; groups have documents of their own.
 */
#include "views/zarr/store.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "views/zarr/catalog.h"

struct zarr_store_files {
	struct files files;
	bool v3, found_only;
	const struct tree *tree;
	_Atomic(struct zarr_catalog *) catalog;
	struct chunk_set documents; /* the documents of groups, by node */
};

static struct zarr_store_files *zarr_store_of(const struct files *f)
{
	return (struct zarr_store_files *)f;
}

/* Return the catalog, made at the first call; NULL if memory ran out or the tree is not
 * bound. */
static const struct zarr_catalog *catalog_of(const struct files *f)
{
	struct zarr_store_files *s = zarr_store_of(f);
	struct zarr_catalog *c = atomic_load(&s->catalog), *none = NULL;

	if (c || !s->tree)
		return c;
	c = zarr_catalog_new(s->tree, s->v3);
	if (!c || atomic_compare_exchange_strong(&s->catalog, &none, c))
		return c;
	zarr_catalog_free(c);
	return none;
}

/* A node as its entry, and the number it has among that entry's nodes. */
struct place {
	const struct zarr_catalog *c;
	const struct zarr_entry *e;
	uint64_t n; /* 0: the entry's directory */
};

static int zarr_store_resolve(const struct files *f, uint64_t node,
			      struct place *out)
{
	out->c = catalog_of(f);
	if (!out->c)
		return -ENOMEM;
	out->e = zarr_entry_of(out->c, node);
	if (!out->e)
		return -ENOENT;
	out->n = node - out->e->base;
	return out->e->tensor || out->n <= zarr_documents(zarr_store_of(f)->v3)
		       ? 0
		       : -ENOENT;
}

static bool zarr_store_is_document(const struct place *p)
{
	return !p->e->tensor && p->n;
}

/* Convert the number of an array's node to the one in its tensor's directory, and back. */
static uint64_t zarr_store_inner_node(const struct place *p)
{
	return p->n ? p->e->from + p->n - 1 : p->e->top;
}
static uint64_t zarr_store_outer_node(const struct zarr_entry *e, uint64_t node)
{
	return node == e->top ? e->base : e->base + 1 + (node - e->from);
}

/* ---- names ------------------------------------------------------------------ */

static uint64_t zarr_store_count(const struct files *f, uint64_t dir)
{
	struct place p;

	if (zarr_store_resolve(f, dir, &p) < 0 || zarr_store_is_document(&p))
		return 0;
	return p.e->tensor ? p.e->files->ops->count(p.e->files,
						    zarr_store_inner_node(&p))
			   : zarr_documents(zarr_store_of(f)->v3) + p.e->count;
}

/* Return the node of entry i of a group, which has that entry, and set its name. */
static uint64_t zarr_store_group_child(const struct place *p, bool v3,
				       uint64_t i, const char **name,
				       bool *is_dir)
{
	unsigned document;
	const struct zarr_entry *e =
		zarr_entry_at(p->c, p->e, v3, i, &document);

	*is_dir = e;
	*name = e ? zarr_entry_name(p->c, e) : zarr_document_name(v3, document);
	return e ? e->base : p->e->base + 1 + document;
}

static uint64_t zarr_store_child(const struct files *f, uint64_t dir,
				 uint64_t i, uint32_t *type)
{
	const char *name;
	struct place p;
	uint64_t node;
	bool is_dir;

	*type = S_IFREG;
	if (zarr_store_resolve(f, dir, &p) < 0)
		return 0;
	if (p.e->tensor)
		return zarr_store_outer_node(
			p.e, p.e->files->ops->child(p.e->files,
						    zarr_store_inner_node(&p),
						    i, type));
	node = zarr_store_group_child(&p, zarr_store_of(f)->v3, i, &name,
				      &is_dir);
	*type = is_dir ? S_IFDIR : S_IFREG;
	return node;
}

static int zarr_store_put_name(const char *name, char *buf, size_t n)
{
	size_t len = strlen(name) + 1;

	if (len > n)
		return -ENAMETOOLONG;
	memcpy(buf, name, len);
	return 0;
}

static int zarr_store_name(const struct files *f, uint64_t dir, uint64_t i,
			   char *buf, size_t n)
{
	const char *name;
	struct place p;
	bool is_dir;
	int r = zarr_store_resolve(f, dir, &p);

	if (r < 0)
		return r;
	if (p.e->tensor)
		return p.e->files->ops->name(
			p.e->files, zarr_store_inner_node(&p), i, buf, n);
	if (i >= zarr_store_count(f, dir))
		return -ENOENT;
	zarr_store_group_child(&p, zarr_store_of(f)->v3, i, &name, &is_dir);
	return zarr_store_put_name(name, buf, n);
}

static int zarr_store_name_of(const struct files *f, uint64_t node, char *buf,
			      size_t n)
{
	struct place p;
	int r = zarr_store_resolve(f, node, &p);

	if (r < 0)
		return r;
	if (!p.n)
		return zarr_store_put_name(zarr_entry_name(p.c, p.e), buf, n);
	if (!p.e->tensor)
		return zarr_store_put_name(
			zarr_document_name(zarr_store_of(f)->v3,
					   (unsigned)p.n - 1),
			buf, n);
	return p.e->files->ops->name_of(p.e->files, zarr_store_inner_node(&p),
					buf, n);
}

static int zarr_store_find(const struct files *f, uint64_t dir,
			   const char *name, uint64_t *node)
{
	bool v3 = zarr_store_of(f)->v3;
	const struct zarr_entry *below;
	struct place p;
	int r = zarr_store_resolve(f, dir, &p);

	if (r < 0 || zarr_store_is_document(&p))
		return r < 0 ? r : -ENOENT;
	if (p.e->tensor) {
		r = p.e->files->ops->find(p.e->files, zarr_store_inner_node(&p),
					  name, node);
		if (r == 0)
			*node = zarr_store_outer_node(p.e, *node);
		return r;
	}
	for (unsigned i = 0; i < zarr_documents(v3); i++)
		if (!strcmp(name, zarr_document_name(v3, i))) {
			*node = p.e->base + 1 + i;
			return 0;
		}
	below = zarr_entry_find(p.c, p.e, name);
	if (!below)
		return -ENOENT;
	*node = below->base;
	return 0;
}

static int zarr_store_skip(struct files *f, uint64_t dir, uint64_t *i,
			   struct pinner *pinner, struct error *err)
{
	struct place p;

	if (zarr_store_resolve(f, dir, &p) == 0 && p.e->tensor &&
	    p.e->files->ops->skip)
		return p.e->files->ops->skip(
			p.e->files, zarr_store_inner_node(&p), i, pinner, err);
	return 0;
}

static int zarr_store_parent(const struct files *f, uint64_t node,
			     uint64_t *dir)
{
	struct place p;
	int r = zarr_store_resolve(f, node, &p);

	if (r < 0)
		return r;
	if (!p.n) {
		*dir = p.c->entry[p.e->parent].base;
		return 0;
	}
	*dir = p.e->base;
	if (!p.e->tensor)
		return 0;
	r = p.e->files->ops->parent(p.e->files, zarr_store_inner_node(&p), dir);
	if (r == 0)
		*dir = zarr_store_outer_node(p.e, *dir);
	return r;
}

/* ---- attributes and bytes ---------------------------------------------------- */

static bool zarr_store_attr_is_slow(const struct files *f, uint64_t node)
{
	struct place p;

	if (zarr_store_resolve(f, node, &p) < 0)
		return false;
	return p.e->tensor ? p.e->files->ops->attr_is_slow(
				     p.e->files, zarr_store_inner_node(&p))
			   : zarr_store_is_document(&p);
}

static int group_document_size(const struct zarr_store_files *s, uint64_t node,
			       struct pinner *p, uint64_t *size,
			       struct error *err)
{
	struct extent x = {.kind = EXTENT_CHUNK, .len = 1};
	struct span span;
	int r;

	x.u.chunk.set = (struct chunk_set *)&s->documents;
	x.u.chunk.index = node;
	x.u.chunk.slice = EXTENT_WHOLE;
	r = p->pin(p, &x, &span, err);
	if (r < 0)
		return r;
	*size = span.buf->size - 1;
	p->unpin(p, &span);
	return 0;
}

static int zarr_store_attr(struct files *f, uint64_t node,
			   struct pinner *pinner, struct attr *out,
			   struct error *err)
{
	const struct zarr_store_files *s = zarr_store_of(f);
	struct place p;
	struct node n;
	int r = zarr_store_resolve(f, node, &p);

	if (r == -ENOMEM)
		return error_no_memory(
			err, "the list of groups and arrays for Zarr");
	if (r < 0 || (s->found_only && !node && !p.c->arrays))
		return -ENOENT;
	if (p.e->tensor)
		return p.e->files->ops->attr(p.e->files,
					     zarr_store_inner_node(&p), pinner,
					     out, err);
	if (tree_node(s->tree, p.e->ino, &n) == 0)
		tree_attr(s->tree, &n, NULL, out, err);
	*out = (struct attr){
		.mtime = out->mtime, .mode = S_IFDIR | 0555, .nlink = 2};
	if (!p.n) {
		out->nlink += p.e->count;
		return 0;
	}
	out->mode = S_IFREG | 0444;
	out->nlink = 1;
	return group_document_size(s, node, pinner, &out->size, err);
}

static int zarr_store_prepare(struct files *f, uint64_t node, uint64_t off,
			      uint64_t len, struct error *err)
{
	struct place p;

	if (zarr_store_resolve(f, node, &p) < 0 || !p.e->tensor)
		return 0;
	return p.e->files->ops->prepare(p.e->files, zarr_store_inner_node(&p),
					off, len, err);
}

static int zarr_store_map(const struct files *f, uint64_t node, uint64_t off,
			  struct plan *plan, struct error *err)
{
	struct place p;

	if (zarr_store_resolve(f, node, &p) < 0 || (!p.e->tensor && !p.n))
		return error_set(err, -ENOENT, "no such file");
	if (p.e->tensor)
		return p.e->files->ops->map(
			p.e->files, zarr_store_inner_node(&p), off, plan, err);
	plan_chunk(plan, &zarr_store_of(f)->documents, node, off,
		   plan->want - plan->have);
	return 0;
}

static ssize_t zarr_store_xattr(struct files *f, uint64_t node, const char *key,
				struct pinner *pinner, char *buf, size_t n)
{
	struct place p;

	if (zarr_store_resolve(f, node, &p) < 0 || !p.e->tensor)
		return -ENODATA;
	return p.e->files->ops->xattr(p.e->files, zarr_store_inner_node(&p),
				      key, pinner, buf, n);
}

static const char *zarr_store_xattr_keys(const struct files *f, uint64_t node,
					 size_t *len)
{
	struct place p;

	*len = 0;
	if (zarr_store_resolve(f, node, &p) < 0 || !p.e->tensor)
		return NULL;
	return p.e->files->ops->xattr_keys(p.e->files,
					   zarr_store_inner_node(&p), len);
}

static void zarr_store_destroy(struct files *f)
{
	zarr_catalog_free(atomic_load(&zarr_store_of(f)->catalog));
	free(f);
}

static const struct files_ops zarr_store_ops = {
	.count = zarr_store_count,
	.child = zarr_store_child,
	.name = zarr_store_name,
	.name_of = zarr_store_name_of,
	.find = zarr_store_find,
	.skip = zarr_store_skip,
	.parent = zarr_store_parent,
	.attr_is_slow = zarr_store_attr_is_slow,
	.attr = zarr_store_attr,
	.prepare = zarr_store_prepare,
	.map = zarr_store_map,
	.xattr = zarr_store_xattr,
	.xattr_keys = zarr_store_xattr_keys,
	.free = zarr_store_destroy,
};

/* ---- documents of groups ------------------------------------------------------ */

static struct zarr_store_files *zarr_store_of_set(const struct chunk_set *s)
{
	return (struct zarr_store_files *)((char *)(uintptr_t)s -
					   offsetof(struct zarr_store_files,
						    documents));
}

static uint64_t group_document_segment_of(const struct chunk_set *s,
					  uint64_t index)
{
	(void)s, (void)index;
	return UINT64_MAX;
}

static int group_document_locate(const struct chunk_set *s, uint64_t index,
				 const struct buf *segment, struct chunk *c,
				 struct error *err)
{
	(void)s, (void)index, (void)segment, (void)err;
	*c = (struct chunk){.state = CHUNK_FETCH, .size = 4096};
	return 0;
}

static int group_document_fetch(struct chunk_set *set, uint64_t index,
				_Atomic uint64_t *gauge, struct buf **out,
				struct error *err)
{
	struct zarr_store_files *s = zarr_store_of_set(set);
	cleanup_free char *text = NULL;
	struct place p;
	size_t len;

	if (zarr_store_resolve(&s->files, index, &p) < 0 ||
	    !zarr_store_is_document(&p))
		return error_set(err, -EIO, "no such file");
	text = zarr_group_text(p.c, p.e, s->v3, (unsigned)p.n - 1, err);
	if (!text)
		return err && err->code ? err->code : -ENOMEM;
	len = strlen(text);
	*out = buf_new(len + 1, gauge);
	if (!*out)
		return error_no_memory(err, "the metadata of a Zarr group");
	memcpy((*out)->data, text, len + 1);
	return 0;
}

static void group_document_describe(const struct chunk_set *s, uint64_t index,
				    char *buf, size_t n)
{
	const struct zarr_store_files *f = zarr_store_of_set(s);
	struct place p;
	bool known = zarr_store_resolve(&f->files, index, &p) == 0;

	snprintf(buf, n, "Zarr v%d group '%s'", f->v3 ? 3 : 2,
		 known ? zarr_entry_name(p.c, p.e) : "");
}

static const struct chunk_set_ops document_ops = {
	.index_page_of = group_document_segment_of,
	.locate = group_document_locate,
	.fetch = group_document_fetch,
	.describe = group_document_describe,
};

struct files *zarr_store_new(bool v3, bool found_only)
{
	struct zarr_store_files *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->files.ops = &zarr_store_ops;
	s->v3 = v3;
	s->found_only = found_only;
	s->documents.ops = &document_ops;
	s->documents.id = chunk_set_new_id();
	s->documents.unit = 4096;
	return &s->files;
}

bool zarr_store_are(const struct files *f)
{
	return f->ops == &zarr_store_ops;
}

void zarr_store_bind(struct files *f, const struct tree *t)
{
	zarr_store_of(f)->tree = t;
}
