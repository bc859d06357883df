/* SPDX-License-Identifier: BSD-2-Clause */
/* A member table while it is being built: interface between the .c files of this
 * folder. */
#ifndef MEMBERS_BUILD_H
#define MEMBERS_BUILD_H

#include "base/vec.h"
#include "members/members.h"

#define ENTRY_NONE UINT32_MAX
#define NOTES_KINDS 32
#define NOTES_KEPT 3 /* sentences of a kind that are stored whole */

/* What a name refers to: the future record, and the fields that go to `common`. */
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
/* A name in a directory.  Entry 0 is the root.  When a member is replaced its entry
 * refers to the new inode; when it is removed the entry refers to no inode
 * (ENTRY_NONE). */
struct build_entry {
	uint64_t name;
	uint32_t parent;
	uint32_t inode;    /* ENTRY_NONE: the member is gone */
	uint32_t children; /* of a directory: entries that are not gone */
	/* Number of the newest replaced version, plus 1; 0: there is none. */
	uint32_t version;
};
struct build_version {
	uint32_t inode, before; /* `before`: the next older version, plus 1 */
};
struct build_note {
	const char *kind;
	bool damage;
	uint64_t count;
	char *said[NOTES_KEPT];
};
/* The stored hash avoids reading the entry's name for most slots that do not match. */
struct build_slot {
	uint32_t entry; /* entry plus 1; 0: free */
	uint32_t hash;  /* the upper half */
};
/* A set of extended attributes.  Equal sets are stored once. */
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
	struct build_set *sets;   /* hash table of attribute sets */
	size_t n_sets, sets_room; /* `sets_room` is a power of two */
	uint64_t seed;            /* random seed of the hashes */
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
/* Return whether the entry has an inode that is a directory. */
static inline bool build_is_dir(struct members_builder *b, uint32_t entry)
{
	return b->entries.at[entry].inode != ENTRY_NONE &&
	       build_inode(b, entry)->kind == MEMBER_DIR;
}

/* Return the entry named by the n bytes of `name` in directory `parent`, or
 * ENTRY_NONE. */
uint32_t build_find(const struct members_builder *b, uint32_t parent,
		    const char *name, size_t n);
/* As build_find, but a missing entry is created, without an inode.  Return
 * ENTRY_NONE when memory is out. */
uint32_t build_name(struct members_builder *b, uint32_t parent,
		    const char *name, size_t n);
/* Append a copy of the n bytes of `text` and a NUL to `names`.  Return its offset,
 * or -ENOMEM. */
int64_t build_text(struct members_builder *b, const char *text, size_t n);
/* Append an inode.  Return its number, or ENTRY_NONE when memory is out. */
uint32_t build_new_inode(struct members_builder *b,
			 const struct build_inode *inode);
/* Let the entry refer to `inode`.  An entry that had no inode is counted in its
 * directory. */
void build_lead(struct members_builder *b, uint32_t entry, uint32_t inode);

/* To be called before the entry's inode is replaced: store the present inode as a
 * version, if the options ask for versions.  Return 0 or -ENOMEM. */
int build_keep(struct members_builder *b, uint32_t entry);

/* A path: `name` (n bytes) is its last component, in directory entry `dir`. n == 0
 * means the directory itself. */
struct build_place {
	uint32_t dir;
	const char *name;
	size_t n;
	/* `name` is `text`, which stands for a stored name that is too long. */
	bool shortened;
	char text[256];
};
/* Find the place of `path`.  Missing directories are created with the owner and time
 * of `like`; with `like` NULL nothing is created, and a missing directory is
 * -ENOENT.  Return 0, -EINVAL if the path is refused, which is noted (with `like`
 * NULL -ENOENT instead, without a note), or -ENOMEM. */
int build_walk(struct members_builder *b, const char *path,
	       const struct member *like, struct build_place *out,
	       struct error *err);

/* Append a set of n attributes.  *at becomes the value for member_common.xattrs.
 * Return 0, -ENOMEM, or -E2BIG if they are too large. */
int build_xattrs(struct members_builder *b, const struct member_xattr *x,
		 size_t n, uint32_t *at);

/* Do all checks that a table needs before it may be used, and fill in `counts` and
 * `bytes`.  `files`: the table was built by this process and may have records of
 * kind MEMBER_FILE.  Return 0 or -EBADMSG. */
int members_check(struct members *m, bool files, struct error *err);
/* Return all notes as lines, malloc'ed, or NULL when memory is out.  *size is their
 * length in bytes; the first *damage bytes are the notes about damage. */
char *build_notes_text(const struct members_builder *b, size_t *size,
		       size_t *damage);

#endif
