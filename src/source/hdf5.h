/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the HDF5 source: what its files share. */
#ifndef SOURCE_HDF5_H
#define SOURCE_HDF5_H

#include "base/intern.h"
#include "source/hdf5_driver.h"
#include "source/source.h"

struct hdf5_source {
	struct source source;
	struct handles *handles;
	struct intern intern; /* grids, pipelines, names shared by parts */
	uint32_t file;        /* the main file */
	char *path;           /* absolute */
	char *dir;            /* directory of path */
	char *real_dir;       /* directory behind symlinks; NULL: the same */
	int64_t mtime;
	uint64_t size; /* of the main file */
	struct view_options views;
};

/* A dataset of the main file.  The part of the tensor that every reader sees
 * comes first. */
struct hdf5_tensor {
	struct tensor t;
	struct hdf5_source *source;
};

/* All of the following want the library's lock held, unless they say that they
 * take it themselves. */

/* The element type; DTYPE_OTHER with a description when it is not shown. */
void hdf5_type_read(hid_t type, struct dtype *out);

/* A tensor for an open dataset, or (dset < 0) for something that is only
 * listed, with `why`.  NULL only when memory is out. */
struct hdf5_tensor *hdf5_tensor_new(struct hdf5_source *s, hid_t dset,
				    const char *path, const char *why);
/* How an open dataset is stored.  malloc'ed. */
int hdf5_layout_read(struct hdf5_source *s, const struct tensor *t, hid_t dset,
		     uint32_t file, struct layout **out, struct error *err);
/* The fill value in served byte order; `width` is set to 1 for zeros. */
int hdf5_fill_read(const struct tensor *t, hid_t dset, hid_t dcpl,
		   struct fill *fill, unsigned char bytes[32],
		   struct error *err);
/* Parts of a virtual dataset: fills in t->parts and t->nparts.  -ENOTSUP: a
 * mapping of another kind. */
int hdf5_virtual_read(struct hdf5_source *s, struct tensor *t, hid_t dcpl,
		      struct error *err);
/* Attributes of an open object as a JSON object (malloc'ed text). */
char *hdf5_attributes_read(hid_t object, struct error *err);

/* A part's file and dataset, open while the lock is held. */
struct hdf5_opened {
	hid_t file, dset;
};
/* Takes the lock and keeps it until hdf5_part_close; not when it fails. */
int hdf5_part_open(struct tensor *t, uint32_t p, struct hdf5_opened *o,
		   struct error *err);
void hdf5_part_close(struct hdf5_opened *o);
/* Is it what the main file maps?  Type and shape, in a sentence if not. */
int hdf5_part_check(struct tensor *t, uint32_t p, hid_t dset,
		    struct error *err);
/* What tensor_ops do, in this process; they take the lock. */
int hdf5_part_learn(struct tensor *t, uint32_t p, struct layout **out,
		    struct error *err);
int hdf5_part_locate(struct tensor *t, uint32_t p, const struct layout *l,
		     uint64_t first, uint32_t n, struct location *out,
		     struct error *err);
int hdf5_part_fetch(struct tensor *t, uint32_t p, const struct layout *l,
		    uint64_t chunk, void *out, size_t size, struct error *err);
int hdf5_part_strings(struct tensor *t, uint32_t p, uint64_t first, uint64_t n,
		      void (*put)(void *ctx, const char *s, size_t len),
		      void *ctx, struct error *err);

char *hdf5_tensor_attributes(struct tensor *t, struct error *err);

/* These are tensor_ops: the same in a worker process once hdf5_isolate_start
 * was called, for libhdf5 may crash or hang on a damaged file. */
int hdf5_call_learn(struct tensor *t, uint32_t p, struct layout **out,
		    struct error *err);
int hdf5_call_locate(struct tensor *t, uint32_t p, const struct layout *l,
		     uint64_t first, uint32_t n, struct location *out,
		     struct error *err);
int hdf5_call_fetch(struct tensor *t, uint32_t p, const struct layout *l,
		    uint64_t chunk, void *out, size_t size, struct error *err);
int hdf5_call_strings(struct tensor *t, uint32_t p, uint64_t first, uint64_t n,
		      void (*put)(void *ctx, const char *s, size_t len),
		      void *ctx, struct error *err);
char *hdf5_call_attributes(struct tensor *t, struct error *err);

/* Run `walk` in a child: does libhdf5 survive it?  -EBADMSG: no, and how.  It
 * calls hdf5_trial_beat for each object; a minute without means that it hangs. */
typedef int hdf5_walk(struct hdf5_source *s, const struct source_args *a,
		      struct error *err);
int hdf5_trial(hdf5_walk *walk, struct hdf5_source *s,
	       const struct source_args *a, struct error *err);
void hdf5_trial_beat(void);

/* Operations of a tensor that is read from HDF5; no lock is wanted. */
extern const struct tensor_ops hdf5_tensor_ops;
extern const struct source_ops source_hdf5;

#endif
