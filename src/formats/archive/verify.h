/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations shared by the files that verify an archive; other folders must not
 * include them. */
#ifndef FORMATS_ARCHIVE_VERIFY_H
#define FORMATS_ARCHIVE_VERIFY_H

#include "formats/archive/archive.h"
#include "formats/check.h"

struct bad_places;
struct archive_check {
	struct archive *a;
	struct source_check *c;
	/* Record to verify with all below it; 0: everything. */
	uint64_t root;
	struct archive *fresh; /* the archive as a new scan finds it, or NULL */
	unsigned char *said;   /* a byte for each record: it was reported */
	/* A byte for each record: it is to be verified; NULL: all are. */
	unsigned char *below;
	/* A byte for each place: it is to be decoded; NULL: all are. */
	unsigned char *wanted;
	struct bad_places *places;
};
/* Report a member, once, or the archive itself. */
void archive_bad_member(struct archive_check *k, uint64_t record, int code,
			const char *why);
void archive_bad(struct archive_check *k, int code, const char *why);
/* Report where the index (k->a) differs from the archive (k->fresh).  Return 0 or
 * -ENOMEM. */
int archive_compare(struct archive_check *k, struct error *err);

#endif
