/* SPDX-License-Identifier: BSD-2-Clause */
/* Building a member table: names, inodes, and what replaces what. */
#include "members/build.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <xxhash.h>

#include "base/number.h"

#define XATTRS_MAX (UINT32_C(64) << 20) /* bytes of attributes of one member */

/*
 * While a table is built it consists of entries (names in directories) and inodes (what
 * names refer to), as a file system does, because an archive is a list of commands to a
 * file system: "make this file", "give it that name too", "make it again".  Each
 * command is carried out when it is read, so the result is what `tar x` would leave
 * behind.
 *
 * Entries are found by parent and name in a hash table.  None is ever deleted from it:
 * a replaced entry refers to another inode, a removed entry to no inode.
 */

/* ---- names --------------------------------------------------------------- */

static uint64_t build_hash_of(const struct members_builder *b, uint32_t parent,
			      const char *name, size_t n)
{
	uint64_t seed = (b->seed ^ parent) * UINT64_C(0x9e3779b97f4a7c15);

	return XXH3_64bits_withSeed(name, n, seed ^ seed >> 32);
}

static bool build_entry_is(const struct members_builder *b, uint32_t entry,
			   uint32_t parent, const char *name, size_t n)
{
	const struct build_entry *e = &b->entries.at[entry];
	const char *have = b->names.at + e->name;

	return e->parent == parent && !memcmp(have, name, n) && !have[n];
}

/* Return the slot of the entry; if it does not exist, the free slot where it would
 * go. */
static size_t build_slot_of(const struct members_builder *b, uint64_t hash,
			    uint32_t parent, const char *name, size_t n)
{
	size_t mask = b->n_slots - 1, i = (size_t)hash & mask;

	for (; b->slots[i].entry; i = (i + 1) & mask) {
		const struct build_entry *e;

		if (b->slots[i].hash != (uint32_t)(hash >> 32))
			continue;
		e = &b->entries.at[b->slots[i].entry - 1];
		/* memcmp must not read past the end of the pool of names; the stored
		 * name may be shorter than n. */
		if (n < b->names.n - e->name &&
		    build_entry_is(b, b->slots[i].entry - 1, parent, name, n))
			break;
	}
	return i;
}

/* Entries in the table are all different, so each goes to the first free slot. */
static bool build_grow_slots(struct members_builder *b)
{
	size_t want = b->n_slots ? 2 * b->n_slots : 1024;
	struct build_slot *slots = calloc(want, sizeof *slots);

	if (!slots)
		return false;
	for (size_t i = 1; i < b->entries.n; i++) {
		const struct build_entry *e = &b->entries.at[i];
		const char *name = b->names.at + e->name;
		uint64_t hash = build_hash_of(b, e->parent, name, strlen(name));
		size_t at = (size_t)hash & (want - 1);

		while (slots[at].entry)
			at = (at + 1) & (want - 1);
		slots[at] = (struct build_slot){(uint32_t)i + 1,
						(uint32_t)(hash >> 32)};
	}
	free(b->slots);
	b->slots = slots;
	b->n_slots = want;
	return true;
}

uint32_t build_find(const struct members_builder *b, uint32_t parent,
		    const char *name, size_t n)
{
	uint64_t hash = build_hash_of(b, parent, name, n);
	uint32_t found =
		b->slots[build_slot_of(b, hash, parent, name, n)].entry;

	return found ? found - 1 : ENTRY_NONE;
}

int64_t build_text(struct members_builder *b, const char *text, size_t n)
{
	size_t at = b->names.n;

	if (n >= MEMBER_NAMES_MAX - at)
		return -ENOMEM;
	if (n >= b->names.room - at) {
		size_t want = 2 * b->names.room + n + 64;
		char *p = realloc(b->names.at, want);

		if (!p)
			return -ENOMEM;
		b->names.at = p;
		b->names.room = want;
	}
	memcpy(b->names.at + at, text, n);
	b->names.at[at + n] = '\0';
	b->names.n += n + 1;
	return (int64_t)at;
}

uint32_t build_name(struct members_builder *b, uint32_t parent,
		    const char *name, size_t n)
{
	struct build_entry e = {0, parent, ENTRY_NONE, 0, 0};
	uint64_t hash = build_hash_of(b, parent, name, n);
	struct build_slot *slot;
	int64_t at;

	if (2 * b->entries.n >= b->n_slots && !build_grow_slots(b))
		return ENTRY_NONE;
	slot = &b->slots[build_slot_of(b, hash, parent, name, n)];
	if (slot->entry)
		return slot->entry - 1;
	if (b->entries.n >= ENTRY_NONE - 1)
		return ENTRY_NONE;
	at = build_text(b, name, n);
	if (at < 0)
		return ENTRY_NONE;
	e.name = (uint64_t)at;
	if (!vec_push(&b->entries, e))
		return ENTRY_NONE;
	*slot = (struct build_slot){(uint32_t)b->entries.n,
				    (uint32_t)(hash >> 32)};
	return (uint32_t)b->entries.n - 1;
}

/* ---- inodes -------------------------------------------------------------- */

uint32_t build_new_inode(struct members_builder *b,
			 const struct build_inode *inode)
{
	if (b->inodes.n >= ENTRY_NONE - 1 || !vec_push(&b->inodes, *inode))
		return ENTRY_NONE;
	return (uint32_t)b->inodes.n - 1;
}

void build_lead(struct members_builder *b, uint32_t entry, uint32_t inode)
{
	struct build_entry *e = &b->entries.at[entry];

	if (e->inode == ENTRY_NONE && entry != 0)
		b->entries.at[e->parent].children++;
	e->inode = inode;
}

/* ---- extended attributes ------------------------------------------------- */

static size_t build_padded_size(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

/* Return the bytes that a set takes, or 0 if it is too large. */
static size_t build_set_size(const struct member_xattr *x, size_t n)
{
	size_t size = 4;

	for (size_t i = 0; i < n; i++) {
		if (x[i].size > XATTRS_MAX || strlen(x[i].name) > 255)
			return 0;
		size += 8 + build_padded_size(strlen(x[i].name) + x[i].size);
		if (size > XATTRS_MAX)
			return 0;
	}
	return size;
}

static void build_set_write(unsigned char *to, const struct member_xattr *x,
			    size_t n)
{
	uint32_t word = (uint32_t)n;

	memcpy(to, &word, 4);
	to += 4;
	for (size_t i = 0; i < n; i++) {
		uint32_t head[2] = {(uint32_t)strlen(x[i].name),
				    (uint32_t)x[i].size};

		memcpy(to, head, 8);
		memcpy(to + 8, x[i].name, head[0]);
		if (head[1])
			memcpy(to + 8 + head[0], x[i].value, head[1]);
		to += 8 + build_padded_size((size_t)head[0] + head[1]);
	}
}

/* Make room for `size` bytes from `used` on, where the stored sets end.  Return
 * false when memory is out. */
static bool build_make_xattr_room(struct members_builder *b, size_t used,
				  size_t size)
{
	size_t want = 2 * b->xattrs.room + size;
	unsigned char *p;

	if (size <= b->xattrs.room - used)
		return true;
	p = realloc(b->xattrs.at, want);
	if (!p)
		return false;
	b->xattrs.at = p;
	b->xattrs.room = want;
	return true;
}

/* Stored sets are all different, so each goes to the first free slot. */
static bool build_grow_sets(struct members_builder *b)
{
	size_t want = b->sets_room ? 2 * b->sets_room : 64;
	struct build_set *sets = calloc(want, sizeof *sets);

	if (!sets)
		return false;
	for (size_t i = 0; i < b->sets_room; i++) {
		size_t at = b->sets[i].hash & (want - 1);

		if (!b->sets[i].at)
			continue;
		while (sets[at].at)
			at = (at + 1) & (want - 1);
		sets[at] = b->sets[i];
	}
	free(b->sets);
	b->sets = sets;
	b->sets_room = want;
	return true;
}

/* Return the slot of the set of `size` bytes that begins at `used`; if there is no
 * equal set, the free slot where it would go.  A set's bytes say where it ends, so a
 * stored set that begins with these bytes is equal. */
static struct build_set *build_set_slot(const struct members_builder *b,
					size_t used, size_t size, uint32_t hash)
{
	size_t i = hash & (b->sets_room - 1);

	for (; b->sets[i].at; i = (i + 1) & (b->sets_room - 1)) {
		size_t off = ((size_t)b->sets[i].at - 1) * 4;

		if (b->sets[i].hash == hash && size <= used - off &&
		    !memcmp(b->xattrs.at + off, b->xattrs.at + used, size))
			break;
	}
	return &b->sets[i];
}

int build_xattrs(struct members_builder *b, const struct member_xattr *x,
		 size_t n, uint32_t *at)
{
	size_t used = b->xattrs.n, size = build_set_size(x, n);
	struct build_set *slot;
	uint32_t hash;

	*at = 0;
	if (n == 0)
		return 0;
	if (!size || used / 4 + size / 4 >= UINT32_MAX)
		return -E2BIG;
	if (!build_make_xattr_room(b, used, size) ||
	    (2 * b->n_sets >= b->sets_room && !build_grow_sets(b)))
		return -ENOMEM;
	memset(b->xattrs.at + used, 0, size);
	build_set_write(b->xattrs.at + used, x, n);
	hash = (uint32_t)XXH3_64bits_withSeed(b->xattrs.at + used, size,
					      b->seed);
	slot = build_set_slot(b, used, size, hash);
	if (!slot->at) {
		*slot = (struct build_set){(uint32_t)(used / 4) + 1, hash};
		b->n_sets++;
		b->xattrs.n = used + size;
	}
	*at = slot->at;
	return 0;
}

/* ---- adding -------------------------------------------------------------- */

static void build_inode_of(const struct member *m, struct build_inode *r)
{
	memset(r, 0, sizeof *r);
	r->mtime = m->mtime;
	r->nsec = m->nsec < 1000000000 ? m->nsec : 0;
	r->mode = (uint16_t)m->mode;
	r->uid = m->uid;
	r->gid = m->gid;
	r->volume = m->volume;
	r->kind = (uint8_t)m->kind;
	if (S_ISDIR(m->mode))
		r->kind = MEMBER_DIR;
	else if (S_ISLNK(m->mode))
		r->kind = MEMBER_SYMLINK;
	else if (!S_ISREG(m->mode))
		r->kind = MEMBER_NONE;
	if (S_ISREG(m->mode) && m->size > 0) {
		r->size = m->size;
		r->data = m->data;
	} else if (S_ISREG(m->mode)) {
		r->kind = MEMBER_NONE;
	} else if (S_ISBLK(m->mode) || S_ISCHR(m->mode)) {
		r->data = m->data;
	}
}

/* Store the attributes of a new inode, and the target of a symlink. */
static int build_finish_inode(struct members_builder *b, const struct member *m,
			      const struct build_place *at, const char *stored,
			      struct build_inode *r, struct error *err)
{
	struct member_xattr more[64];
	const struct member_xattr *x = m->xattrs;
	size_t n = m->n_xattrs;
	int64_t text;
	int code;

	if (at->shortened && n < sizeof more / sizeof *more) {
		if (n)
			memcpy(more, x, n * sizeof *x);
		more[n++] = (struct member_xattr){"user.tensorfs.name", stored,
						  strlen(stored)};
		x = more;
	}
	code = build_xattrs(b, x, n, &r->xattrs);
	if (code == -E2BIG)
		members_note(b, "attributes too large",
			     "%s: its extended attributes are too large and "
			     "are left out",
			     m->path);
	else if (code < 0)
		return error_no_memory(err, "the table of members");
	if (r->kind == MEMBER_SYMLINK) {
		text = build_text(b, m->link ? m->link : "",
				  m->link ? strlen(m->link) : 0);
		if (text < 0)
			return error_no_memory(err, "the table of members");
		r->data = (uint64_t)text;
		r->size = m->link ? strlen(m->link) : 0;
	}
	return 0;
}

/* Give an existing directory the new attributes.  Its entries stay.  Return its
 * inode. */
static int64_t build_renew_directory(struct members_builder *b, uint32_t entry,
				     const struct build_inode *r)
{
	*build_inode(b, entry) = *r;
	return b->entries.at[entry].inode;
}

int build_keep(struct members_builder *b, uint32_t entry)
{
	struct build_entry *e = &b->entries.at[entry];
	struct build_version v = {e->inode, e->version};

	if (!b->options.versions || e->inode == ENTRY_NONE ||
	    build_is_dir(b, entry))
		return 0;
	if (!vec_push(&b->versions, v))
		return -ENOMEM;
	e->version = (uint32_t)b->versions.n;
	return 0;
}

/* Let `entry` refer to `inode`.  Return -EINVAL if it is a directory that is not
 * empty, which is noted, or -ENOMEM. */
static int build_replace(struct members_builder *b, const struct member *m,
			 uint32_t entry, uint32_t inode, struct error *err)
{
	if (build_is_dir(b, entry) &&
	    (b->entries.at[entry].children || entry == 0)) {
		members_left_out(b, "a directory that was not replaced",
				 "%s: is a directory that is not empty, and "
				 "not replaced by a later file of this name",
				 m->path);
		return error_set(err, -EINVAL, "%s: not replaced", m->path);
	}
	if (b->entries.at[entry].inode != ENTRY_NONE &&
	    build_inode(b, entry)->volume != m->volume)
		members_note(b, "members of two sources",
			     "%s: is in more than one source; that of the last "
			     "one is shown",
			     m->path);
	if (build_keep(b, entry) < 0)
		return error_no_memory(err, "the table of members");
	build_lead(b, entry, inode);
	return 0;
}

/* Return the inode that the hard link `m` refers to, or -ENOENT, -EINVAL or -ENOMEM. */
static int64_t build_linked_inode(struct members_builder *b,
				  const struct member *m, struct error *err)
{
	struct build_place at;
	uint32_t entry;
	int r;

	if (!m->link)
		return m->same_as < b->inodes.n
			       ? (int64_t)m->same_as
			       : error_set(err, -ENOENT, "no such inode");
	r = build_walk(b, m->link, NULL, &at, err);
	if (r < 0)
		return r;
	entry = at.n ? build_find(b, at.dir, at.name, at.n) : at.dir;
	if (entry == ENTRY_NONE || b->entries.at[entry].inode == ENTRY_NONE ||
	    build_is_dir(b, entry))
		return error_set(err, -ENOENT, "%s: no such member", m->link);
	return b->entries.at[entry].inode;
}

static int64_t build_add_link(struct members_builder *b, const struct member *m,
			      struct error *err)
{
	int64_t inode = build_linked_inode(b, m, err);
	struct build_place at;
	uint32_t entry;
	int r;

	if (inode == -ENOENT || inode == -EINVAL)
		members_left_out(b, "a hard link to nothing",
				 "%s: is left out: it is a hard link to %s, "
				 "which does not exist or is a directory",
				 m->path, m->link ? m->link : "nothing");
	if (inode < 0)
		return inode;
	r = build_walk(b, m->path, m, &at, err);
	if (r < 0)
		return r;
	entry = at.n ? build_name(b, at.dir, at.name, at.n) : at.dir;
	if (entry == ENTRY_NONE)
		return error_no_memory(err, "the table of members");
	if (b->entries.at[entry].inode == (uint32_t)inode)
		return inode;
	r = build_replace(b, m, entry, (uint32_t)inode, err);
	return r < 0 ? r : inode;
}

int64_t members_add(struct members_builder *b, const struct member *m,
		    struct error *err)
{
	struct build_inode r;
	struct build_place at;
	uint32_t entry, inode;
	int code;

	if (m->kind == MEMBER_LINK)
		return build_add_link(b, m, err);
	build_inode_of(m, &r);
	code = build_walk(b, m->path, m, &at, err);
	if (code == 0)
		code = build_finish_inode(b, m, &at, m->path, &r, err);
	if (code < 0)
		return code;
	entry = at.n ? build_name(b, at.dir, at.name, at.n) : at.dir;
	if (entry == ENTRY_NONE)
		return error_no_memory(err, "the table of members");
	if (r.kind == MEMBER_DIR && build_is_dir(b, entry))
		return build_renew_directory(b, entry, &r);
	inode = build_new_inode(b, &r);
	if (inode == ENTRY_NONE)
		return error_no_memory(err, "the table of members");
	code = build_replace(b, m, entry, inode, err);
	return code < 0 ? code : (int64_t)inode;
}

uint64_t members_count(const struct members_builder *b)
{
	return b->entries.n;
}

int members_builder_new(struct members_builder **out,
			const struct members_options *o, struct error *err)
{
	const struct build_entry root = {0, 0, 0, 0, 0};
	struct build_inode r = {.kind = MEMBER_DIR, .mode = S_IFDIR | 0755};
	struct members_builder *b = calloc(1, sizeof *b);

	*out = NULL;
	if (!b)
		return error_no_memory(err, "the table of members");
	if (o)
		b->options = *o;
	/* The seed is random so that an archive cannot be made whose names all hash
	 * alike. */
	if (getrandom(&b->seed, sizeof b->seed, GRND_NONBLOCK) !=
	    sizeof b->seed)
		b->seed = (uintptr_t)b;
	if (build_text(b, "", 0) < 0 || !vec_push(&b->entries, root) ||
	    build_new_inode(b, &r) == ENTRY_NONE || !build_grow_slots(b)) {
		members_builder_free(b);
		return error_no_memory(err, "the table of members");
	}
	*out = b;
	return 0;
}

void members_builder_free(struct members_builder *b)
{
	if (!b)
		return;
	vec_free(&b->entries);
	vec_free(&b->inodes);
	vec_free(&b->versions);
	vec_free(&b->extents);
	vec_free(&b->blocks);
	vec_free(&b->names);
	vec_free(&b->xattrs);
	free(b->sets);
	free(b->slots);
	for (unsigned i = 0; i < b->n_notes; i++)
		for (unsigned j = 0; j < NOTES_KEPT; j++)
			free(b->notes[i].said[j]);
	free(b);
}

/* ---- tables beside it ---------------------------------------------------- */

int64_t members_add_extents(struct members_builder *b,
			    const struct member_extent *x, size_t n)
{
	size_t first = b->extents.n;

	for (size_t i = 0; i < n; i++)
		if (!vec_push(&b->extents, x[i]))
			return -ENOMEM;
	return (int64_t)first;
}

int64_t members_add_blocks(struct members_builder *b,
			   const struct member_block *x, size_t n)
{
	size_t first = b->blocks.n;

	for (size_t i = 0; i < n; i++)
		if (!vec_push(&b->blocks, x[i]))
			return -ENOMEM;
	return (int64_t)first;
}

struct member_block *members_block(struct members_builder *b, uint64_t i)
{
	return i < b->blocks.n ? &b->blocks.at[i] : NULL;
}

void members_block_size(struct members_builder *b, uint32_t size)
{
	b->block_size = size;
}

/* ---- notes --------------------------------------------------------------- */

static void build_add_note(struct members_builder *b, bool damage,
			   const char *kind, const char *fmt, va_list ap)
{
	struct build_note *note = NULL;

	for (unsigned i = 0; i < b->n_notes && !note; i++)
		if (!strcmp(b->notes[i].kind, kind))
			note = &b->notes[i];
	if (!note && b->n_notes == NOTES_KINDS)
		return;
	if (!note) {
		note = &b->notes[b->n_notes++];
		note->kind = kind;
		note->damage = damage;
	}
	if (note->count++ >= NOTES_KEPT)
		return;
	if (vasprintf(&note->said[note->count - 1], fmt, ap) < 0)
		note->said[note->count - 1] = NULL;
}

void members_note(struct members_builder *b, const char *kind, const char *fmt,
		  ...)
{
	va_list ap;

	va_start(ap, fmt);
	build_add_note(b, false, kind, fmt, ap);
	va_end(ap);
}

void members_left_out(struct members_builder *b, const char *kind,
		      const char *fmt, ...)
{
	va_list ap;

	b->left_out += b->left_out < UINT32_MAX;
	va_start(ap, fmt);
	build_add_note(b, false, kind, fmt, ap);
	va_end(ap);
}

void members_damage(struct members_builder *b, const char *kind,
		    const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	build_add_note(b, true, kind, fmt, ap);
	va_end(ap);
}

/* Write `text` as one line.  Control characters become octal escapes. */
static void build_print_line(FILE *f, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c < 0x20 || c == 0x7f)
			fprintf(f, "\\%03o", c);
		else
			putc(c, f);
	}
	putc('\n', f);
}

static void build_print_note(FILE *f, const struct build_note *n)
{
	for (unsigned j = 0; j < NOTES_KEPT; j++)
		if (n->said[j])
			build_print_line(f, n->said[j]);
	if (n->count > NOTES_KEPT)
		fprintf(f, "%s: %llu more\n", n->kind,
			(unsigned long long)n->count - NOTES_KEPT);
}

char *build_notes_text(const struct members_builder *b, size_t *size,
		       size_t *damage)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, size);

	if (!f)
		return NULL;
	for (unsigned i = 0; i < b->n_notes; i++)
		if (b->notes[i].damage)
			build_print_note(f, &b->notes[i]);
	fflush(f);
	*damage = *size;
	for (unsigned i = 0; i < b->n_notes; i++)
		if (!b->notes[i].damage)
			build_print_note(f, &b->notes[i]);
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}
