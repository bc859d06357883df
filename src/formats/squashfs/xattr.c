/* SPDX-License-Identifier: BSD-2-Clause */
/* squashfs: extended attributes; in the child. */
/*
 *	table of sets   u64 where, u32 count, u32 bytes; `where` as of an inode, from
 *	                where the attributes begin
 *	a set           count times:
 *	                u16 type, u16 length, name, u32 length, value
 *
 * A type is 0 user, 1 trusted, 2 security; with 256, the value is a u64 that says
 * where the real one is, length first: values that many sets have are kept once.
 *
 * libsquashfuse 0.1 takes trusted for security, and the other way round, and does
 * not look whether a value is where its set says.  So only its blocks are used.
 */
#include "formats/squashfs/walk.h"

#include <errno.h>
#include <string.h>

#include "base/number.h"

/* As the kernel: of a list of names, and of a value. */
#define NAMES_MAX 65536u
#define VALUE_MAX 65536u
#define NAME_MAX_BYTES 255u
#define TOTAL_MAX ((size_t)16 << 20)

static const char *const prefixes[] = {"user.", "trusted.", "security."};

/* Read n bytes; false: they cannot be had. */
static bool read_at(struct squashfs_walk *w, sqfs_md_cursor *cur, void *to,
		    size_t n)
{
	return n == 0 || (squashfs_walk_cursor(w, cur) &&
			  sqfs_md_read(&w->fs, cur, to, n) == SQFS_OK);
}

static bool read_u32(struct squashfs_walk *w, sqfs_md_cursor *cur, uint32_t *v)
{
	unsigned char raw[4];

	if (!read_at(w, cur, raw, sizeof raw))
		return false;
	*v = load_le32(raw);
	return true;
}

static void cursor_of(const struct squashfs_walk *w, uint64_t where,
		      sqfs_md_cursor *cur)
{
	sqfs_md_cursor_inode(cur, where,
			     (sqfs_off_t)w->fs.xattr_info.xattr_table_start);
}

/* n bytes more in the arena, where *at says; NULL: no memory. */
static char *room_for(struct squashfs_walk *w, size_t n, size_t *at)
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

/* The value that a cursor points at, which goes on behind it. */
static int read_value(struct squashfs_walk *w, sqfs_md_cursor *cur,
		      bool elsewhere, size_t *at, size_t *size)
{
	sqfs_md_cursor there;
	unsigned char raw[8];
	uint32_t n;
	char *to;

	if (!read_u32(w, cur, &n))
		return -EINVAL;
	if (elsewhere) {
		if (n != sizeof raw || !read_at(w, cur, raw, sizeof raw))
			return -EINVAL;
		cursor_of(w, load_le64(raw), &there);
		cur = &there;
		if (!read_u32(w, cur, &n))
			return -EINVAL;
	}
	if (n > VALUE_MAX || n > TOTAL_MAX - w->bytes_used)
		return -EINVAL;
	to = room_for(w, n, at);
	if (!to)
		return -ENOMEM;
	*size = n;
	return read_at(w, cur, to, n) ? 0 : -EINVAL;
}

/* One attribute: its places, and its size. */
static int read_one(struct squashfs_walk *w, sqfs_md_cursor *cur, size_t *names)
{
	struct member_xattr x = {0};
	unsigned char head[4];
	unsigned type, n, prefix;
	size_t name, value = 0;
	char *to;
	int r;

	if (!read_at(w, cur, head, sizeof head))
		return -EINVAL;
	type = load_le16(head);
	n = load_le16(head + 2);
	if ((type & 255) >= sizeof prefixes / sizeof prefixes[0])
		return -EINVAL;
	prefix = (unsigned)strlen(prefixes[type & 255]);
	*names += prefix + n + 1;
	if (n == 0 || prefix + n > NAME_MAX_BYTES || *names > NAMES_MAX)
		return -EINVAL;
	to = room_for(w, prefix + n + 1, &name);
	if (!to)
		return -ENOMEM;
	memcpy(to, prefixes[type & 255], prefix);
	to[prefix + n] = '\0';
	if (!read_at(w, cur, to + prefix, n) || strlen(to) != prefix + n)
		return -EINVAL;
	r = read_value(w, cur, type & 256, &value, &x.size);
	if (r < 0)
		return r;
	if (!vec_push(&w->places, name) || !vec_push(&w->places, value) ||
	    !vec_push(&w->xattrs, x))
		return -ENOMEM;
	return 0;
}

/* All of a set, up to what is damaged. */
static int read_set(struct squashfs_walk *w, uint32_t set)
{
	unsigned char raw[16];
	sqfs_md_cursor cur;
	size_t names = 0;
	int r = 0;

	if (squashfs_walk_table(w, &w->fs.xattr_table,
				w->fs.xattr_info.xattr_ids, set,
				raw) != SQFS_OK)
		return -EINVAL;
	cursor_of(w, load_le64(raw), &cur);
	for (uint32_t i = load_le32(raw + 8); i > 0 && r == 0; i--)
		r = read_one(w, &cur, &names);
	return r;
}

static int load_set(struct squashfs_walk *w, uint32_t set)
{
	int r;

	w->xattrs_of = SQUASHFS_INVALID_XATTR;
	w->xattrs.n = w->places.n = w->bytes_used = 0;
	r = read_set(w, set);
	if (r == -ENOMEM)
		return error_set(w->err, r,
				 "no memory for its list of members");
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
		r = load_set(w, inode->xattr);
		if (r < 0)
			return r;
	}
	m->xattrs = w->xattrs.at;
	m->n_xattrs = w->xattrs.n;
	return 0;
}
