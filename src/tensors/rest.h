/* SPDX-License-Identifier: BSD-2-Clause */
/* Copy everything in an HDF5 file, except one dataset, to another file. */
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
	hid_t from;    /* ... and the open file */
	/* The new file; H5I_INVALID_HID: only check whether everything can be copied. */
	hid_t to;
	int to_fd;           /* its descriptor, */
	uint64_t user_block; /* ... and bytes before its superblock */
	/* The dataset that `make` creates: its address; or HADDR_UNDEF, and the path of
	 * an external link that it replaces. */
	haddr_t target;
	const char *target_path;
	/* Create it in a group of the new file, without attributes.  The caller closes
	 * *dset.  `type`: the named type of the new file that it is to have, or
	 * negative. */
	int (*make)(void *ctx, hid_t group, const char *name, hid_t type,
		    hid_t *dset, struct error *err);
	void *ctx;
	/* The current step, as "oPATH" (o: the object, l: its links, a: attributes, v:
	 * elements), for the process that sees this one die; and the steps to leave out,
	 * because another process has died in them. */
	char *trail; /* [REST_TRAIL], shared memory */
	char *const *deadly;
	unsigned n_deadly;
	uint64_t memory; /* bytes, for one value or chunk of another dataset */
	const _Atomic int *stop;
};
/* Reports about the copy.  They go through a pipe, so they must not contain pointers. */
#define REST_TEXT 768
struct rest_said {
	uint64_t n;
	char text[REST_TEXT]; /* "'/a/b' (why), '/c' (why)" */
};
/* Add an object to a report.  `why` may be NULL. */
void rest_say(struct rest_said *s, const char *path, const char *why);
struct rest_found {
	bool placed;       /* the target was found */
	uint64_t datasets; /* other datasets */
	/* Objects, links and attributes that are not in the copy. */
	struct rest_said lost;
	struct rest_said null; /* objects with references that became null */
	/* Objects that name other files by relative paths. */
	struct rest_said abroad;
};
/*
 * Make all objects, links, attributes and references of o->from in o->to.  Whatever
 * cannot be copied is listed in out->lost and left out.  Return 0, or an error that stops
 * everything: -ENOMEM, -EINTR, or an error of `make`.  The library's lock is held.
 */
int hdf5_rest_copy(const struct rest_options *o, struct rest_found *out,
		   struct error *err);
/*
 * Copy the attributes of one object.  Attributes that refer to other objects or cannot be
 * read are left out and listed in `lost`.  The library's lock is held.
 */
void hdf5_rest_attributes(hid_t from, hid_t to, struct rest_said *lost);
/* Return a property list to create a file with the user block of `from` and the link and
 * attribute properties of its root group; the caller closes it.  Negative on failure.
 * *user_block: bytes in front of the superblock.  The library's lock is held. */
hid_t hdf5_rest_file_plist(hid_t from, uint64_t *user_block);
/* Does an object have attributes that are too large for the oldest format, unless the
 * object tracks their creation order?  The library's lock is held. */
bool hdf5_rest_large_attribute(hid_t object);

#endif
