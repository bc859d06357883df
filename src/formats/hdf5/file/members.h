/* SPDX-License-Identifier: BSD-2-Clause */
/* HDF5 files that are several files on disk, by the family or the multi driver. */
#ifndef FORMATS_HDF5_FILE_MEMBERS_H
#define FORMATS_HDF5_FILE_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/vec.h"
#include "extent/handles.h"

/* The number of kinds of bytes that the multi driver tells apart, and the most members
 * that it has. */
#define HDF5_MEMBER_KINDS 6

/* A member: a file on disk, and the addresses of the HDF5 file that are in it. */
struct hdf5_member {
	char *path;
	uint64_t address; /* of its first byte */
	uint64_t size;    /* bytes that it must have at least */
	uint64_t is;      /* bytes that it has */
	struct stat st;   /* as found together with `is` */
};
struct hdf5_members {
	const char *driver; /* "family", "split", "multi" */
	char *name;         /* stands for a path: "/d/x_%d.h5" */
	int64_t mtime;      /* of the member that was modified last */
	/* Multi driver: for each kind of bytes, the address of the member that has it. */
	uint64_t kind[HDF5_MEMBER_KINDS];
	vec(struct hdf5_member) list; /* sorted by address */
};

/*
 * Find all members of the HDF5 file that `path` is part of: `path` is any member, or for
 * a family the pattern of its members' names ("x_%d.h5").  Reads only superblocks.
 * Return 0 and set *out, which the caller frees by hdf5_members_free; 1 if `path` is a
 * whole HDF5 file, or not HDF5 at all; -ENODATA, -EBADMSG: a member is missing or too
 * short, and its name is in the sentence; -ENOMEM.
 */
int hdf5_members_find(const char *path, struct hdf5_members *out,
		      struct error *err);
void hdf5_members_free(struct hdf5_members *x);
/* Return true if `path` names such a file: as one of its members or, if no file has that
 * name, as a pattern like "x_%d.h5"; also if members are missing.  To be called for files
 * that no format recognises by their bytes. */
bool hdf5_members_named_by(const char *path);
/* Set *out (malloc'ed) to the path of the first member of the family whose pattern
 * `path` is.  Return 0; 1 if `path` is a file or not such a pattern; -ENOMEM. */
int hdf5_members_first(const char *path, char **out);
/* Add the members to the table of files as one row, *file.  Call this once, before the
 * library opens the file.  Takes the library's lock.  -ENOMEM. */
int hdf5_members_add(const struct hdf5_members *x, struct handles *h,
		     uint32_t *file, struct error *err);
/* Return the name of the driver that wrote a member, from the first `n` bytes of that
 * file; NULL if the file is not a member. */
const char *hdf5_members_driver(const unsigned char *head, size_t n);

/* The following functions are for formats/hdf5/file/driver.c; the library's lock must
 * be held.  Does the file have addresses of the multi driver, which may be any of 64
 * bits? */
bool hdf5_members_is_wide(const struct handles *h, uint32_t file);
/* Return the address at which the member ends that has bytes of `kind` (1 to
 * HDF5_MEMBER_KINDS, as enum H5FD_mem_t); for other kinds, the last of these ends.
 * The library reads up to there.  Only for files of the multi driver. */
uint64_t hdf5_members_end(const struct handles *h, uint32_t file, int kind);
/* Return the position in the row that `address` means: `address` itself, unless the
 * file is of the multi driver; UINT64_MAX if no member has it. */
uint64_t hdf5_members_position(const struct handles *h, uint32_t file,
			       uint64_t address);

#endif
