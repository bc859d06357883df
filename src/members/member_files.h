/* SPDX-License-Identifier: BSD-2-Clause */
/* A member table shown as a subtree of files. */
#ifndef MEMBERS_MEMBER_FILES_H
#define MEMBERS_MEMBER_FILES_H

#include "members/members.h"
#include "tree/files.h"

/* A source that has members; a union has several. */
struct volume {
	struct backing backing;
	/* Chunk i is block i of the table; NULL: there are no blocks.
	 * Blocks that are stored uncompressed are read without it. */
	struct chunk_set *blocks;
	/* Return where the bytes of a range are, for a `backing` with bytes of
	 * several kinds.  NULL: a range is a part of `backing`.  Pure. */
	struct backing (*range)(const struct volume *v, uint64_t off,
				uint64_t len);
};
struct backing volume_range(const struct volume *v, uint64_t off, uint64_t len);
/* Return the bytes of record `i`, which is a regular file.  `files` is the subtree
 * that was made of the table. */
struct backing member_backing(struct handles *h, struct pinner *p,
			      const struct members *m, uint64_t i,
			      const struct volume *volumes,
			      struct files *files);
/* Make a subtree in which node n is record n.  `m` and the n `volumes` are borrowed;
 * reading a record whose volume is missing is an error.  `root` is the record, a
 * directory, that is shown as node 0.  Return 0 or -ENOMEM. */
int member_files_new(struct files **out, const struct members *m,
		     const struct volume *volumes, unsigned n, uint64_t root,
		     struct error *err);
/* Return the name, without directories, of the file that holds a member's bytes, or
 * NULL if the member is a file itself.  *at is the offset in that file, or
 * UINT64_MAX if the bytes have to be decoded or there are none. */
const char *member_files_place(const struct files *f, uint64_t node,
			       uint64_t *at);
/* Return whether `f` was made by member_files_new.  Directories of the tree are then
 * in its root only. */
bool member_files_are(const struct files *f);

#endif
