/* SPDX-License-Identifier: BSD-2-Clause */
/* zip: from the directory at its end to a member table. */
#ifndef FORMATS_ZIP_ZIP_H
#define FORMATS_ZIP_ZIP_H

#include "members/member_files.h"
#include "stream/stream.h"

/* Version of what zip_scan makes, for the index. */
#define ZIP_MAKER "zip 5"

/* 0 to 100 from the first bytes. */
int zip_probe(const unsigned char *head, size_t n);
/* Whether a file ends with a zip archive, whatever it begins with (a program that
 * extracts itself, a picture).  Reads up to 64 KiB. */
bool zip_is_behind(const struct backing *b);

/* A stored member: its bytes are those of the file. */
struct zip_stored {
	uint64_t pos, size; /* in the archive */
	uint32_t crc;
	uint32_t unused; /* 0 */
};
/* Why a member cannot be read. */
enum zip_why {
	ZIP_ENCRYPTED,
	ZIP_METHOD,
	ZIP_OVERLAPS,
	ZIP_BEYOND, /* the end of the archive */
	ZIP_HEADER, /* the one in front of its bytes differs */
	ZIP_SIZE,   /* no data of its method have this size */
	ZIP_DATA,   /* they were decoded, and are damaged */
	ZIP_WHYS
};
struct zip_bad {
	uint64_t at, size; /* `at`: of sizes of those before it */
	uint32_t why;
	uint32_t method;
};
/*
 * What members' ranges are in: one space of numbers for three kinds of bytes.
 *
 *	0             stored.size        + decoded bytes       + bad bytes
 *	| the archive | deflated members | what cannot be read |
 */
struct zip {
	struct files files;       /* first member: node 0 is the space */
	struct chunk_set bad_set; /* chunk i is bad[i], and always an error */
	struct backing stored;
	struct stream *stream; /* deflated members */
	struct zip_stored *plain;
	uint64_t n_plain; /* in order of pos */
	struct zip_bad *bad;
	uint64_t n_bad;
};
void zip_free(struct zip *z); /* may be NULL */

struct zip_scanning {
	const struct backing *stored;
	const struct members_options *options;
	uint32_t uid, gid; /* of members that do not say theirs */
	unsigned threads;  /* that decode large members */
	/* May be NULL: told how many stored bytes are behind it. */
	void (*so_far)(void *ctx, uint64_t done);
	void *ctx;
};
/* Read directory and headers, and decode large deflated members once.  -EBADMSG:
 * there is no directory, or nothing in it makes sense; -ENOTSUP: split into several
 * files. */
int zip_scan(const struct zip_scanning *s, struct members *m, struct zip **out,
	     struct error *err);

/* Its own sections of an index: at most 4; how many. */
unsigned zip_sections(const struct zip *z, uint32_t first,
		      struct index_section *out);
/* From these.  Every number is checked.  -EBADMSG. */
int zip_of_index(struct zip **out, const struct backing *stored,
		 const struct index *x, uint32_t first, struct error *err);
/* Its space, as what ranges are in. */
struct volume zip_volume(struct zip *z);

/* Places, as formats/archive/places.h has them: windows, stored members, bad ones. */
uint64_t zip_places(const struct zip *z);
uint64_t zip_place_size(const struct zip *z, uint64_t place);
uint64_t zip_place_stored(const struct zip *z, uint64_t place);
/* Read, or decode, and compare with the CRC-32. */
int zip_place_check(const struct zip *z, uint64_t place, struct error *err);
void zip_place_describe(const struct zip *z, uint64_t place, char *buf,
			size_t n);
/* The places of bytes [off, off + len) of the space, of one member; false: none. */
bool zip_place_range(const struct zip *z, uint64_t off, uint64_t len,
		     uint64_t *first, uint64_t *last);
/* "stored", "deflate", or why it cannot be read; where its bytes begin in the
 * archive. */
const char *zip_kept_as(const struct zip *z, uint64_t off, uint64_t *at);
/* The CRC-32 of the stored member whose bytes begin at `off` of the space; false: there
 * is none. */
bool zip_stored_crc(const struct zip *z, uint64_t off, uint32_t *crc);

#endif
