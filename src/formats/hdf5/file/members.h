/* SPDX-License-Identifier: BSD-2-Clause */
/* One HDF5 file that is several on disk: the family and the multi driver's. */
#ifndef FORMATS_HDF5_FILE_MEMBERS_H
#define FORMATS_HDF5_FILE_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/vec.h"
#include "extent/handles.h"

/* Kinds of bytes that the multi driver tells apart; it has so many members at most. */
#define HDF5_MEMBER_KINDS 6

/* A member: what of the file's addresses it has. */
struct hdf5_member {
	char *path;
	uint64_t address; /* its first byte's */
	uint64_t size;    /* bytes that it has to have, at least */
	uint64_t is;      /* bytes that it has */
	struct stat st;   /* when that was looked at */
};
struct hdf5_members {
	const char *driver; /* "family", "split", "multi" */
	char *name;         /* in the place of a path: "/d/x_%d.h5" */
	int64_t mtime;
	/* Multi: the address of the member that each kind of bytes is in. */
	uint64_t kind[HDF5_MEMBER_KINDS];
	vec(struct hdf5_member) list; /* by address */
};

/*
 * Which files are one with `path`: any member, or for a family the pattern of its
 * members' names ("x_%d.h5").  1: it is a file by itself, or none; 0: *out is set.
 * -ENODATA, -EBADMSG: a member is missing or too short, and its name is in the
 * sentence.  Reads only superblocks.
 */
int hdf5_members_find(const char *path, struct hdf5_members *out,
		      struct error *err);
void hdf5_members_free(struct hdf5_members *x);
/* Is a file, which is nothing that is known by its own bytes, such a member, or a
 * path that is no file such a pattern? */
bool hdf5_members_has(const char *path);
/* The first member of a family whose pattern `path` is (malloc'ed).  1: it is a file, or
 * no such pattern; -ENOMEM. */
int hdf5_members_first(const char *path, char **out);
/* Register them as one row; -ENOMEM.  Once, and before the library opens it. */
int hdf5_members_add(const struct hdf5_members *x, struct handles *h,
		     uint32_t *file, struct error *err);
/* The driver that wrote a file that is a member, by bytes of its superblock; NULL: it
 * is a file by itself. */
const char *hdf5_members_driver(const unsigned char *head, size_t n);

/* formats/hdf5/file/driver.c asks.  Has the file addresses of the multi driver, which may be any of
 * 64 bits? */
bool hdf5_members_is_wide(const struct handles *h, uint32_t file);
/* Of such a file: where the member that bytes of a kind (1 to HDF5_MEMBER_KINDS, as
 * enum H5FD_mem_t; all others: any) are in ends.  The library reads up to there. */
uint64_t hdf5_members_end(const struct handles *h, uint32_t file, int kind);
/* The position in the row that an address means: itself, for all but such files. */
uint64_t hdf5_members_position(const struct handles *h, uint32_t file,
			       uint64_t address);

#endif
