/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the tar reader share; nobody else includes it. */
#ifndef FORMATS_TAR_PRIVATE_H
#define FORMATS_TAR_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/vec.h"
#include "members/members.h"

enum { TAR_BLOCK = 512 };

/* Bytes that grow and are used again; there is always a NUL behind them. */
struct tar_text {
	char *at; /* NULL: never used */
	size_t n, room;
};
/* Append; false when memory is out. */
bool tar_text_add(struct tar_text *t, const void *data, size_t n);
/* Room for n bytes behind what is there; NULL when memory is out. */
char *tar_text_room(struct tar_text *t, size_t n);
/* Keep the first n bytes. */
static inline void tar_text_cut(struct tar_text *t, size_t n)
{
	t->n = n;
	if (t->at)
		t->at[n] = '\0';
}
static inline void tar_text_clear(struct tar_text *t)
{
	tar_text_cut(t, 0);
}

/* ---- headers (formats/tar/header.c) ---------------------------------------------- */

/* A header as it is stored.  Fields end at a NUL or are full. */
struct tar_header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8];
	char type, link[100], magic[8], uname[32], gname[32];
	char major[8], minor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct tar_header) == TAR_BLOCK, "one block");

enum tar_dialect {
	TAR_V7,    /* no magic: no prefix, no devices */
	TAR_USTAR, /* ustar, pax, star */
	TAR_GNU,   /* the prefix's place has times, a sparse map */
};
enum tar_dialect tar_dialect(const struct tar_header *h);
bool tar_is_zero(const void *block);
/* Does the sum fit, of unsigned bytes or of signed ones? */
bool tar_is_header(const struct tar_header *h);
/*
 * The number in a field: octal, or binary with the first bit set.  Blank is 0.
 * -EINVAL: something else is there (*out is what could be read of it), -ERANGE:
 * beyond 63 bits (*out is the end of the range).
 */
int tar_number(const char *field, size_t n, int64_t *out);
/* How many bytes of a field mean something. */
size_t tar_length(const char *field, size_t n);
/* A name for a sentence: its end, control characters replaced. */
#define TAR_SHOWN 200
const char *tar_shown(const char *name, char buf[TAR_SHOWN]);

/* ---- sparse maps (formats/tar/sparse.c) ------------------------------------------ */

/* Stored runs of a sparse file, as the map lists them. */
struct tar_sparse {
	vec(struct member_extent) run; /* run.at[0] is for the count */
	bool bad;                      /* the map contradicts itself */
};
void tar_sparse_clear(struct tar_sparse *m);
/* -ENOMEM; -EBADMSG (too many, negative) is also noted in `bad`. */
int tar_sparse_add(struct tar_sparse *m, int64_t off, int64_t len);
/* What a header of type 'S' has: the runs, the file's size, and whether a block
 * with more of them follows.  -ENOMEM. */
int tar_sparse_header(struct tar_sparse *m, const struct tar_header *h,
		      int64_t *size, bool *more);
/* What such a block has. */
int tar_sparse_more(struct tar_sparse *m, const void *block, bool *more);
/* "0,512,4096,10": the value of GNU.sparse.map.  -ENOMEM. */
int tar_sparse_list(struct tar_sparse *m, const char *text, size_t n);
/* The map that precedes the data: lines of numbers, the first says how many
 * pairs follow. */
struct tar_sparse_lines {
	uint64_t left, value, off;
	bool counted, half, digits, comment;
};
/* More of it: 1: it is complete, 0: it goes on, -EBADMSG, -ENOMEM. */
int tar_sparse_text(struct tar_sparse *m, struct tar_sparse_lines *l,
		    const char *text, size_t n);
/*
 * Give the runs their places in `stored` bytes from `pos` on, in order of the map;
 * then sort, join and count them.  -EBADMSG when they overlap, or reach behind
 * the file's end or that of the bytes.
 */
int tar_sparse_place(struct tar_sparse *m, uint64_t size, uint64_t pos,
		     uint64_t stored);
/* The bytes are one run that is the whole file. */
bool tar_sparse_dense(const struct tar_sparse *m, uint64_t size);

/* ---- extended headers (formats/tar/pax.c) ---------------------------------------- */

enum {
	PAX_PATH = 1,
	PAX_LINK = 2,
	PAX_SIZE = 4,
	PAX_UID = 8,
	PAX_GID = 16,
	PAX_MTIME = 32,
	PAX_MAJOR = 64,
	PAX_MINOR = 128,
	PAX_REAL = 256,     /* size of a sparse file */
	PAX_SPARSE_1 = 512, /* its map precedes the data */
	PAX_MAP = 1024,     /* its map is here */
	PAX_NAME = 2048,    /* its name: goes before `path` */
};
/* Offsets in `bytes`. */
struct tar_xattr {
	size_t name, value, size;
};
/* What records of one or more extended headers say. */
struct tar_pax {
	unsigned set, dropped; /* PAX_*; dropped: an empty value */
	struct tar_text path, link, name;
	int64_t size, real, uid, gid, mtime, major, minor;
	uint32_t nsec;
	struct tar_sparse sparse;
	bool has_off; /* GNU.sparse.offset, its numbytes is to come */
	int64_t off;
	vec(struct tar_xattr) xattr;
	struct tar_text bytes;
};
/* Forget everything, keep the memory. */
void tar_pax_clear(struct tar_pax *p);
void tar_pax_free(struct tar_pax *p);
/* Take the records in, which are taken apart for it.  What is malformed is noted, and
 * ends it.  -ENOMEM. */
int tar_pax_records(struct tar_pax *p, char *data, size_t n,
		    struct members_builder *b);
/* The attribute of a record with this key, if it is one (formats/tar/xattr.c).  1, 0,
 * -ENOMEM. */
int tar_xattr_record(struct tar_pax *p, const char *key, const char *value,
		     size_t n, struct members_builder *b);
/* All attributes, as a member has them. */
struct tar_xattrs {
	vec(struct member_xattr) at;
};
int tar_xattr_list(struct tar_xattrs *out, const struct tar_pax *p);

/* ---- members (formats/tar/member.c) ---------------------------------------------- */

/* What is known of the next member before its header comes. */
struct tar_context {
	struct tar_pax local, global;
	struct tar_text long_name, long_link;
	bool has_name, has_link;
	/* Used for one member after the other. */
	struct tar_text path, link;
	struct tar_sparse sparse;
	struct tar_xattrs xattrs;
};
void tar_context_clear(struct tar_context *c);
void tar_context_free(struct tar_context *c);

enum tar_body {
	TAR_BODY_NONE,    /* whatever the size says */
	TAR_BODY_DATA,    /* of a file */
	TAR_BODY_OTHER,   /* passed over */
	TAR_BODY_PERHAPS, /* a hard link's, a V7 directory's */
};
/* A header together with what preceded it. */
struct tar_entry {
	struct member m;
	char type;
	enum tar_body body;
	uint64_t stored; /* bytes behind the header (and its sparse map) */
	uint64_t real;   /* bytes of a sparse file */
	bool sparse, lines;
	/* It cannot be shown (noted): only where its bytes end is of interest. */
	bool left_out;
};
/* -EBADMSG: the size makes no sense (noted), so nothing says where the next header
 * is; -ENOMEM. */
int tar_entry(struct tar_entry *e, struct tar_context *c,
	      const struct tar_header *h, struct members_builder *b);
/* Add it, unless it is left out; its bytes begin at `pos`.  0 or -ENOMEM: what is
 * refused is noted. */
int tar_entry_add(struct tar_entry *e, struct tar_context *c, uint64_t pos,
		  struct members_builder *b, struct error *err);

#endif
