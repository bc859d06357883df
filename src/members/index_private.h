/* SPDX-License-Identifier: BSD-2-Clause */
/* The header of an index file; for index*.c, and for tests that damage one. */
#ifndef MEMBERS_INDEX_PRIVATE_H
#define MEMBERS_INDEX_PRIVATE_H

#include <sys/stat.h>

#include "members/index.h"

/*
 * The file has numbers as they are in memory: an index of the other byte order is
 * foreign.  `magic`, `endian` and `layout` stay where they are in every layout; all
 * else may change with INDEX_LAYOUT.
 */
#define INDEX_MAGIC "tfsidx\r\n"
#define INDEX_ENDIAN UINT32_C(0x01020304)
#define INDEX_LAYOUT 1
#define INDEX_ALIGN 64

/* A section.  Those that are always read come first, then those that may stay in the
 * file, from the smallest to the largest. */
struct index_entry {
	uint32_t id;
	uint32_t flags; /* INDEX_LAZY */
	/* In the file; the first multiple of INDEX_ALIGN after the end of what
	 * precedes it. */
	uint64_t off;
	uint64_t size;
	uint64_t sum; /* XXH3-64 */
};
#define INDEX_LAZY 1u

struct index_head {
	char magic[8];
	uint32_t endian, layout;
	uint64_t size;  /* of the index file */
	char maker[32]; /* padded with zeros */
	uint64_t options;
	/* Where the source is in its file: offset and size, in bytes. */
	uint64_t pos, part;
	uint64_t file_size; /* bytes of the source's file */
	int64_t mtime;
	uint32_t nsec;
	uint32_t n; /* sections */
	unsigned char sample[16];
	uint64_t sum; /* XXH3-64 of the header with 0 in this field */
	struct index_entry table[INDEX_SECTIONS_MAX];
};
_Static_assert(sizeof(struct index_head) == 640, "as docs/formats.md says");

uint64_t index_head_sum(const struct index_head *head);

/* ---- index_source.c: what an index belongs to ------------------------------- */

/* Return whether this source has index files. */
bool index_wanted(const struct index_key *key, const struct index_options *o);
/* Return whether the index file with this stat(2) belongs to this user, to root or
 * to the owner of the source.  In a directory that all users can write, any other
 * user may have made an index that lies. */
bool index_is_ours(const struct index_key *key, const struct stat *of);
/* Compute the XXH3-128 (canonical) of pieces of the stored bytes: 64 KiB at either
 * end and ten pages between, or all bytes of a small source.  It takes a dozen
 * reads.  Return 0, -ESTALE if the source has changed since it was first read, or
 * -errno.  Blocks. */
int index_sample(const struct backing *b, unsigned char sample[16],
		 struct error *err);
/* Fill in the fields of `head` that come from the key, except the sample. */
int index_identify(const struct index_key *key, struct index_head *head,
		   struct error *err);
/* Return 0 if the index belongs to the source, -ESTALE or -EINVAL if not, with a
 * sentence that does not name the index. */
int index_compare(const struct index_key *key, const struct index_head *head,
		  struct error *err);
/* Return the permissions for the index that is open as `fd`, so that users who may
 * not read the source cannot read its names in the index either.  Changes the group
 * of `fd` if this process may do so. */
mode_t index_mode(const struct backing *b, int fd);

/* ---- index_source.c: where index files are --------------------------------- */

struct index_place {
	char *dir, *name;
	bool cache; /* create the directory if it is missing */
	bool asked; /* named by the user, who may have meant another file */
};
struct index_places {
	struct index_place at[2];
	unsigned n;
};
/* Find the places to look for the index, best first: one or two.  Return 0, -ENOMEM,
 * or -ENOENT if there is no place. */
int index_places(const struct index_key *key, const struct index_options *o,
		 struct index_places *out, struct error *err);
void index_places_free(struct index_places *p);
/* Return a descriptor of the place's directory for openat(2), or -errno. */
int index_place_open(const struct index_place *p, struct error *err);

#endif
