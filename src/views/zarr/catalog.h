/* SPDX-License-Identifier: BSD-2-Clause */
/* The groups and arrays of a Zarr hierarchy, with the numbers of their nodes. */
#ifndef VIEWS_ZARR_CATALOG_H
#define VIEWS_ZARR_CATALOG_H

#include "tree/tree.h"
#include "views/node.h"

/*
 * A group or an array.  Node `base` is its directory; the nodes behind it are the
 * documents of a group, or the entries of the tensor's own view, in the order that they
 * have there.
 */
struct zarr_entry {
	uint64_t base;
	uint64_t ino;  /* inode number of the directory in the tree */
	uint64_t from; /* of an array: number of the view's first entry */
	uint64_t top;  /* of an array: number of the view's directory */
	/* Those of the tensor or of the group; NULL if a group has none. */
	struct files *files;
	struct tensor *tensor; /* NULL in a group */
	uint32_t parent;
	uint32_t first, count; /* children of a group, in order of names */
	uint32_t name;
};
struct zarr_catalog {
	struct zarr_entry *entry; /* in order of `base`; 0 is the root */
	uint32_t n, arrays;
	char *text; /* names of entries */
};
/* The number and names of a group's documents, in order of names. */
unsigned zarr_documents(bool v3);
const char *zarr_document_name(bool v3, unsigned i);
/* Make the catalog of a tree, without symlinks and without sources inside of sources.
 * Returns NULL if memory ran out. */
struct zarr_catalog *zarr_catalog_new(const struct tree *t, bool v3);
void zarr_catalog_free(struct zarr_catalog *c);
/* Return the entry that a node belongs to, or NULL. */
const struct zarr_entry *zarr_entry_of(const struct zarr_catalog *c,
				       uint64_t node);
/* Return the child that is entry i of a group, in order of names; NULL if that entry is
 * a document, which *document then names. */
const struct zarr_entry *zarr_entry_at(const struct zarr_catalog *c,
				       const struct zarr_entry *group, bool v3,
				       uint64_t i, unsigned *document);
/* Return the child of a group with this name, or NULL. */
const struct zarr_entry *zarr_entry_find(const struct zarr_catalog *c,
					 const struct zarr_entry *group,
					 const char *name);
static inline const char *zarr_entry_name(const struct zarr_catalog *c,
					  const struct zarr_entry *e)
{
	return c->text + e->name;
}

/* Return document i of a group, for the caller to free; NULL with a sentence if that
 * failed.  May block. */
char *zarr_group_text(const struct zarr_catalog *c, const struct zarr_entry *e,
		      bool v3, unsigned i, struct error *err);

#endif
