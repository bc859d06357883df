/* SPDX-License-Identifier: BSD-2-Clause */
/* The walk through HDF5 files' groups: what becomes which directory. */
#ifndef FORMATS_HDF5_WALK_H
#define FORMATS_HDF5_WALK_H

#include "formats/hdf5/dataset/description.h"
#include "formats/hdf5/hdf5.h"
#include "formats/hdf5/layout/tensor.h"
#include "formats/hdf5/value/value.h"
#include "formats/hdf5/worker/trial.h"

#define DEPTH_MAX 100
/* Limit of objects in one file, because groups with many names can multiply. */
#define OBJECTS_MAX 4000000u
/* How many times a group that is met again under another name is walked again. After
 * that it becomes a symlink, because names can multiply without bound. */
#define REVISITS_MAX 1000

/* A group that the walk is inside of. */
struct level {
	uint32_t file;
	haddr_t addr; /* in its file, to notice cycles */
	uint32_t dir;
};
/* An axis that may grow, and its dimension scale. */
struct axis_use {
	struct hdf5_tensor *h;
	unsigned axis;
	uint32_t file; /* the file that has the dataset and the scale */
	haddr_t scale; /* address of the scale */
	/* Chunk shape of the dataset; NULL if it is not chunked. */
	const uint64_t *chunk;
};
struct walk {
	struct hdf5_source *s;
	struct tree_builder *b;
	unsigned depth, objects, revisits;
	void *visited;    /* tsearch tree of struct visited */
	unsigned missing; /* number of external links whose target is missing */
	char missing_shown[480]; /* the first ones */
	struct level level[DEPTH_MAX];
	/* Labels that the option labels= names, and their object. */
	struct classes *given;
	const char *given_object;
	/* Or the name of the attribute with the labels of each dataset. */
	const char *own;
	bool own_used;
	struct error
		own_why; /* why the first such attribute is not usable; code 0: all are usable */
	vec(struct axis_use) axes;
	struct error *err;
};
/* Datasets of a group that may be labels of the others. */
#define HDF5_LABELS_MAX 8
struct group_labels {
	unsigned n;
	struct classes *at[HDF5_LABELS_MAX]; /* owned by the source */
	const char *object[HDF5_LABELS_MAX]; /* paths of their datasets */
};
/* An open group. */
struct group {
	hid_t id;
	uint32_t file;
	const char *object; /* its path in that file, "" for the root */
	const char *path;   /* its path in the mount */
	uint32_t dir;
	const struct group_labels *labels;
};

struct visited {
	uint32_t file;
	haddr_t addr;
	char *path; /* path in the mount where it was met first */
};

/* Publish the contents of a file (s->file); and the files of the directory s->dir as one
 * dataset, for which s->file is made (formats/hdf5/concat.c). */
hdf5_walk hdf5_walk_file, hdf5_concat_walk;

/* The library's lock must be held for all functions below. They may release it, and
 * hold it again when they return. */

/* formats/hdf5/walk.c: everything in a group becomes an entry of its directory. */
int hdf5_walk_group(struct walk *w, const struct group *g);

/* Append an item to the source's list. Return 0 or -ENOMEM. */
int hdf5_walk_note(struct walk *w, const struct hdf5_item *item);
/* Note a link in a group that leads to the path `target` of the mount; NULL: its
 * target is missing. Return 0 or -ENOMEM. */
int hdf5_walk_note_link(struct walk *w, const struct group *in,
			const char *name, const char *target);
/* Publish a dataset as a directory (publish.c): as `name` in the directory of `g`,
 * or with `name` NULL as the root. Set *out (may be NULL) to its tensor. */
int hdf5_publish_dataset(struct walk *w, const struct group *g,
			 const char *name, hid_t dset,
			 const struct hdf5_place *at, struct tensor **out);
/* Publish an object that cannot be shown: its info.json says `why`. */
int hdf5_publish_listed(struct walk *w, const struct group *g, const char *name,
			int code, const char *why);

/* The functions of links.c make symlinks. Add a link back to the group `up` levels
 * above: "..", "../..", or ".". */
int hdf5_walk_add_cycle(struct walk *w, uint32_t dir, const char *name,
			unsigned up);
/* Remember that a group was met. Set *before to the path where it was met first,
 * NULL if this is the first time. Return 0 or -ENOMEM. */
int hdf5_walk_visit(struct walk *w, uint32_t file, haddr_t addr,
		    const char *path, const char **before);
/* Add a symlink from the current group to a path from the root. */
int hdf5_walk_add_revisit(struct walk *w, uint32_t dir, const char *name,
			  const char *path);
/* Add a symlink for a soft link whose target is missing. Its text is the HDF5 path,
 * seen from the group's directory. */
int hdf5_walk_add_dangling(struct walk *w, const struct group *g,
			   const char *name);
/* Add a symlink for an external link whose target is missing. Its text names the
 * file. */
int hdf5_walk_add_missing(struct walk *w, const struct group *g,
			  const char *name, const char *file,
			  const char *object);
/* Warn once, at the end of the walk, about external links whose target is missing. */
void hdf5_walk_warn_missing(const struct walk *w);
void hdf5_walk_forget(struct walk *w);

/* hdf5_labels_given finds the dataset or attribute that labels= names, once the file
 * is open; with `one_of_several` files it may be missing. hdf5_labels_check returns
 * -EINVAL after the walk if the labels fit no dataset (labels.c). */
int hdf5_labels_given(struct walk *w, hid_t file, bool one_of_several);
int hdf5_labels_check(struct walk *w, bool one_of_several);
/* If a member whose name suggests labels (classes_is_name) is a list of labels, add
 * it to *out. Return 0 or -ENOMEM. */
int hdf5_labels_look(struct walk *w, const struct group *g, const char *name,
		     struct group_labels *out);
/* Set the labels of a dataset (open as `dset`): those that labels= names, else the
 * only ones in its group that fit. Return 0 or -ENOMEM. */
int hdf5_labels_set(struct walk *w, const struct group *g, hid_t dset,
		    struct hdf5_tensor *h);
/* hdf5_dimensions_note notes the dimensions of the axes of a published dataset (open
 * as `dset`). hdf5_dimensions_set, after the walk, sets full_shape of the datasets
 * that are shorter than their dimensions. Both return 0 or -ENOMEM (dimensions.c). */
int hdf5_dimensions_note(struct walk *w, hid_t dset, uint32_t file,
			 struct hdf5_tensor *h);
int hdf5_dimensions_set(struct walk *w);

#endif
