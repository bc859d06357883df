/* SPDX-License-Identifier: BSD-2-Clause */
/* Sources inside of sources: members that are archives or HDF5 files. */
#ifndef FORMATS_REGISTRY_NEST_H
#define FORMATS_REGISTRY_NEST_H

#include "formats/source.h"
#include "members/member_files.h"

extern const struct nest_ops nest_in_members;

struct graft;
/* A member that is shown as a directory.  Pointers are borrowed as long as the graft is there. */
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
