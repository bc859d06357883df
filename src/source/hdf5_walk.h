/* SPDX-License-Identifier: BSD-2-Clause */
/* The walk through an HDF5 file's groups, and links that become symlinks. */
#ifndef SOURCE_HDF5_WALK_H
#define SOURCE_HDF5_WALK_H

#include "source/hdf5.h"

#define DEPTH_MAX 100
/* Objects in one file at most: groups with many names can multiply. */
#define OBJECTS_MAX 4000000u
/* A group that is met again under another name is walked again, so many times;
 * then it becomes a symlink, because names can multiply without bound. */
#define REVISITS_MAX 1000

struct level {
	haddr_t addr; /* of the group, to notice cycles */
	uint32_t dir;
};
struct walk {
	struct hdf5_source *s;
	struct tree_builder *b;
	hid_t file;
	unsigned depth, objects, revisits;
	void *visited; /* tsearch tree of struct visited */
	struct level level[DEPTH_MAX];
	struct error *err;
};

struct visited {
	haddr_t addr;
	char *path; /* where it was met first */
};

/* -ENOMEM, said. */
int hdf5_walk_no_memory(struct walk *w);
/* A link back to the group `up` levels above: "..", "../..", or ".". */
int hdf5_walk_add_cycle(struct walk *w, uint32_t dir, const char *name,
			unsigned up);
/* Remember a group; *before is where it was met first, NULL: now. */
int hdf5_walk_visit(struct walk *w, haddr_t addr, const char *path,
		    const char **before);
/* A symlink from the group we are in to a path from the root. */
int hdf5_walk_add_revisit(struct walk *w, uint32_t dir, const char *name,
			  const char *path);
/* A soft link that leads nowhere: shown as it is, from the group's place. */
int hdf5_walk_add_dangling(struct walk *w, hid_t group, const char *name,
			   uint32_t dir);
void hdf5_walk_forget(struct walk *w);

#endif
