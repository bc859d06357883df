/* SPDX-License-Identifier: BSD-2-Clause */
/* A member table as a subtree of files. */
#ifndef MEMBERS_MEMBER_FILES_H
#define MEMBERS_MEMBER_FILES_H

#include "members/members.h"
#include "tree/files.h"

/* One source that members are in (several in a union). */
struct volume {
	struct backing backing;
	struct chunk_set
		*blocks; /* chunk i is block i of the table; NULL: none.
				     Verbatim blocks are read past it. */
	/* Where bytes of one range are, where `backing` has several kinds of them;
	 * NULL: a part of it.  Pure. */
	struct backing (*range)(const struct volume *v, uint64_t off,
				uint64_t len);
};
struct backing volume_range(const struct volume *v, uint64_t off, uint64_t len);
/* The bytes of record `i`, a regular file; `files`: those of the table. */
struct backing member_backing(struct handles *h, struct pinner *p,
			      const struct members *m, uint64_t i,
			      const struct volume *volumes,
			      struct files *files);
/* Node n is record n.  `m` and `volumes` (n of them; a record of a volume that is
 * not there is an error when it is read) are borrowed.  `root` is the record (a
 * directory) that is shown as node 0. */
int member_files_new(struct files **out, const struct members *m,
		     const struct volume *volumes, unsigned n, uint64_t root,
		     struct error *err);
/* The name, without directories, of the file that has a member's bytes, and where in it they
 * begin (UINT64_MAX: they have to be decoded, or there are none).  NULL: it is a file itself. */
const char *member_files_place(const struct files *f, uint64_t node,
			       uint64_t *at);
/* Are these such files?  Directories of the tree are then at most in their root. */
bool member_files_are(const struct files *f);

#endif
