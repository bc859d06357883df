/* SPDX-License-Identifier: BSD-2-Clause */
/* Everything that is in an HDF5 file beside one dataset, copied to another file. */
#ifndef TENSORS_REST_H
#define TENSORS_REST_H

#include <hdf5.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "formats/hdf5/file/source.h"

#define REST_TRAIL 1024
struct rest_options {
	struct hdf5_source *source;
	uint32_t file; /* its number in the source's handles, */
	hid_t from;    /* ... open */
	/* The new file; H5I_INVALID_HID: only look whether all can be copied. */
	hid_t to;
	int to_fd;           /* its descriptor, */
	uint64_t user_block; /* ... and bytes before its superblock */
	/* The dataset that is made by `make`: its address; or HADDR_UNDEF, and the path of a
	 * link to another file, whose place it takes. */
	haddr_t target;
	const char *target_path;
	/* Make it in a group of the new file, without attributes; *dset is closed by the
	 * caller.  `type`: the named type of the new file that it is to have, or negative. */
	int (*make)(void *ctx, hid_t group, const char *name, hid_t type,
		    hid_t *dset, struct error *err);
	void *ctx;
	/* What is being done, as "oPATH" (o: the object, l: its links, a: attributes, v:
	 * elements), for who sees this process die; and what has to be left alone, because
	 * another one has died of it. */
	char *trail; /* [REST_TRAIL], shared memory */
	char *const *deadly;
	unsigned n_deadly;
	uint64_t memory; /* bytes, for one value or chunk of another dataset */
	const _Atomic int *stop;
};
/* What to say of the copy.  These go through a pipe: no pointers. */
#define REST_TEXT 768
struct rest_said {
	uint64_t n;
	char text[REST_TEXT]; /* "'/a/b' (why), '/c' (why)" */
};
/* `why` may be NULL. */
void rest_say(struct rest_said *s, const char *path, const char *why);
struct rest_found {
	bool placed;             /* the target has its place */
	uint64_t datasets;       /* others */
	struct rest_said lost;   /* what is not in the copy */
	struct rest_said null;   /* references that lead to nothing */
	struct rest_said abroad; /* what names other files by relative paths */
};
/*
 * All objects, links, attributes and references of `from` are made in `to`; what cannot be
 * copied is listed in out->lost, and costs nothing but itself.  0; or what ends all of it:
 * -ENOMEM, -EINTR, and what `make` returned.  Lock of the library held.
 */
int hdf5_rest_copy(const struct rest_options *o, struct rest_found *out,
		   struct error *err);
/*
 * The attributes of one object alone: those that refer to others are not copied, and
 * listed in `lost`, as is what cannot be read.  Lock held.
 */
void hdf5_rest_attributes(hid_t from, hid_t to, struct rest_said *lost);
/* Properties of a new file as the source has them: its user block, and how its root group
 * keeps links and attributes.  Closed by the caller; negative: not to be had.  *user_block:
 * bytes before the file's first.  Lock held. */
hid_t hdf5_rest_file_plist(hid_t from, uint64_t *user_block);
/* Has an object attributes that are too large for the oldest format, unless it tracks the
 * order in which they were made?  Lock held. */
bool hdf5_rest_large_attribute(hid_t object);

#endif
