/* SPDX-License-Identifier: BSD-2-Clause */
/* squashfs: the blocks of a regular file and the extended attributes of an inode;
 * runs in the child process. */
/*
 * A file is a list of blocks, and for the rest a piece of a fragment block.  A hole
 * is an entry of 0 stored bytes.  Files with the same content have the same blocks
 * in the image, and share their entries here.
 *
 * A block that cannot be right (longer than a block, or outside of the image) keeps
 * its entry, with the position BAD: reading it is an error, and the rest of the
 * file can be read.  A file whose list cannot be read at all is a range at position
 * BAD.
 */
#include "formats/squashfs/walk.h"

#include <errno.h>
#include <string.h>

#include "base/number.h"

/* Entries of a list that are read at once.  Lists that are no longer are looked for
 * in `runs`. */
#define PIECE 8192
/* A position that no source has.  Adding a size to it does not overflow. */
#define BAD (UINT64_MAX / 2)

static struct member_block bad_block(uint32_t size)
{
	return (struct member_block){.pos = BAD, .stored = 1, .size = size};
}

/* Make an entry of a block header of the image.  `size` is in bytes; 0 if it is not
 * known. */
static struct member_block block_from_header(const struct squashfs_walk *w,
					     uint64_t pos, uint32_t header,
					     uint32_t size)
{
	uint32_t stored = header & (SQUASHFS_COMPRESSED_BIT_BLOCK - 1);
	bool plain = header & SQUASHFS_COMPRESSED_BIT_BLOCK;

	if (header & ~(2u * SQUASHFS_COMPRESSED_BIT_BLOCK - 1) ||
	    stored > w->info->block_size || pos > w->info->bytes_used ||
	    stored > w->info->bytes_used - pos ||
	    (plain && size && stored && stored != size))
		return bad_block(size);
	if (!stored)
		return (struct member_block){.size = size};
	return (struct member_block){.pos = pos,
				     .stored = stored,
				     .size = plain ? stored : size,
				     .flags = plain ? MEMBER_STORED : 0};
}

/* ---- fragments ----------------------------------------------------------- */

int squashfs_walk_fragments(struct squashfs_walk *w)
{
	for (uint32_t i = 0; i < w->info->fragments; i++) {
		struct member_block x = bad_block(0);
		unsigned char raw[16];
		int64_t at;

		errno = 0;
		if (squashfs_walk_table(w, &w->fs.frag_table,
					w->info->fragments, i, raw) == SQFS_OK)
			x = block_from_header(w, load_le64(raw),
					      load_le32(raw + 8), 0);
		else if (squashfs_walk_failed(w) < 0)
			return w->err->code;
		x.flags |= MEMBER_SHARED;
		at = members_add_blocks(w->b, &x, 1);
		if (at < 0)
			return error_no_memory(w->err, "the list of members");
		if (i == 0)
			w->fragments = (uint64_t)at;
		w->blocks++;
		squashfs_walk_beat(w);
	}
	return 0;
}

/* Return where the `size` bytes of a fragment are, as MEMBER_IN_BLOCK, or WALK_BAD. */
static uint64_t fragment_place(struct squashfs_walk *w, const sqfs_inode *inode,
			       uint32_t size)
{
	uint32_t i = inode->xtra.reg.frag_idx, off = inode->xtra.reg.frag_off;
	struct member_block *b;

	if (i >= w->info->fragments || off >= w->info->block_size ||
	    size > w->info->block_size - off)
		return WALK_BAD;
	b = members_block(w->b, w->fragments + i);
	if (!b->stored || b->pos == BAD ||
	    ((b->flags & MEMBER_STORED) && off + size > b->stored))
		return WALK_BAD;
	if (b->size < off + size)
		b->size = off + size;
	return MEMBER_IN_BLOCK(w->fragments + i, off);
}

/* ---- lists --------------------------------------------------------------- */

/* A file that is being read. */
struct content {
	uint64_t size, full; /* of the file in bytes; number of whole blocks */
	uint32_t rest;
	bool fragment;  /* the rest is in a fragment block */
	uint64_t where; /* position of the fragment, or WALK_BAD */
	uint64_t n;     /* number of entries */
};

/* Read up to PIECE entries, from number `from` on, into w->list.  Return 0, -EINVAL
 * if they cannot be read, or -ENOMEM. */
static int read_block_list(struct squashfs_walk *w, sqfs_blocklist *bl,
			   const struct content *c, uint64_t from)
{
	w->list.n = 0;
	for (uint64_t i = from; i < c->n && i < from + PIECE; i++) {
		bool whole = i < c->full;
		uint32_t size = whole ? w->info->block_size : c->rest;
		struct member_block x = {
			.pos = c->where, .size = size, .flags = MEMBER_TAIL};

		if (whole || !c->fragment) {
			if (sqfs_blocklist_next(bl) != SQFS_OK)
				return -EINVAL;
			x = block_from_header(w, bl->block, bl->header, size);
		} else if (c->where == WALK_BAD) {
			x = bad_block(size);
		}
		if (i + 1 == c->n)
			x.flags |= MEMBER_LAST;
		if (!vec_push(&w->list, x))
			return error_no_memory(w->err, "the list of members");
	}
	return 0;
}

static uint64_t run_hash(const struct squashfs_run *r)
{
	uint64_t h = r->start * UINT64_C(0x9e3779b97f4a7c15);

	h = (h ^ r->size) * UINT64_C(0x9e3779b97f4a7c15);
	h = (h ^ ((uint64_t)r->fragment << 32 | r->offset)) *
	    UINT64_C(0x9e3779b97f4a7c15);
	return h >> 1; /* a key of a map must not be UINT64_MAX */
}

/* Return the first entry of a known run that is equal to w->list, or WALK_BAD. */
static uint64_t find_block_run(struct squashfs_walk *w,
			       const struct squashfs_run *as)
{
	const uint64_t *known = squashfs_map_find(&w->shared, run_hash(as));
	const struct squashfs_run *r = known ? &w->runs.at[*known] : NULL;

	if (!r || r->start != as->start || r->size != as->size ||
	    r->fragment != as->fragment || r->offset != as->offset ||
	    memcmp(members_block(w->b, r->first), w->list.at,
		   w->list.n * sizeof *w->list.at))
		return WALK_BAD;
	return r->first;
}

/* Add the entries of w->list, or find equal ones. */
static int add_block_run(struct squashfs_walk *w, struct squashfs_run *run,
			 uint64_t *first)
{
	int64_t added;

	*first = find_block_run(w, run);
	if (*first != WALK_BAD)
		return 0;
	added = members_add_blocks(w->b, w->list.at, w->list.n);
	if (added < 0)
		return error_no_memory(w->err, "the list of members");
	*first = run->first = (uint64_t)added;
	w->blocks += w->list.n;
	if (!vec_push(&w->runs, *run) ||
	    !squashfs_map_set(&w->shared, run_hash(run), w->runs.n - 1))
		return error_no_memory(w->err, "the list of members");
	return 0;
}

/* Add a list of more than PIECE entries. */
static int add_long_list(struct squashfs_walk *w, sqfs_blocklist *bl,
			 const struct content *c, uint64_t *first)
{
	for (uint64_t i = 0; i < c->n; i += PIECE) {
		int r = i ? read_block_list(w, bl, c, i) : 0;
		int64_t added;

		if (r < 0)
			return r;
		added = members_add_blocks(w->b, w->list.at, w->list.n);
		if (added < 0)
			return error_no_memory(w->err, "the list of members");
		if (i == 0)
			*first = (uint64_t)added;
		w->blocks += w->list.n;
		squashfs_walk_beat(w);
	}
	return 0;
}

static int add_block_list(struct squashfs_walk *w, sqfs_inode *inode,
			  const struct content *c, uint64_t *first)
{
	struct squashfs_run run = {inode->xtra.reg.start_block, c->size,
				   inode->xtra.reg.frag_idx,
				   inode->xtra.reg.frag_off, 0};
	uint64_t stored = c->n - c->fragment;
	sqfs_blocklist bl;
	int r;

	if (stored > w->lists_left / 4 ||
	    (stored && !squashfs_walk_cursor(w, &inode->next)))
		return -EINVAL;
	w->lists_left -= stored * 4;
	sqfs_blocklist_init(&w->fs, inode, &bl);
	r = read_block_list(w, &bl, c, 0);
	if (r < 0)
		return r;
	return c->n <= PIECE ? add_block_run(w, &run, first)
			     : add_long_list(w, &bl, c, first);
}

/* ---- a file -------------------------------------------------------------- */

static int note_unreadable_list(struct squashfs_walk *w, struct member *m)
{
	int r = squashfs_walk_failed(w);

	if (r < 0)
		return r;
	members_damage(w->b, "unreadable list of blocks",
		       "%s: its list of blocks is damaged; it cannot be read",
		       squashfs_walk_path(w));
	m->kind = MEMBER_RANGE;
	m->data = BAD;
	return 0;
}

int squashfs_walk_file(struct squashfs_walk *w, sqfs_inode *inode,
		       struct member *m)
{
	struct content c = {.size = inode->xtra.reg.file_size};
	int r;

	m->size = c.size;
	if (c.size == 0)
		return 0;
	if (c.size > INT64_MAX) {
		members_damage(w->b, "impossible size",
			       "%s: its size of %llu bytes is impossible; it "
			       "is left out",
			       squashfs_walk_path(w),
			       (unsigned long long)c.size);
		return -EINVAL;
	}
	c.full = c.size / w->info->block_size;
	c.rest = (uint32_t)(c.size % w->info->block_size);
	c.fragment =
		c.rest && inode->xtra.reg.frag_idx != SQUASHFS_INVALID_FRAG;
	c.n = c.full + (c.rest != 0);
	if (c.fragment)
		c.where = fragment_place(w, inode, c.rest);
	if (c.fragment && !c.full && c.where != WALK_BAD) {
		m->kind = MEMBER_FRAGMENT;
		m->data = c.where;
		return 0;
	}
	m->kind = MEMBER_BLOCKS;
	r = add_block_list(w, inode, &c, &m->data);
	return r == -EINVAL ? note_unreadable_list(w, m) : r;
}

/* ---- extended attributes ------------------------------------------------- */

/*
 *	table of sets   u64 where, u32 count, u32 bytes; `where` is coded like the
 *	                position of an inode, relative to where the attributes begin
 *	a set           count times:
 *	                u16 type, u16 length, name, u32 length, value
 *
 * The type is 0 for user, 1 for trusted, 2 for security.  With 256 added, the value
 * is a u64 that says where the real value is, preceded by its length: a value in
 * many sets is stored once (Linux, fs/squashfs/squashfs_fs.h:
 * SQUASHFS_XATTR_VALUE_OOL).
 *
 * libsquashfuse 0.1 takes trusted for security and security for trusted, and does
 * not check whether a value is where its set says.  So only its block reader is
 * used.
 */

/* Limits of the kernel, in bytes: of a list of names, and of a value. */
#define NAMES_MAX 65536u
#define VALUE_MAX 65536u
#define NAME_MAX_BYTES 255u
#define TOTAL_MAX ((size_t)16 << 20)

static const char *const prefixes[] = {"user.", "trusted.", "security."};

/* Read n bytes.  Return false if they cannot be read. */
static bool read_attribute_bytes(struct squashfs_walk *w, sqfs_md_cursor *cur,
				 void *to, size_t n)
{
	return n == 0 || (squashfs_walk_cursor(w, cur) &&
			  sqfs_md_read(&w->fs, cur, to, n) == SQFS_OK);
}

static bool read_attribute_u32(struct squashfs_walk *w, sqfs_md_cursor *cur,
			       uint32_t *v)
{
	unsigned char raw[4];

	if (!read_attribute_bytes(w, cur, raw, sizeof raw))
		return false;
	*v = load_le32(raw);
	return true;
}

static void attribute_cursor(const struct squashfs_walk *w, uint64_t where,
			     sqfs_md_cursor *cur)
{
	sqfs_md_cursor_inode(cur, where,
			     (sqfs_off_t)w->fs.xattr_info.xattr_table_start);
}

/* Reserve n bytes at the end of w->bytes and set *at to their offset.  Return NULL
 * if there is no memory. */
static char *reserve_attribute_bytes(struct squashfs_walk *w, size_t n,
				     size_t *at)
{
	if (w->bytes_room - w->bytes_used < n) {
		size_t want = 2 * w->bytes_room + n + 256;
		char *p = realloc(w->bytes, want);

		if (!p)
			return NULL;
		w->bytes = p;
		w->bytes_room = want;
	}
	*at = w->bytes_used;
	w->bytes_used += n;
	return w->bytes + *at;
}

/* Read the value at a cursor, which is moved behind it. */
static int read_attribute_value(struct squashfs_walk *w, sqfs_md_cursor *cur,
				bool elsewhere, size_t *at, size_t *size)
{
	sqfs_md_cursor there;
	unsigned char raw[8];
	uint32_t n;
	char *to;

	if (!read_attribute_u32(w, cur, &n))
		return -EINVAL;
	if (elsewhere) {
		if (n != sizeof raw ||
		    !read_attribute_bytes(w, cur, raw, sizeof raw))
			return -EINVAL;
		attribute_cursor(w, load_le64(raw), &there);
		cur = &there;
		if (!read_attribute_u32(w, cur, &n))
			return -EINVAL;
	}
	if (n > VALUE_MAX || n > TOTAL_MAX - w->bytes_used)
		return -EINVAL;
	to = reserve_attribute_bytes(w, n, at);
	if (!to)
		return -ENOMEM;
	*size = n;
	return read_attribute_bytes(w, cur, to, n) ? 0 : -EINVAL;
}

/* Read one attribute and add it to w->xattrs and w->places. */
static int read_attribute(struct squashfs_walk *w, sqfs_md_cursor *cur,
			  size_t *names)
{
	struct member_xattr x = {0};
	unsigned char head[4];
	unsigned type, n, prefix;
	size_t name, value = 0;
	char *to;
	int r;

	if (!read_attribute_bytes(w, cur, head, sizeof head))
		return -EINVAL;
	type = load_le16(head);
	n = load_le16(head + 2);
	if ((type & 255) >= sizeof prefixes / sizeof prefixes[0])
		return -EINVAL;
	prefix = (unsigned)strlen(prefixes[type & 255]);
	*names += prefix + n + 1;
	if (n == 0 || prefix + n > NAME_MAX_BYTES || *names > NAMES_MAX)
		return -EINVAL;
	to = reserve_attribute_bytes(w, prefix + n + 1, &name);
	if (!to)
		return -ENOMEM;
	memcpy(to, prefixes[type & 255], prefix);
	to[prefix + n] = '\0';
	if (!read_attribute_bytes(w, cur, to + prefix, n) ||
	    strlen(to) != prefix + n)
		return -EINVAL;
	r = read_attribute_value(w, cur, type & 256, &value, &x.size);
	if (r < 0)
		return r;
	if (!vec_push(&w->places, name) || !vec_push(&w->places, value) ||
	    !vec_push(&w->xattrs, x))
		return -ENOMEM;
	return 0;
}

/* Read the attributes of a set, up to the first damaged one. */
static int read_attribute_set(struct squashfs_walk *w, uint32_t set)
{
	unsigned char raw[16];
	sqfs_md_cursor cur;
	size_t names = 0;
	int r = 0;

	if (squashfs_walk_table(w, &w->fs.xattr_table,
				w->fs.xattr_info.xattr_ids, set,
				raw) != SQFS_OK)
		return -EINVAL;
	attribute_cursor(w, load_le64(raw), &cur);
	for (uint32_t i = load_le32(raw + 8); i > 0 && r == 0; i--)
		r = read_attribute(w, &cur, &names);
	return r;
}

static int load_attribute_set(struct squashfs_walk *w, uint32_t set)
{
	int r;

	w->xattrs_of = SQUASHFS_INVALID_XATTR;
	w->xattrs.n = w->places.n = w->bytes_used = 0;
	r = read_attribute_set(w, set);
	if (r == -ENOMEM)
		return error_no_memory(w->err, "the list of members");
	if (r < 0) {
		r = squashfs_walk_failed(w);
		if (r < 0)
			return r;
		members_damage(
			w->b, "damaged attributes",
			"%s: its extended attributes are damaged; %zu of "
			"them could be read",
			squashfs_walk_path(w), w->xattrs.n);
	} else {
		w->xattrs_of = set;
	}
	for (size_t i = 0; i < w->xattrs.n; i++) {
		w->xattrs.at[i].name = w->bytes + w->places.at[2 * i];
		w->xattrs.at[i].value = w->bytes + w->places.at[2 * i + 1];
	}
	return 0;
}

int squashfs_walk_xattrs(struct squashfs_walk *w, const sqfs_inode *inode,
			 struct member *m)
{
	int r;

	if (inode->xattr == SQUASHFS_INVALID_XATTR ||
	    w->fs.sb.xattr_id_table_start == SQUASHFS_NO_TABLE)
		return 0;
	if (inode->xattr != w->xattrs_of) {
		r = load_attribute_set(w, inode->xattr);
		if (r < 0)
			return r;
	}
	m->xattrs = w->xattrs.at;
	m->n_xattrs = w->xattrs.n;
	return 0;
}
