/* SPDX-License-Identifier: BSD-2-Clause */
/* What all files of the HDF5 source share: the source, its items and its tensors. */
#ifndef FORMATS_HDF5_FILE_SOURCE_H
#define FORMATS_HDF5_FILE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/intern.h"
#include "base/vec.h"
#include "formats/source.h"

struct hdf5_type;

/* One entry that the walk has made, in the order of the walk: a group precedes its
 * members. */
struct hdf5_item {
	enum {
		HDF5_ITEM_GROUP,
		HDF5_ITEM_DATASET,
		HDF5_ITEM_LINK, /* a link to `target` */
		HDF5_ITEM_LOST  /* a link whose target is missing */
	} kind;
	uint32_t file;    /* GROUP: the file that has the group */
	const char *name; /* path in the mount; owned by the source or tensor */
	const char *object; /* GROUP: path in its file; owned by the source */
	const char *target; /* LINK: path in the mount; owned by the source */
	struct hdf5_tensor *tensor; /* DATASET: borrowed from the tree */
};
struct hdf5_source {
	struct source source;
	struct handles *handles;
	struct intern intern; /* grids, types and names that parts share */
	uint32_t file;        /* the main file */
	char *path;           /* absolute path of the main file */
	char *dir;            /* the directory of `path` */
	char *real_dir; /* its directory behind symlinks; NULL: equal to `dir` */
	int64_t mtime;
	uint64_t size; /* of the main file, in bytes */
	struct view_options views;
	char *prefix; /* option prefix=: more directories for other files; or NULL */
	/* The archive that the main file is a member of; NULL: it is a file on disk. */
	const struct source_around *around;
	char *format; /* the format's name if several files form one; or NULL */
	char *archive; /* path of the archive's file, if there is one */
	vec(struct hdf5_item) items;
	struct pinner *pinner;
	vec(struct classes *) labels; /* all that were found; owned */
};

/* A dataset, or a field of a compound dataset.  `t` comes first, so that a pointer to it
 * is a pointer to the whole. */
struct hdf5_tensor {
	struct tensor t;
	struct hdf5_source *source;
	const struct hdf5_type
		*type;      /* that parts must have; owned by the source */
	uint32_t file;      /* the file that has the dataset */
	const char *object; /* path in that file; owned by the source */
	const char *member; /* a field that is read as values; or NULL */
	bool null;          /* a null dataspace: the tensor is only listed */
};

#endif
