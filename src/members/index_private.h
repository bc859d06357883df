/* SPDX-License-Identifier: BSD-2-Clause */
/* What an index file begins with; for index*.c, and for tests that damage one. */
#ifndef MEMBERS_INDEX_PRIVATE_H
#define MEMBERS_INDEX_PRIVATE_H

#include <sys/stat.h>

#include "members/index.h"

/*
 * The file as the machine has it in memory: an index of the other byte order is
 * foreign.  `magic`, `endian` and `layout` stay where they are in every layout; all
 * else is what INDEX_LAYOUT says.
 */
#define INDEX_MAGIC "tfsidx\r\n"
#define INDEX_ENDIAN UINT32_C(0x01020304)
#define INDEX_LAYOUT 1
#define INDEX_ALIGN 64

/* Sections in order: those that are always read, then those that may stay in the
 * file, from the smallest to the largest. */
struct index_entry {
	uint32_t id;
	uint32_t flags; /* INDEX_LAZY */
	uint64_t off;   /* in the file; the first multiple of INDEX_ALIGN behind
			   what comes before */
	uint64_t size;
	uint64_t sum; /* XXH3-64 */
};
#define INDEX_LAZY 1u

struct index_head {
	char magic[8];
	uint32_t endian, layout;
	uint64_t size;  /* of the index file */
	char maker[32]; /* zeros behind it */
	uint64_t options;
	uint64_t pos, part; /* the backing, in the source's file */
	uint64_t file_size; /* of the source's file */
	int64_t mtime;
	uint32_t nsec;
	uint32_t n; /* sections */
	unsigned char sample[16];
	uint64_t sum; /* XXH3-64 of the head, with 0 here */
	struct index_entry table[INDEX_SECTIONS_MAX];
};
_Static_assert(sizeof(struct index_head) == 640, "as docs/formats.md says");

uint64_t index_head_sum(const struct index_head *head);

/* ---- index_source.c: what an index belongs to ------------------------------- */

/* Are there index files for this source? */
bool index_wanted(const struct index_key *key, const struct index_options *o);
/* Whose is this index?  Ours, root's, or of the owner of the source: anybody else
 * (in a directory that is open to all) may have made one that lies. */
bool index_is_ours(const struct index_key *key, const struct stat *of);
/* XXH3-128 (canonical) of pieces of the stored bytes: 64 KiB at either end and ten
 * pages between, or all there is.  A dozen reads; the source is what it was when
 * it was first read, or this is -ESTALE. */
int index_sample(const struct backing *b, unsigned char sample[16],
		 struct error *err);
/* Fill in what comes from the key, but for the sample. */
int index_identify(const struct index_key *key, struct index_head *head,
		   struct error *err);
/* -ESTALE or -EINVAL, with a sentence that does not name the index. */
int index_compare(const struct index_key *key, const struct index_head *head,
		  struct error *err);
/* Permissions for the index open as `fd`: who may not read the source does not
 * learn the names in it either.  Changes the group of `fd` where it may. */
mode_t index_mode(const struct backing *b, int fd);

/* ---- index_source.c: where index files are --------------------------------- */

struct index_place {
	char *dir, *name;
	bool cache; /* make the directory, when there is none */
	bool asked; /* by a person, who may have meant another file */
};
struct index_places {
	struct index_place at[2];
	unsigned n;
};
/* The places in order, at least one; -ENOMEM, or -ENOENT: there is nowhere. */
int index_places(const struct index_key *key, const struct index_options *o,
		 struct index_places *out, struct error *err);
void index_places_free(struct index_places *p);
/* The directory of a place, for openat; -errno. */
int index_place_open(const struct index_place *p, struct error *err);

#endif
