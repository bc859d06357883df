/* SPDX-License-Identifier: BSD-2-Clause */
/* The member table of an archive: what is in it, 40 bytes a member and its name. */
#ifndef MEMBERS_MEMBERS_H
#define MEMBERS_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/error.h"
#include "members/index.h"

/*
 * Records stand in breadth-first order of directories, those of one directory side
 * by side in order of names (bytes): so a directory is a slice, lookup a binary
 * search, and a record's number is its inode number.  Record 0 is the root.  There
 * are no pointers: the table is written to an index, and used, as it is.
 *
 * A second name of an inode (a hard link) is a record of kind MEMBER_LINK that
 * says which record the inode is.
 *
 * Owner, number of names and what else is the same for nearly all of them is in a
 * table of its own, once for each set of it.
 */
enum member_kind {
	MEMBER_NONE,     /* no content: a device, a FIFO, an empty file */
	MEMBER_DIR,      /* data: number of the first child; size: how many */
	MEMBER_SYMLINK,  /* data: offset of the target in `names` */
	MEMBER_LINK,     /* data: the record that has this inode */
	MEMBER_RANGE,    /* data: where in the backing its bytes begin */
	MEMBER_SPARSE,   /* data: first of its entries in `extents` */
	MEMBER_BLOCKS,   /* data: first of its entries in `blocks` */
	MEMBER_FRAGMENT, /* data: MEMBER_IN_BLOCK(block, offset) */
	MEMBER_FILE,     /* data: MEMBER_IN_FILE of a file that it is; only in
			    tables that are not saved */
	MEMBER_KINDS
};
struct member_record {
	uint64_t size; /* bytes; MEMBER_DIR: entries */
	uint64_t data;
	uint64_t when; /* seconds since that of `common` << 30 | nanoseconds */
	uint32_t parent;
	uint32_t common;   /* number in `common` */
	uint32_t name;     /* offset in `names`, ends with NUL */
	uint8_t name_high; /* << 32 */
	uint8_t kind;
	uint16_t mode; /* as st_mode; of a link: its inode's */
};
_Static_assert(sizeof(struct member_record) == 40, "40 bytes a member");
#define MEMBER_NAMES_MAX (UINT64_C(1) << 40) /* bytes of `names` */

/* What members have in common. */
struct member_common {
	int64_t since; /* seconds; a multiple of 2^34, so mostly 0 */
	uint32_t uid, gid;
	uint32_t nlink;
	uint32_t xattrs;    /* offset in `xattrs` / 4, plus 1; 0: none */
	uint16_t volume;    /* which of the sources (union); else 0 */
	uint16_t unused[3]; /* 0 */
};
_Static_assert(sizeof(struct member_common) == 32, "no padding");

/* Devices: data is makedev(3)'s number. */

/*
 * A sparse member: the first entry is {count of the others, 0, bytes in them (filled
 * in by members_finish)}, then runs of
 * stored bytes in order of `off`, not overlapping, within the size.  What is in no
 * run is zeros.
 */
struct member_extent {
	uint64_t off; /* in the member */
	uint64_t len; /* > 0 */
	uint64_t pos; /* in the backing */
};
/*
 * A block that is stored by itself, compressed or not (squashfs: data blocks and
 * fragment blocks).  A MEMBER_BLOCKS member has one entry for each full block, and
 * for the rest one more: a block of its own, or, with MEMBER_TAIL in `flags`, a
 * piece of a fragment block, `pos` being MEMBER_IN_BLOCK of that.
 */
struct member_block {
	uint64_t pos;    /* in the backing */
	uint32_t stored; /* bytes; 0: a hole, zeros */
	uint32_t size;   /* decoded bytes */
	uint32_t flags;
	/* In the first entry of a member: the number of its entries that are holes. */
	uint32_t holes;
};
#define MEMBER_STORED 1u /* block: not compressed */
#define MEMBER_TAIL 2u   /* block: no block, see above */
/* Block: of fragments.  `size` is how far members go in it; it may decode to more,
 * up to block_size. */
#define MEMBER_SHARED 4u
#define MEMBER_LAST 8u /* block: the last entry of its member */
static inline bool member_block_is_hole(const struct member_block *b)
{
	return !b->stored && !(b->flags & MEMBER_TAIL);
}
/* Blocks are at most 1 MiB. */
#define MEMBER_IN_BLOCK(block, off) ((uint64_t)(block) << 20 | (off))

/* A file by its number in handles, and how many bytes of it are holes, in units of 4 KiB. */
#define MEMBER_IN_FILE(file, hole) ((uint64_t)(hole) << 32 | (file))

/* Extended attributes of an inode, each 4-byte aligned: a u32 count; for each u32
 * name length, u32 value length, name, value, padding to 4. */

/* A finished table.  What it points to is in one piece of memory of its own, or
 * in an index. */
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
	const char *notes; /* sentences about what was odd, a line each */
	uint64_t notes_size;
	uint64_t damage_size;  /* of these: those of damage, which come first */
	uint32_t left_out;     /* members that the archive has, and this not */
	uint64_t backing_size; /* ranges are checked when they are read */
	uint64_t bytes;        /* of all regular files, once for each inode */
	uint64_t counts[5];    /* files, directories, symlinks, links, others */
	void *own[7];          /* memory to free, or NULL */
	struct index *index;   /* or the index it is in, owned; or NULL */
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
/* When it was modified: seconds, and nanoseconds (< 10^9). */
static inline int64_t member_mtime(const struct members *m,
				   const struct member_record *r)
{
	return member_common(m, r)->since + (int64_t)(r->when >> 30);
}
static inline uint32_t member_nsec(const struct member_record *r)
{
	return (uint32_t)(r->when & ((1u << 30) - 1));
}
/* Sections of an index that members take; a format's own begin at 64. */
enum {
	MEMBERS_SECTION = 1, /* to 8 */
	MEMBERS_SECTION_OWN = 64
};
/* Fills in sections for index_save, at most MEMBERS_SECTIONS; how many. */
enum { MEMBERS_SECTIONS = 8 };
unsigned members_sections(const struct members *m, struct index_section *out);
/* From sections in memory, `own` (malloc'ed; becomes the table's, when this
 * succeeds) or borrowed: as below. */
int members_of_sections(struct members *m, const struct index_section *s,
			unsigned n, void *own, struct error *err);
/* From an index, which becomes the table's.  Every number is checked, so that
 * nothing in it can lead outside, or in a circle.  -EBADMSG (the index then still
 * is the caller's). */
int members_of_index(struct members *m, struct index *x, struct error *err);
void members_free(struct members *m);
/* Entry `name` of directory record `dir`; -ENOENT. */
int members_find(const struct members *m, uint64_t dir, const char *name,
		 uint64_t *record);
/* "a/b/c" from the root (for sentences), truncated in front to fit. */
void members_path(const struct members *m, uint64_t record, char *buf,
		  size_t n);

/* Walk the extended attributes of a record (which may be NULL). */
struct member_xattr_at {
	const unsigned char *at; /* what comes next */
	uint32_t left;           /* how many there are still */
	uint32_t name_len, size;
	const char *name; /* no NUL at its end */
	const unsigned char *value;
};
void member_xattr_first(const struct members *m, const struct member_record *r,
			struct member_xattr_at *x);
/* False at the end. */
bool member_xattr_next(struct member_xattr_at *x);

/* ---- building ------------------------------------------------------------ */

struct member_xattr {
	const char *name; /* NUL-terminated, with its prefix: "user.x" */
	const void *value;
	size_t size;
};
/* One member as a format finds it.  Nothing is kept: all is copied. */
struct member {
	/* as stored, any bytes but NUL; made safe by members_add */
	const char *path;
	uint32_t mode; /* type and permissions */
	uint32_t uid, gid;
	int64_t mtime;
	uint32_t nsec;
	uint64_t size; /* bytes of a regular file */
	enum member_kind
		kind;  /* of a regular file: RANGE, SPARSE, BLOCKS, FRAGMENT */
	uint64_t data; /* as in the record; devices: makedev's number */
	const char *link; /* MEMBER_SYMLINK: target; MEMBER_LINK: path of the
				  member it is another name of (as stored) */
	uint64_t same_as; /* MEMBER_LINK with link NULL: what members_add
				  returned for the inode */
	const struct member_xattr *xattrs;
	size_t n_xattrs;
	uint16_t volume;
};
struct members_builder;
struct members_options {
	bool versions; /* keep what a later member replaces as NAME.versions/1 */
};
int members_builder_new(struct members_builder **out,
			const struct members_options *o, struct error *err);
void members_builder_free(struct members_builder *b);
/*
 * Add a member, as `tar x` in an empty directory would: missing directories are
 * made, what has the same name is replaced (a directory that exists gets the new
 * attributes and keeps its entries; one that is not empty is not replaced by a
 * file).  A path is cleaned: leading slashes and "." go, a path with ".." is
 * refused; both are noted.  The inode's number (for same_as), -ENOENT: a hard link
 * to nothing (noted, not added), -EINVAL: refused (noted), -ENOMEM.
 */
int64_t members_add(struct members_builder *b, const struct member *m,
		    struct error *err);
/* Append to `extents`, `blocks`; the number of the first, or -ENOMEM. */
int64_t members_add_extents(struct members_builder *b,
			    const struct member_extent *x, size_t n);
int64_t members_add_blocks(struct members_builder *b,
			   const struct member_block *x, size_t n);
/* The block that was added, to change it before the end (a fragment block grows
 * with what is known of it). */
struct member_block *members_block(struct members_builder *b, uint64_t i);
void members_block_size(struct members_builder *b, uint32_t size);
/* Something odd, for people: a sentence without a newline.  Equal kinds are
 * counted, the first few are kept whole. */
void members_note(struct members_builder *b, const char *kind, const char *fmt,
		  ...) __attribute__((format(printf, 3, 4)));
/* Note a member that is left out of the table; verify counts it as not checked. */
void members_left_out(struct members_builder *b, const char *kind,
		      const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The same for damage: what is said of a source that is not whole. */
void members_damage(struct members_builder *b, const char *kind,
		    const char *fmt, ...) __attribute__((format(printf, 3, 4)));
uint64_t members_count(const struct members_builder *b);
/* Sort, number, pack.  `b` is freed, also on failure. */
int members_finish(struct members_builder *b, struct members *out,
		   struct error *err);

#endif
