/* SPDX-License-Identifier: BSD-2-Clause */
/* Between the files that find the members of an HDF5 file. */
#ifndef FORMATS_HDF5_FILE_MEMBERS_PRIVATE_H
#define FORMATS_HDF5_FILE_MEMBERS_PRIVATE_H

#include "formats/hdf5/file/members.h"
#include "formats/hdf5/file/super.h"

int hdf5_members_no_memory(struct error *err);
/* Where the last component of a path begins. */
size_t hdf5_members_base(const char *path);
/* One more; takes the path (NULL: no memory). */
int hdf5_members_push(struct hdf5_members *x, char *path, uint64_t address,
		      uint64_t size, struct error *err);
/* Look at all of them on disk; the sentence names one that is not as it should be. */
int hdf5_members_look(struct hdf5_members *x, struct error *err);

/* All of the multi driver's files, by the name and the superblock of one.  -EBADMSG,
 * -ENODATA, -ENOMEM. */
int hdf5_members_multi(const char *path, const struct hdf5_super *super,
		       struct hdf5_members *out, struct error *err);
/* The member with the superblock beside one of another kind: "x-m.h5" for "x-r.h5", by
 * the driver's own names for them (malloc'ed); NULL: there is none. */
char *hdf5_members_beside(const char *path, struct hdf5_super *super);

#endif
