/* SPDX-License-Identifier: BSD-2-Clause */
/* A member table while it is being built; for the .c files of this folder only. */
#ifndef MEMBERS_BUILD_H
#define MEMBERS_BUILD_H

#include "base/vec.h"
#include "members/members.h"

#define ENTRY_NONE UINT32_MAX
#define NOTES_KINDS 32
#define NOTES_KEPT 3 /* sentences of a kind */

/* What names lead to: the record to be, and what it has in common with others. */
struct build_inode {
	uint64_t size, data;
	int64_t mtime;
	uint32_t nsec;
	uint32_t uid, gid;
	uint32_t xattrs;
	uint16_t mode;
	uint16_t volume;
	uint8_t kind;
};
/* A name.  Entry 0 is the root.  One that was replaced by something leads to the
 * new inode; one that is gone leads to none. */
struct build_entry {
	uint64_t name;
	uint32_t parent;
	uint32_t inode;    /* ENTRY_NONE: gone */
	uint32_t children; /* of a directory, those that are gone not counted */
	uint32_t version;  /* the last of the replaced ones + 1; 0: none */
};
struct build_version {
	uint32_t inode, before; /* the one before it + 1 */
};
struct build_note {
	const char *kind;
	bool damage;
	uint64_t count;
	char *said[NOTES_KEPT];
};
/* The hash is there so that the table need not look elsewhere to be sure. */
struct build_slot {
	uint32_t entry; /* + 1; 0: free */
	uint32_t hash;  /* the upper half */
};
/* A set of extended attributes, of which equal ones are kept once. */
struct build_set {
	uint32_t at; /* as in member_common; 0: free */
	uint32_t hash;
};
struct members_builder {
	struct members_options options;
	vec(struct build_entry) entries;
	vec(struct build_inode) inodes;
	vec(struct build_version) versions;
	vec(struct member_extent) extents;
	vec(struct member_block) blocks;
	vec(char) names;
	vec(unsigned char) xattrs;
	uint32_t block_size;
	struct build_set *sets;   /* hash table of sets of attributes */
	size_t n_sets, sets_room; /* the latter a power of two */
	uint64_t seed;            /* of the hashes */
	struct build_slot *slots; /* hash table of entries by parent and name */
	size_t n_slots;           /* a power of two */
	struct build_note notes[NOTES_KINDS];
	unsigned n_notes;
	uint32_t left_out; /* calls of members_left_out */
};

static inline struct build_inode *build_inode(struct members_builder *b,
					      uint32_t entry)
{
	return &b->inodes.at[b->entries.at[entry].inode];
}
/* Is there something of that name, and is it a directory? */
static inline bool build_is_dir(struct members_builder *b, uint32_t entry)
{
	return b->entries.at[entry].inode != ENTRY_NONE &&
	       build_inode(b, entry)->kind == MEMBER_DIR;
}

/* Entry of these n bytes in directory `parent`; ENTRY_NONE. */
uint32_t build_find(const struct members_builder *b, uint32_t parent,
		    const char *name, size_t n);
/* The same; one that leads nowhere is made if there is none.  ENTRY_NONE: no
 * memory. */
uint32_t build_name(struct members_builder *b, uint32_t parent,
		    const char *name, size_t n);
/* Offset of a copy with a NUL in `names`; -ENOMEM. */
int64_t build_text(struct members_builder *b, const char *text, size_t n);
/* Its number; ENTRY_NONE: no memory. */
uint32_t build_new_inode(struct members_builder *b,
			 const struct build_inode *inode);
/* Let an entry lead to `inode` and count it with its directory. */
void build_lead(struct members_builder *b, uint32_t entry, uint32_t inode);

/* What an entry leads to is about to be something else: keep it as a version, if
 * versions are wanted.  -ENOMEM. */
int build_keep(struct members_builder *b, uint32_t entry);

/* A path whose last component is `name`, in directory entry `dir`.  n == 0: the
 * directory itself. */
struct build_place {
	uint32_t dir;
	const char *name;
	size_t n;
	bool shortened; /* `text` stands for a name that no file can have */
	char text[256];
};
/* Walk `path`, with the missing directories made like those that `like` needs
 * (NULL: none is made, -ENOENT).  -EINVAL: refused, and noted; -ENOMEM. */
int build_walk(struct members_builder *b, const char *path,
	       const struct member *like, struct build_place *out,
	       struct error *err);

/* Append a set of attributes; *at as in the record.  -ENOMEM, -E2BIG. */
int build_xattrs(struct members_builder *b, const struct member_xattr *x,
		 size_t n, uint32_t *at);

/* All of the checks that a table needs before it may be used; fills in counts and
 * bytes.  `files`: it was made here, and may have MEMBER_FILE.  -EBADMSG. */
int members_check(struct members *m, bool files, struct error *err);
/* The notes as lines, `damage` bytes of them those of damage; malloc'ed.  NULL: no
 * memory. */
char *build_notes_text(const struct members_builder *b, size_t *size,
		       size_t *damage);

#endif
