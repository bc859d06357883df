/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations shared by the files of the tar reader; other folders must not
 * include them. */
#ifndef FORMATS_TAR_PRIVATE_H
#define FORMATS_TAR_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/vec.h"
#include "members/members.h"

enum { TAR_BLOCK = 512 };

/* A growing buffer of bytes that is used again and again.  A NUL follows its bytes. */
struct tar_text {
	char *at; /* NULL: never used */
	size_t n, room;
};
/* Append n bytes.  Return false if there is no memory. */
bool tar_text_add(struct tar_text *t, const void *data, size_t n);
/* Return a pointer to room for n bytes behind those that are there, or NULL if
 * there is no memory. */
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

/* A header block as it is stored (POSIX.1 pax, "ustar Interchange Format").  A
 * field ends at a NUL or where the next one begins. */
struct tar_header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8];
	char type, link[100], magic[8], uname[32], gname[32];
	char major[8], minor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct tar_header) == TAR_BLOCK, "one block");

enum tar_dialect {
	TAR_V7,    /* no magic: no prefix, no devices */
	TAR_USTAR, /* ustar, pax, star */
	TAR_GNU,   /* has times and a sparse map in the place of the prefix */
};
/* Return the dialect by the magic of the header. */
enum tar_dialect tar_dialect(const struct tar_header *h);
/* Return true if a block is all zeros. */
bool tar_is_zero(const void *block);
/* Return true if the checksum is right, as the sum of unsigned or of signed bytes:
 * old writers summed signed ones. */
bool tar_is_header(const struct tar_header *h);
/*
 * Parse the number in a field: octal, or binary if the first bit is set.  A blank
 * field is 0.  Return 0, -EINVAL if something else is there (*out is what could be
 * read of it), or -ERANGE if the number has more than 63 bits (*out is the end of
 * the range).
 */
int tar_number(const char *field, size_t n, int64_t *out);
/* Return the number of bytes in front of the field's NUL, or n. */
size_t tar_length(const char *field, size_t n);
/* Make a name fit for a sentence: its last bytes, with control characters replaced
 * by question marks.  Return `buf`. */
#define TAR_SHOWN 200
const char *tar_shown(const char *name, char buf[TAR_SHOWN]);

/* ---- sparse maps (formats/tar/sparse.c) ------------------------------------------ */

/* The stored runs of a sparse file, in the order of its map. */
struct tar_sparse {
	vec(struct member_extent) run; /* run.at[0] will hold the count */
	bool bad;                      /* the map contradicts itself */
};
void tar_sparse_clear(struct tar_sparse *m);
/* Add a run.  Return 0, -ENOMEM, or -EBADMSG if there are too many runs or a number
 * is negative, which also sets m->bad. */
int tar_sparse_add(struct tar_sparse *m, int64_t off, int64_t len);
/* Add the runs of a header of type 'S', and set *size to the size of the file in
 * bytes and *more if a block with more runs follows.  Return 0 or -ENOMEM. */
int tar_sparse_header(struct tar_sparse *m, const struct tar_header *h,
		      int64_t *size, bool *more);
/* Add the runs of such a block.  Return 0 or -ENOMEM. */
int tar_sparse_more(struct tar_sparse *m, const void *block, bool *more);
/* Add the runs in the value of GNU.sparse.map, such as "0,512,4096,10".  Return 0
 * or -ENOMEM. */
int tar_sparse_list(struct tar_sparse *m, const char *text, size_t n);
/* The state of parsing a map that precedes the data (sparse format 1.0): lines of
 * numbers, of which the first says how many pairs follow. */
struct tar_sparse_lines {
	uint64_t left, value, off;
	bool counted, half, digits, comment;
};
/* Parse n more bytes of the map.  Return 1 if it is complete, 0 if more must
 * follow, -EBADMSG or -ENOMEM. */
int tar_sparse_text(struct tar_sparse *m, struct tar_sparse_lines *l,
		    const char *text, size_t n);
/*
 * Give the runs their positions in the `stored` bytes from `pos` on, in the order
 * of the map; then sort, join and count them.  Return 0, -ENOMEM, or -EBADMSG if
 * runs overlap, or reach beyond the end of the file or of the stored bytes.
 */
int tar_sparse_place(struct tar_sparse *m, uint64_t size, uint64_t pos,
		     uint64_t stored);
/* Return true if one run is the whole file. */
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
	PAX_MAP = 1024,     /* its map is in this header */
	PAX_NAME = 2048,    /* its name, used instead of `path` */
};
/* Offsets in tar_pax.bytes, and the size of the value in bytes. */
struct tar_xattr {
	size_t name, value, size;
};
/* What the records of one or more extended headers say. */
struct tar_pax {
	unsigned set, dropped; /* PAX_*; dropped: the value was empty */
	struct tar_text path, link, name;
	int64_t size, real, uid, gid, mtime, major, minor;
	uint32_t nsec;
	struct tar_sparse sparse;
	bool has_off; /* GNU.sparse.offset was read, its numbytes must follow */
	int64_t off;
	vec(struct tar_xattr) xattr;
	struct tar_text bytes;
};
/* Forget everything but keep the memory. */
void tar_pax_clear(struct tar_pax *p);
void tar_pax_free(struct tar_pax *p);
/* Apply the n bytes of records, which are changed by it.  A malformed record is
 * noted and ends it.  Return 0 or -ENOMEM. */
int tar_pax_records(struct tar_pax *p, char *data, size_t n,
		    struct members_builder *b);
/* Store the extended attribute of a record with this key (xattr.c).  Return 1, 0 if
 * the key is not that of an attribute, or -ENOMEM. */
int tar_xattr_record(struct tar_pax *p, const char *key, const char *value,
		     size_t n, struct members_builder *b);
/* All extended attributes in the form that a member has them. */
struct tar_xattrs {
	vec(struct member_xattr) at;
};
int tar_xattr_list(struct tar_xattrs *out, const struct tar_pax *p);

/* ---- members (formats/tar/member.c) ---------------------------------------------- */

/* What headers in front of the next member's header say about it. */
struct tar_context {
	struct tar_pax local, global;
	struct tar_text long_name, long_link;
	bool has_name, has_link;
	/* Buffers that each member uses anew. */
	struct tar_text path, link;
	struct tar_sparse sparse;
	struct tar_xattrs xattrs;
};
void tar_context_clear(struct tar_context *c);
void tar_context_free(struct tar_context *c);

enum tar_body {
	TAR_BODY_NONE,    /* no data follow, whatever the size says */
	TAR_BODY_DATA,    /* data of a file follow */
	TAR_BODY_OTHER,   /* data follow that are passed over */
	TAR_BODY_PERHAPS, /* a hard link or a V7 directory: data may follow */
};
/* A header, together with what preceded it. */
struct tar_entry {
	struct member m;
	char type;
	enum tar_body body;
	uint64_t stored; /* bytes behind the header (and its sparse map) */
	uint64_t real;   /* size of a sparse file in bytes */
	bool sparse, lines;
	/* It cannot be shown, which is noted: only the end of its bytes matters. */
	bool left_out;
};
/* Make *e of a header and the context.  Return 0, -ENOMEM, or -EBADMSG if the size
 * makes no sense (noted), so that the position of the next header is not known. */
int tar_entry(struct tar_entry *e, struct tar_context *c,
	      const struct tar_header *h, struct members_builder *b);
/* Add the member to the table, unless it is left out; its bytes begin at `pos`.
 * Return 0 or -ENOMEM.  A member that the table refuses is noted. */
int tar_entry_add(struct tar_entry *e, struct tar_context *c, uint64_t pos,
		  struct members_builder *b, struct error *err);

#endif
