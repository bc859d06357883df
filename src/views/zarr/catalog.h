/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside a Zarr hierarchy: its groups and arrays, numbered. */
#ifndef VIEWS_ZARR_CATALOG_H
#define VIEWS_ZARR_CATALOG_H

#include "tree/tree.h"
#include "views/node.h"

/*
 * A group or an array.  Its nodes are `base` for its directory, and those behind it: the
 * documents of a group, or the entries of the tensor's own view, in their order there.
 */
struct zarr_entry {
	uint64_t base;
	uint64_t ino;        /* of the directory in the tree */
	uint64_t from;       /* array: number of the view's first entry, */
	uint64_t top;        /* and of its directory */
	struct files *files; /* array: the tensor's; group: its own, or NULL */
	struct tensor *tensor; /* NULL: a group */
	uint32_t parent;
	uint32_t first, count; /* children of a group, in order of names */
	uint32_t name;
};
struct zarr_catalog {
	struct zarr_entry *entry; /* by `base`; 0 is the root */
	uint32_t n, arrays;
	char *text; /* names */
};
/* Documents of a group, in order of names. */
unsigned zarr_documents(bool v3);
const char *zarr_document_name(bool v3, unsigned i);
/* What there is in a tree, without sources inside of sources and links. NULL: no memory. */
struct zarr_catalog *zarr_catalog_new(const struct tree *t, bool v3);
void zarr_catalog_free(struct zarr_catalog *c);
/* The entry that a node belongs to; NULL: there is none. */
const struct zarr_entry *zarr_entry_of(const struct zarr_catalog *c,
				       uint64_t node);
/* Entry i of a group, in order of names: a child, or NULL and which document. */
const struct zarr_entry *zarr_entry_at(const struct zarr_catalog *c,
				       const struct zarr_entry *group, bool v3,
				       uint64_t i, unsigned *document);
/* The child of a group with this name; NULL. */
const struct zarr_entry *zarr_entry_find(const struct zarr_catalog *c,
					 const struct zarr_entry *group,
					 const char *name);
static inline const char *zarr_entry_name(const struct zarr_catalog *c,
					  const struct zarr_entry *e)
{
	return c->text + e->name;
}

/* Document i of a group, malloc'ed; NULL and err.  May block. */
char *zarr_group_text(const struct zarr_catalog *c, const struct zarr_entry *e,
		      bool v3, unsigned i, struct error *err);

#endif
