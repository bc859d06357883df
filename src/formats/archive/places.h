/* SPDX-License-Identifier: BSD-2-Clause */
/* The pieces that an archive is decoded in, and which members are in them. */
#ifndef FORMATS_ARCHIVE_PLACES_H
#define FORMATS_ARCHIVE_PLACES_H

#include "base/vec.h"
#include "formats/archive/archive.h"
#include "formats/check.h"

/*
 * A place is what is decoded, or read, at once: a window of a stream, a block of a
 * squashfs image, of a plain tar a MiB of it, and of a zip a window or a stored member.
 * They are numbered; 0 to places_count.
 */
uint64_t places_count(const struct archive *a);
/* Decoded bytes of one; 0: there is nothing to decode. */
uint64_t places_size(const struct archive *a, uint64_t place);
/* Stored bytes of one. */
uint64_t places_stored(const struct archive *a, uint64_t place);
/* "gzip window 7 (...)" */
void places_describe(const struct archive *a, uint64_t place, char *buf,
		     size_t n);
/* Call `take` with each run of places that a record's bytes are in; false when
 * that was. */
typedef bool places_fn(void *ctx, uint64_t first, uint64_t last);
bool places_of(const struct archive *a, const struct member_record *r,
	       places_fn *take, void *ctx);
/* Does it have bytes that the archive has not? */
bool places_beyond(const struct archive *a, const struct member_record *r);

/* One that is bad. */
struct bad_place {
	uint64_t place;
	int code;
	char *why; /* NULL: no memory for that */
	bool told; /* with a member */
	/* Of blocks: records that it belongs to, as far as they are listed. */
	uint64_t n_members;
	uint32_t members[8];
};
struct bad_places {
	vec(struct bad_place) at; /* in order of places */
	bool no_memory;
};
/* Decode all that are wanted (a byte for each; NULL: all) on the pool.  The list is
 * complete when this returns; -ENOMEM. */
int places_check(const struct archive *a, const unsigned char *wanted,
		 struct source_check *c, struct bad_places *out);
/* The first bad one in [first, last]; NULL. */
struct bad_place *places_bad(const struct bad_places *b, uint64_t first,
			     uint64_t last);
void places_free(struct bad_places *b);

#endif
