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
/* Objects in one file at most: groups with many names can multiply. */
#define OBJECTS_MAX 4000000u
/* A group that is met again under another name is walked again, so many times;
 * then it becomes a symlink, because names can multiply without bound. */
#define REVISITS_MAX 1000

/* A group that we are inside of. */
struct level {
	uint32_t file;
	haddr_t addr; /* in its file, to notice cycles */
	uint32_t dir;
};
/* An axis that may grow, and the dimension scale of it. */
struct axis_use {
	struct hdf5_tensor *h;
	unsigned axis;
	uint32_t file;         /* of both */
	haddr_t scale;         /* address of the scale */
	const uint64_t *chunk; /* shape of the dataset's; NULL: it has none */
};
struct walk {
	struct hdf5_source *s;
	struct tree_builder *b;
	unsigned depth, objects, revisits;
	void *visited;           /* tsearch tree of struct visited */
	unsigned missing;        /* links into files, to what is not there */
	char missing_shown[480]; /* the first ones */
	struct level level[DEPTH_MAX];
	struct classes *given; /* option labels=, and what that is */
	const char *given_object;
	const char *
		own; /* or the attribute of each dataset that has its labels; */
	bool own_used;
	struct error own_why; /* the first one is wrong; code 0: none is */
	vec(struct axis_use) axes;
	struct error *err;
};
/* Datasets of a group that may be labels of the others. */
#define HDF5_LABELS_MAX 8
struct group_labels {
	unsigned n;
	struct classes *at[HDF5_LABELS_MAX]; /* the source's */
	const char *object[HDF5_LABELS_MAX]; /* which datasets they are */
};
/* A group, open. */
struct group {
	hid_t id;
	uint32_t file;
	const char *object; /* its path in that file, "" for the root */
	const char *path;   /* and in the mount */
	uint32_t dir;
	const struct group_labels *labels;
};

struct visited {
	uint32_t file;
	haddr_t addr;
	char *path; /* where it was met first, in the mount */
};

/* Publish the contents of a file (s->file); and the files of the directory s->dir as one
 * dataset, for which s->file is made (formats/hdf5/concat.c). */
hdf5_walk hdf5_walk_file, hdf5_concat_walk;

/* All calls below: the library's lock is held, and is so again afterwards. */

/* formats/hdf5/walk.c: everything in a group becomes an entry of its directory. */
int hdf5_walk_group(struct walk *w, const struct group *g);

/* Note what was met; -ENOMEM. */
int hdf5_walk_note(struct walk *w, const struct hdf5_item *item);
/* A link in a group, to a path of the mount (NULL: to nothing). */
int hdf5_walk_note_link(struct walk *w, const struct group *in,
			const char *name, const char *target);
/* formats/hdf5/publish.c: a dataset as a directory: `dir` itself when it is there, else
 * a new one, `name` in `parent`.  *out (may be NULL) is its tensor. */
int hdf5_publish_dataset(struct walk *w, const struct group *g,
			 const char *name, hid_t dset,
			 const struct hdf5_place *at, struct tensor **out);
/* Something that is listed, with why it is not shown. */
int hdf5_publish_listed(struct walk *w, const struct group *g, const char *name,
			int code, const char *why);

/* formats/hdf5/links.c, what becomes a symlink.  A link back to the group `up` levels
 * above: "..", "../..", or ".". */
int hdf5_walk_add_cycle(struct walk *w, uint32_t dir, const char *name,
			unsigned up);
/* Remember a group; *before is where it was met first, NULL: now. */
int hdf5_walk_visit(struct walk *w, uint32_t file, haddr_t addr,
		    const char *path, const char **before);
/* A symlink from the group we are in to a path from the root. */
int hdf5_walk_add_revisit(struct walk *w, uint32_t dir, const char *name,
			  const char *path);
/* A soft link that leads nowhere: shown as it is, from the group's place. */
int hdf5_walk_add_dangling(struct walk *w, const struct group *g,
			   const char *name);
/* An external link to an object that is not there: its text names the file. */
int hdf5_walk_add_missing(struct walk *w, const struct group *g,
			  const char *name, const char *file,
			  const char *object);
/* Says, at the end and once, what links led to nothing. */
void hdf5_walk_warn_missing(const struct walk *w);
void hdf5_walk_forget(struct walk *w);

/* formats/hdf5/labels.c.  The dataset or attribute that labels= names, once the file is open (one
 * of several may lack it); and when all is walked: -EINVAL, they fit nothing. */
int hdf5_labels_given(struct walk *w, hid_t file, bool one_of_several);
int hdf5_labels_check(struct walk *w, bool one_of_several);
/* A member of a group that could be labels by its name (classes_is_name): is it?  0, or
 * -ENOMEM. */
int hdf5_labels_look(struct walk *w, const struct group *g, const char *name,
		     struct group_labels *out);
/* Those of a dataset (open as `dset`): as given, else the only ones beside it that fit.
 * -ENOMEM. */
int hdf5_labels_set(struct walk *w, const struct group *g, hid_t dset,
		    struct hdf5_tensor *h);
/* formats/hdf5/dimensions.c.  Note which dimensions the axes of a published dataset (open
 * as `dset`) are of; and when all is walked, set full_shape of those that are shorter
 * than their dimension.  0, or -ENOMEM. */
int hdf5_dimensions_note(struct walk *w, hid_t dset, uint32_t file,
			 struct hdf5_tensor *h);
int hdf5_dimensions_set(struct walk *w);

#endif
