/* SPDX-License-Identifier: BSD-2-Clause */
/* Sources inside sources: members that are archives, HDF5 files or Zarr stores. */
#ifndef FORMATS_REGISTRY_NEST_H
#define FORMATS_REGISTRY_NEST_H

#include "formats/source.h"
#include "members/member_files.h"

extern const struct nest_ops nest_in_members;

struct graft;
/* A member that is shown as a directory.  Pointers are borrowed from the graft. */
struct nest_inside {
	const char *path; /* for error sentences */
	uint64_t size;    /* of the member, in bytes */
	/* Its format by its first bytes; NULL if they were not read. */
	const struct source_ops *ops;
	struct source *source; /* NULL if it is not open */
};
void nest_inside(const struct graft *g, struct nest_inside *out);
/* Open it as a source with a tree of its own.  The caller frees *tree, then closes
 * *source.  Return 0 or -errno with a sentence.  Blocks. */
int nest_open_apart(struct graft *g, struct source **source, struct tree **tree,
		    struct error *err);
/* Return true if the name looks like that of a source. */
bool nest_likely(const char *name);

#endif
