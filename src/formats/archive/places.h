/* SPDX-License-Identifier: BSD-2-Clause */
/* The pieces that an archive is decoded in, and which of them a member's bytes are
 * in. */
#ifndef FORMATS_ARCHIVE_PLACES_H
#define FORMATS_ARCHIVE_PLACES_H

#include "base/vec.h"
#include "formats/archive/archive.h"
#include "formats/check.h"

/*
 * A place is what is decoded or read at once: a window of a stream, a block of a
 * squashfs image, a MiB of a plain tar, or a window or a stored member of a zip.
 * Places are numbered from 0; return how many there are.
 */
uint64_t places_count(const struct archive *a);
/* Return the decoded bytes of a place; 0 if there is nothing to decode. */
uint64_t places_size(const struct archive *a, uint64_t place);
/* Return the stored bytes of a place. */
uint64_t places_stored(const struct archive *a, uint64_t place);
/* Write a description for a sentence, such as "gzip window 7 (...)", to `buf`. */
void places_describe(const struct archive *a, uint64_t place, char *buf,
		     size_t n);
/* Call `take` with each run of places [first, last] that a record's bytes are in,
 * until it returns false.  Return false if it did. */
typedef bool places_fn(void *ctx, uint64_t first, uint64_t last);
bool places_of(const struct archive *a, const struct member_record *r,
	       places_fn *take, void *ctx);
/* Return true if the record has bytes beyond the end of the archive. */
bool places_beyond(const struct archive *a, const struct member_record *r);

/* A place that cannot be read or decoded. */
struct bad_place {
	uint64_t place;
	int code;
	char *why;     /* the sentence; NULL: there was no memory for it */
	bool reported; /* it was reported with a member */
	/* Blocks of images: the records that it belongs to, of which the first ones
	 * are listed. */
	uint64_t n_members;
	uint32_t members[8];
};
struct bad_places {
	vec(struct bad_place) at; /* in order of `place` */
	bool no_memory;
};
/* Decode all places that are wanted (a byte for each; NULL: all) on the pool, and
 * list those that are bad.  Blocks until all are done.  Return 0 or -ENOMEM; the
 * caller frees *out in either case. */
int places_check(const struct archive *a, const unsigned char *wanted,
		 struct source_check *c, struct bad_places *out);
/* Return the first bad place in [first, last], or NULL. */
struct bad_place *places_bad(const struct bad_places *b, uint64_t first,
			     uint64_t last);
void places_free(struct bad_places *b);

#endif
