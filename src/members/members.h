/* SPDX-License-Identifier: BSD-2-Clause */
/* The member table of an archive: 40 bytes for each member, and its name. */
#ifndef MEMBERS_MEMBERS_H
#define MEMBERS_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/error.h"
#include "members/index.h"

/*
 * Records are in breadth-first order of directories; those of one directory are
 * adjacent, sorted by name (as bytes).  So a directory is a slice, lookup is a binary
 * search, and a record's number is its inode number.  Record 0 is the root.  There are
 * no pointers: the table in an index file is the table in memory.
 *
 * A further name of an inode (a hard link) is a record of kind MEMBER_LINK that refers
 * to the inode's record.
 *
 * Owner, number of names and other fields that nearly all members share are in a table
 * of their own, `common`, once for each combination.
 */
enum member_kind {
	MEMBER_NONE,     /* no content: a device, a FIFO, an empty file */
	MEMBER_DIR,      /* data: number of the first child; size: how many */
	MEMBER_SYMLINK,  /* data: offset of the target in `names` */
	MEMBER_LINK,     /* data: the record that has this inode */
	MEMBER_RANGE,    /* data: offset of its bytes in the backing */
	MEMBER_SPARSE,   /* data: first of its entries in `extents` */
	MEMBER_BLOCKS,   /* data: first of its entries in `blocks` */
	MEMBER_FRAGMENT, /* data: MEMBER_IN_BLOCK(block, offset) */
	/* Data: MEMBER_IN_FILE of the file; only in tables that are not saved. */
	MEMBER_FILE,
	MEMBER_KINDS
};
struct member_record {
	uint64_t size; /* in bytes; of MEMBER_DIR: number of entries */
	uint64_t data;
	/* Seconds since member_common.since << 30 | nanoseconds. */
	uint64_t when;
	uint32_t parent;
	uint32_t common; /* number in `common` */
	/* Offset in `names`, low 32 bits; the name ends with NUL. */
	uint32_t name;
	uint8_t name_high; /* the upper 8 bits of that offset */
	uint8_t kind;
	uint16_t mode; /* as st_mode; a link has that of its inode */
};
_Static_assert(sizeof(struct member_record) == 40, "40 bytes a member");
#define MEMBER_NAMES_MAX (UINT64_C(1) << 40) /* bytes of `names` */

/* What many members have in common. */
struct member_common {
	int64_t since; /* seconds; a multiple of 2^34, so mostly 0 */
	uint32_t uid, gid;
	uint32_t nlink;
	uint32_t xattrs;    /* offset in `xattrs` / 4, plus 1; 0: none */
	uint16_t volume;    /* number of the source in a union, else 0 */
	uint16_t unused[3]; /* 0 */
};
_Static_assert(sizeof(struct member_common) == 32, "no padding");

/* The field `data` of a device is its number as in makedev(3). */

/*
 * The map of a sparse member: its first entry is {number of the other entries, 0, sum
 * of their bytes (filled in by members_finish)}; the others are runs of stored bytes in
 * order of `off`, not overlapping, within the member's size.  Bytes outside of the runs
 * are zeros.
 */
struct member_extent {
	uint64_t off; /* in the member */
	uint64_t len; /* > 0 */
	uint64_t pos; /* in the backing */
};
/*
 * A block that is stored by itself, compressed or not (data blocks and fragment blocks
 * of a squashfs).  A MEMBER_BLOCKS member has one entry for each full block, and one
 * more for the rest: a block of its own, or, with MEMBER_TAIL in `flags`, a piece of a
 * fragment block, whose place `pos` holds as a MEMBER_IN_BLOCK.
 */
struct member_block {
	uint64_t pos;    /* in the backing */
	uint32_t stored; /* in bytes; 0: the block is a hole, zeros */
	uint32_t size;   /* decoded bytes */
	uint32_t flags;
	/* In the first entry of a member: how many of its entries are holes. */
	uint32_t holes;
};
#define MEMBER_STORED 1u /* the block is not compressed */
#define MEMBER_TAIL 2u   /* not a block but a piece of one, see above */
/* The block has fragments of several members.  `size` is the end of the last known
 * member in it; it may decode to more bytes, up to block_size. */
#define MEMBER_SHARED 4u
#define MEMBER_LAST 8u /* the entry is the last one of its member */
static inline bool member_block_is_hole(const struct member_block *b)
{
	return !b->stored && !(b->flags & MEMBER_TAIL);
}
/* Blocks are at most 1 MiB. */
#define MEMBER_IN_BLOCK(block, off) ((uint64_t)(block) << 20 | (off))

/* A file by its number in `struct handles`, and the size of its holes in units of 4
 * KiB. */
#define MEMBER_IN_FILE(file, hole) ((uint64_t)(hole) << 32 | (file))

/* A set of extended attributes, 4-byte aligned: a u32 count; for each attribute a
 * u32 name length, a u32 value length, the name, the value, and padding to 4 bytes. */

/* A finished table.  Its arrays are in memory of its own (`own`), or in an index
 * (`index`). */
struct members {
	const struct member_record *at;
	uint64_t n; /* > 0: there is a root */
	const struct member_common *common;
	uint64_t n_common;
	const char *names;
	uint64_t names_size;
	const struct member_extent *extents;
	uint64_t n_extents;
	const struct member_block *blocks;
	uint64_t n_blocks;
	uint32_t block_size; /* decoded bytes of a full block; 0: no blocks */
	const unsigned char *xattrs;
	uint64_t xattrs_size;
	/* Sentences about irregularities in the source, one on each line. */
	const char *notes;
	uint64_t notes_size;
	/* Bytes of the notes about damage, which come first. */
	uint64_t damage_size;
	/* Members of the archive that are not in the table. */
	uint32_t left_out;
	uint64_t backing_size; /* ranges are checked when they are read */
	/* Sum of the sizes of regular files, each inode once. */
	uint64_t bytes;
	uint64_t counts[5]; /* files, directories, symlinks, links, others */
	void *own[7];       /* memory to free, or NULL */
	/* The index that holds the table, owned; or NULL. */
	struct index *index;
};
static inline uint64_t member_name_at(const struct member_record *r)
{
	return (uint64_t)r->name_high << 32 | r->name;
}
static inline const char *member_name(const struct members *m,
				      const struct member_record *r)
{
	return m->names + member_name_at(r);
}
static inline const struct member_common *
member_common(const struct members *m, const struct member_record *r)
{
	return &m->common[r->common];
}
/* Return the time of last modification: seconds here, nanoseconds (< 10^9) below. */
static inline int64_t member_mtime(const struct members *m,
				   const struct member_record *r)
{
	return member_common(m, r)->since + (int64_t)(r->when >> 30);
}
static inline uint32_t member_nsec(const struct member_record *r)
{
	return (uint32_t)(r->when & ((1u << 30) - 1));
}
/* Numbers of sections in an index: the table uses those from MEMBERS_SECTION on, a
 * format's own begin at MEMBERS_SECTION_OWN. */
enum {
	MEMBERS_SECTION = 1, /* to 8 */
	MEMBERS_SECTION_OWN = 64
};
/* Fill in the table's sections for index_save, at most MEMBERS_SECTIONS.  Return
 * their number.  They are valid until this thread's next call. */
enum { MEMBERS_SECTIONS = 8 };
unsigned members_sections(const struct members *m, struct index_section *out);
/* As members_of_index, from sections in memory.  `own` is their memory, malloc'ed,
 * which the table frees once this has succeeded; NULL: they are borrowed. */
int members_of_sections(struct members *m, const struct index_section *s,
			unsigned n, void *own, struct error *err);
/* Make a table from an index, which the table then owns.  Every number is checked,
 * so that none can lead outside of the table, or in a cycle.  Return 0, or -EBADMSG;
 * the index then stays the caller's. */
int members_of_index(struct members *m, struct index *x, struct error *err);
void members_free(struct members *m);
/* Find entry `name` of directory record `dir`.  Return 0 or -ENOENT. */
int members_find(const struct members *m, uint64_t dir, const char *name,
		 uint64_t *record);
/* Write the path of a record from the root, "/a/b/c", to `buf` of n bytes, for error
 * sentences.  A path that is too long loses its beginning. */
void members_path(const struct members *m, uint64_t record, char *buf,
		  size_t n);

/* Iterate over the extended attributes of a record, which may be NULL. */
struct member_xattr_at {
	const unsigned char *at; /* the next attribute */
	uint32_t left;           /* attributes that are left */
	uint32_t name_len, size;
	const char *name; /* not NUL-terminated */
	const unsigned char *value;
};
void member_xattr_first(const struct members *m, const struct member_record *r,
			struct member_xattr_at *x);
/* Set `x` to the next attribute, or return false at the end. */
bool member_xattr_next(struct member_xattr_at *x);

/* ---- building ------------------------------------------------------------ */

struct member_xattr {
	const char *name; /* NUL-terminated, with its prefix: "user.x" */
	const void *value;
	size_t size;
};
/* A member as a format finds it.  All strings and values are copied. */
struct member {
	/* as stored: any bytes but NUL. members_add makes it safe */
	const char *path;
	uint32_t mode; /* type and permissions */
	uint32_t uid, gid;
	int64_t mtime;
	uint32_t nsec;
	uint64_t size; /* of a regular file, in bytes */
	enum member_kind
		kind; /* of a regular file: RANGE, SPARSE, BLOCKS, FRAGMENT */
	/* As in the record; of a device, its number as in makedev(3). */
	uint64_t data;
	/* MEMBER_SYMLINK: target; MEMBER_LINK: stored path of the member of which it
	 * is another name. */
	const char *link;
	/* MEMBER_LINK with `link` NULL: the inode's number, as members_add returned
	 * it. */
	uint64_t same_as;
	const struct member_xattr *xattrs;
	size_t n_xattrs;
	uint16_t volume;
};
struct members_builder;
struct members_options {
	/* Show a member that a later one replaces as NAME.versions/1. */
	bool versions;
};
int members_builder_new(struct members_builder **out,
			const struct members_options *o, struct error *err);
void members_builder_free(struct members_builder *b);
/*
 * Add a member, as `tar x` in an empty directory would: missing directories are
 * created, and a member of the same name is replaced (an existing directory gets the
 * new attributes and keeps its entries; a directory that is not empty is not replaced
 * by a file).  Leading slashes and "." of a path are dropped, a path with ".." is
 * refused; both are noted.  Return the inode's number (for same_as), -ENOENT for a hard
 * link to nothing (noted, not added), -EINVAL if the member is refused (noted), or
 * -ENOMEM.
 */
int64_t members_add(struct members_builder *b, const struct member *m,
		    struct error *err);
/* Append n entries to `extents` or `blocks`.  Return the number of the first, or
 * -ENOMEM. */
int64_t members_add_extents(struct members_builder *b,
			    const struct member_extent *x, size_t n);
int64_t members_add_blocks(struct members_builder *b,
			   const struct member_block *x, size_t n);
/* Return block `i`, so that the caller can change it before members_finish (the
 * known size of a fragment block grows), or NULL if there is none.  Valid until
 * blocks are added. */
struct member_block *members_block(struct members_builder *b, uint64_t i);
void members_block_size(struct members_builder *b, uint32_t size);
/* Note an irregularity for the user: a sentence without a newline.  Notes of one
 * kind are counted, and the first few are stored whole.  `kind` must outlive the
 * builder. */
void members_note(struct members_builder *b, const char *kind, const char *fmt,
		  ...) __attribute__((format(printf, 3, 4)));
/* Note a member that is left out of the table; verify counts it as not checked. */
void members_left_out(struct members_builder *b, const char *kind,
		      const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* As members_note, for damage of the source. */
void members_damage(struct members_builder *b, const char *kind,
		    const char *fmt, ...) __attribute__((format(printf, 3, 4)));
uint64_t members_count(const struct members_builder *b);
/* Finish the table: sort, number and pack its entries.  `b` is freed, also on
 * failure.  Return 0, -ENOMEM or -EBADMSG. */
int members_finish(struct members_builder *b, struct members *out,
		   struct error *err);

#endif
