/* SPDX-License-Identifier: BSD-2-Clause */
/* zip: make a member table from the directory at the end of an archive. */
#ifndef FORMATS_ZIP_ZIP_H
#define FORMATS_ZIP_ZIP_H

#include "members/member_files.h"
#include "stream/stream.h"

/* The version of tables that zip_scan makes; an index of another version is made
 * anew. */
#define ZIP_MAKER "zip 5"

/* Return how certain it is, from 0 to 100, that a file that begins with these bytes
 * is a zip. */
int zip_probe(const unsigned char *head, size_t n);
/* Return true if a file ends with a zip archive, whatever it begins with (a program
 * that extracts itself, a picture).  Reads up to 64 KiB. */
bool zip_ends_file(const struct backing *b);

/* A stored member: its bytes are in the archive as they are. */
struct zip_stored {
	uint64_t pos, size; /* in the archive, in bytes */
	uint32_t crc;
	uint32_t unused; /* 0 */
};
/* Why a member cannot be read. */
enum zip_why {
	ZIP_ENCRYPTED,
	ZIP_METHOD,
	ZIP_OVERLAPS,
	ZIP_BEYOND, /* its bytes reach beyond the end of the archive */
	ZIP_HEADER, /* the local header differs from the directory */
	ZIP_SIZE,   /* no data of its method decode to this size */
	ZIP_DATA,   /* its data were decoded, and are damaged */
	ZIP_WHYS
};
struct zip_bad {
	/* `at`: sum of the sizes of the bad members before it, in bytes. */
	uint64_t at, size;
	uint32_t why;
	uint32_t method;
};
/*
 * An open zip.  The ranges of members are positions in one space that has three
 * kinds of bytes, one behind the other:
 *
 *	0             stored.size        + decoded bytes       + bad bytes
 *	| the archive | deflated members | members that cannot be read |
 */
struct zip {
	struct files files; /* first member; node 0 is the space */
	/* Chunk i is bad[i], reading it always fails. */
	struct chunk_set bad_set;
	struct backing stored;
	struct stream *stream; /* the deflated members */
	struct zip_stored *plain;
	uint64_t n_plain; /* in order of `pos` */
	struct zip_bad *bad;
	uint64_t n_bad;
};
void zip_free(struct zip *z); /* `z` may be NULL */

struct zip_scanning {
	const struct backing *stored;
	const struct members_options *options;
	uint32_t uid, gid; /* of members that have no owner */
	unsigned threads;  /* that decode large members */
	/* Called with the number of archive bytes that are done; may be NULL. */
	void (*so_far)(void *ctx, uint64_t done);
	void *ctx;
};
/* Read the directory and local headers, and decode large deflated members once.  *m
 * is the member table, *out the zip that its ranges are in; the caller frees both.
 * Return 0, -EBADMSG if there is no directory or nothing in it makes sense,
 * -ENOTSUP if the archive is split into several files, -ENOMEM, or an error of the
 * source. */
int zip_scan(const struct zip_scanning *s, struct members *m, struct zip **out,
	     struct error *err);

/* Fill in the zip's own sections of an index, numbered from `first`.  Return how
 * many, at most 4. */
unsigned zip_sections(const struct zip *z, uint32_t first,
		      struct index_section *out);
/* Make a zip from these sections; every number is checked.  Return 0, -EBADMSG or
 * -ENOMEM. */
int zip_of_index(struct zip **out, const struct backing *stored,
		 const struct index *x, uint32_t first, struct error *err);
/* Return the space that ranges of members are in. */
struct volume zip_volume(struct zip *z);

/* The functions of formats/archive/places.h for a zip.  A place is a window of the
 * stream, a stored member or a bad one, numbered in this order. */
uint64_t zip_places(const struct zip *z);
uint64_t zip_place_size(const struct zip *z, uint64_t place);
uint64_t zip_place_stored(const struct zip *z, uint64_t place);
/* Read or decode a place and compare its CRC-32.  Return 0 or -errno. */
int zip_place_check(const struct zip *z, uint64_t place, struct error *err);
void zip_place_describe(const struct zip *z, uint64_t place, char *buf,
			size_t n);
/* Set *first and *last to the places of bytes [off, off + len) of the space, which
 * are bytes of one member.  Return false if there are none. */
bool zip_place_range(const struct zip *z, uint64_t off, uint64_t len,
		     uint64_t *first, uint64_t *last);
/* Return how the member at `off` of the space is stored: "stored", "deflate" or
 * "unreadable".  *at is where its bytes begin in the archive. */
const char *zip_storage_name(const struct zip *z, uint64_t off, uint64_t *at);
/* Set *crc to the CRC-32 of the stored member whose bytes begin at `off` of the
 * space.  Return false if there is none. */
bool zip_stored_crc(const struct zip *z, uint64_t off, uint32_t *crc);

#endif
