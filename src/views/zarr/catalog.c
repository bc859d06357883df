/* SPDX-License-Identifier: BSD-2-Clause */
/* The groups and arrays of a tree, breadth-first and numbered. */
#include "views/zarr/catalog.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/log.h"
#include "base/vec.h"
#include "views/table.h"
#include "views/zarr/store.h"

static const char *const documents2[] = {".zattrs", ".zgroup", ".zmetadata"};
static const char *const documents3[] = {"zarr.json"};
/* Names that a group or array may not have. */
static const char *const reserved[] = {".zarray", ".zattrs", ".zgroup",
				       ".zmetadata", "zarr.json"};

#define N(a) (sizeof(a) / sizeof *(a))

unsigned zarr_documents(bool v3)
{
	return v3 ? N(documents3) : N(documents2);
}

const char *zarr_document_name(bool v3, unsigned i)
{
	return v3 ? documents3[i] : documents2[i];
}

struct making {
	const struct tree *tree;
	bool v3;
	vec(struct zarr_entry) entries;
	vec(char) text;
	uint64_t numbers; /* node numbers that are taken */
	uint32_t arrays;
	bool warned;
};

/* Find the tensor's Zarr view.  Returns false if it has none. */
static bool catalog_find_view(const struct tensor_files *f, bool v3,
			      struct view *out)
{
	const struct view_ops *want = v3 ? &view_zarr3 : &view_zarr;

	for (unsigned k = 0; k < f->n; k++)
		if (view_table[f->row[k]] == want) {
			view_at(f, k, out);
			return true;
		}
	return false;
}

static bool catalog_is_reserved(const char *name)
{
	for (size_t i = 0; i < N(reserved); i++)
		if (!strcmp(name, reserved[i]))
			return true;
	return false;
}

/* Add an entry for a node.  Returns 1, 0 if the node is not shown in Zarr, or -ENOMEM. */
static int catalog_add(struct making *m, const struct node *n, uint32_t parent,
		       const char *name)
{
	struct tensor *t = n->files ? tensor_of_files(n->files) : NULL;
	struct zarr_entry e = {.base = m->numbers,
			       .ino = n->ino,
			       .files = n->files,
			       .tensor = t,
			       .parent = parent,
			       .name = (uint32_t)m->text.n};
	uint64_t numbers = zarr_documents(m->v3) + 1;
	struct view v;

	if (t) {
		if (t->only_dimension ||
		    !catalog_find_view(tensor_files_of(n->files), m->v3, &v))
			return 0;
		numbers = view_numbers(&v) + 1;
		e.from = v.base;
		e.top = 1 + (uint64_t)v.index;
	}
	if (numbers > FILES_NODE_MAX - m->numbers) {
		if (!m->warned)
			log_warn("%s: not shown in the Zarr hierarchy: it has "
				 "more chunks than a mount can number",
				 name);
		m->warned = true;
		return 0;
	}
	m->numbers += numbers;
	for (const char *s = name; s == name || s[-1]; s++)
		if (!vec_push(&m->text, *s))
			return -ENOMEM;
	m->arrays += t != NULL;
	return vec_push(&m->entries, e) ? 1 : -ENOMEM;
}

static int catalog_add_children(struct making *m, uint32_t parent)
{
	uint64_t ino = m->entries.at[parent].ino;
	char name[FILES_NAME_MAX + 1];
	uint32_t first = (uint32_t)m->entries.n;
	struct node n;
	int r = 0;

	for (uint64_t i = 0;
	     r >= 0 && tree_entry(m->tree, ino, i, &n, name, sizeof name) == 0;
	     i++) {
		if (n.type != S_IFDIR || n.node || n.graft ||
		    catalog_is_reserved(name) ||
		    (n.files && zarr_store_are(n.files)))
			continue;
		r = catalog_add(m, &n, parent, name);
	}
	m->entries.at[parent].first = first;
	m->entries.at[parent].count = (uint32_t)m->entries.n - first;
	return r < 0 ? r : 0;
}

struct zarr_catalog *zarr_catalog_new(const struct tree *t, bool v3)
{
	struct making m = {.tree = t, .v3 = v3};
	struct zarr_catalog *c = calloc(1, sizeof *c);
	struct node root;
	int r = c ? tree_node(t, TREE_ROOT, &root) : -ENOMEM;

	if (r == 0)
		r = catalog_add(&m, &root, 0, "");
	/* If the root is a tensor without such a view, the catalog is empty. */
	for (uint32_t i = 0; r >= 0 && i < m.entries.n; i++)
		if (!m.entries.at[i].tensor)
			r = catalog_add_children(&m, i);
	if (r < 0) {
		vec_free(&m.entries);
		vec_free(&m.text);
		free(c);
		return NULL;
	}
	*c = (struct zarr_catalog){m.entries.at, (uint32_t)m.entries.n,
				   m.arrays, m.text.at};
	return c;
}

void zarr_catalog_free(struct zarr_catalog *c)
{
	if (!c)
		return;
	free(c->entry);
	free(c->text);
	free(c);
}

const struct zarr_entry *zarr_entry_of(const struct zarr_catalog *c,
				       uint64_t node)
{
	struct bisect b = bisect_in(0, c->n);

	while (bisect_next(&b))
		bisect_answer(&b, c->entry[b.mid].base > node);
	return b.lo ? &c->entry[b.lo - 1] : NULL;
}

/* Return the number of children of a group that have lower names. */
static uint32_t catalog_rank(const struct zarr_catalog *c,
			     const struct zarr_entry *group, const char *name)
{
	struct bisect b =
		bisect_in(group->first, (uint64_t)group->first + group->count);

	while (bisect_next(&b))
		bisect_answer(&b, strcmp(zarr_entry_name(c, &c->entry[b.mid]),
					 name) >= 0);
	return (uint32_t)b.lo - group->first;
}

const struct zarr_entry *zarr_entry_at(const struct zarr_catalog *c,
				       const struct zarr_entry *group, bool v3,
				       uint64_t i, unsigned *document)
{
	uint64_t before = 0;

	for (unsigned d = 0; d < zarr_documents(v3); d++) {
		uint64_t at =
			d + catalog_rank(c, group, zarr_document_name(v3, d));

		*document = d;
		if (at == i)
			return NULL;
		before += at < i;
	}
	return &c->entry[group->first + (i - before)];
}

const struct zarr_entry *zarr_entry_find(const struct zarr_catalog *c,
					 const struct zarr_entry *group,
					 const char *name)
{
	uint32_t k = catalog_rank(c, group, name);
	const struct zarr_entry *e = &c->entry[group->first + k];

	return k < group->count && !strcmp(zarr_entry_name(c, e), name) ? e
									: NULL;
}
