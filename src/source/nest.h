/* SPDX-License-Identifier: BSD-2-Clause */
/* Sources inside of sources: members that are archives or HDF5 files. */
#ifndef SOURCE_NEST_H
#define SOURCE_NEST_H

#include "archive/member_files.h"
#include "source/source.h"

/*
 * What is opened later, in the place of members, with the options of the source
 * they are in.  Owned by that source; closed after its tree.
 */
struct nest;
struct graft;
/* `a` is copied as far as it is needed later; a->path is not. */
int nest_new(struct nest **out, const struct source_args *a, struct error *err);
void nest_free(struct nest *n);
/*
 * Show the members of a table that look like sources, by name, and by their first
 * bytes where reading these costs little, as grafts of the tree directory `dir`,
 * which is backed by `files` of the table under record `root`.
 */
int nest_members(struct nest *n, struct tree_builder *b, uint32_t dir,
		 const struct members *m, const struct volume *volumes,
		 unsigned n_volumes, struct files *files, uint64_t root,
		 const char *path, struct error *err);
/* The records that nest_members has shown so, ascending; borrowed. */
const uint64_t *nest_shown(const struct nest *n, size_t *count);
/* What is known of one of these; borrowed, as long as the graft is there. */
struct nest_inside {
	const char *path; /* for sentences */
	uint64_t size;    /* bytes of the member */
	/* Its format by its first bytes; NULL: they were not looked at. */
	const struct source_ops *ops;
	struct source *source; /* NULL: it is not open */
};
void nest_inside(const struct graft *g, struct nest_inside *out);
/* Open it apart from the tree that it is in, for a while: the caller frees *tree,
 * then closes *source. */
int nest_open_apart(struct graft *g, struct source **source, struct tree **tree,
		    struct error *err);
/* Is a file of this name likely to be a source? */
bool nest_likely(const char *name);

#endif
