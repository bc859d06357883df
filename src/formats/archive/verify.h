/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files that verify an archive share; nobody else includes it. */
#ifndef FORMATS_ARCHIVE_VERIFY_H
#define FORMATS_ARCHIVE_VERIFY_H

#include "formats/archive/archive.h"
#include "formats/check.h"

struct bad_places;
struct archive_check {
	struct archive *a;
	struct source_check *c;
	uint64_t root;         /* record; 0: everything */
	struct archive *fresh; /* as a scan finds it now, or NULL */
	unsigned char *said;   /* a byte for each record: it was listed */
	unsigned char *below;  /* the same: it is asked for; NULL: all are */
	unsigned char *wanted; /* a byte for each place; NULL: all are */
	struct bad_places *places;
};
/* List a member, once, or the archive. */
void archive_bad_member(struct archive_check *k, uint64_t record, int code,
			const char *why);
void archive_bad(struct archive_check *k, int code, const char *why);
/* Is what the index says (k->a) what the archive has (k->fresh)?  -ENOMEM. */
int archive_compare(struct archive_check *k, struct error *err);

#endif
