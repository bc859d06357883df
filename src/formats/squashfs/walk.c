/* SPDX-License-Identifier: BSD-2-Clause */
/* squashfs: walk directories and inodes with libsquashfuse, in the child process. */
/*
 * The walk is depth first, as inodes and lists of names are stored, so that each
 * block of metadata is decoded about once: libsquashfuse caches the last eight.
 *
 * A directory is entered only once, which ends loops.  All lists of directory
 * entries together may be no longer than the table that they are in, and so may all
 * lists of blocks: otherwise the overlapping lists of a small image would have
 * entries without end.  An inode that was met before under another name is a hard
 * link.  What cannot be read is noted and left out, and the walk goes on; it ends
 * early only if there is no memory or the source cannot be read.
 */
#include "formats/squashfs/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"

/* The longest path in bytes; what is deeper is left out.  No longer path can be
 * opened. */
#define PATH_LONGEST 16384
#define NOBODY 65534
#define BEAT_EVERY 256

struct frame {
	sqfs_dir dir;
	size_t path; /* length of its path in w->path, in bytes */
	bool cut;    /* its list was cut to what is left of the table */
};
typedef vec(struct frame) frames;

/* ---- a map of numbers, with open addressing --------------------------------- */

static size_t map_slot(const struct squashfs_map *m, uint64_t key)
{
	uint64_t h = (key + 1) * UINT64_C(0x9e3779b97f4a7c15);
	size_t i = (size_t)(h >> 20) & (m->room - 1);

	while (m->at[2 * i] && m->at[2 * i] != key + 1)
		i = (i + 1) & (m->room - 1);
	return 2 * i;
}

uint64_t *squashfs_map_find(const struct squashfs_map *m, uint64_t key)
{
	size_t i;

	if (!m->room)
		return NULL;
	i = map_slot(m, key);
	return m->at[i] ? &m->at[i + 1] : NULL;
}

static bool map_grow(struct squashfs_map *m)
{
	struct squashfs_map old = *m;

	m->room = old.room ? 2 * old.room : 256;
	m->at = calloc(m->room, 2 * sizeof *m->at);
	if (!m->at) {
		*m = old;
		return false;
	}
	for (size_t i = 0; i < 2 * old.room; i += 2)
		if (old.at[i])
			memcpy(&m->at[map_slot(m, old.at[i] - 1)], &old.at[i],
			       2 * sizeof *m->at);
	free(old.at);
	return true;
}

bool squashfs_map_set(struct squashfs_map *m, uint64_t key, uint64_t value)
{
	size_t i;

	if (2 * m->n >= m->room && !map_grow(m))
		return false;
	i = map_slot(m, key);
	m->n += !m->at[i];
	m->at[i] = key + 1;
	m->at[i + 1] = value;
	return true;
}

/* ---- libsquashfuse, with checks before each step ------------------------- */

int squashfs_walk_failed(struct squashfs_walk *w)
{
	int e = errno;

	errno = 0;
	if (e == ENOMEM)
		return error_no_memory(w->err, "the list of members");
	if (e == EIO || e == ESTALE)
		return error_errno(w->err, -EIO, "cannot read its metadata");
	return 0;
}

bool squashfs_walk_cursor(struct squashfs_walk *w, const sqfs_md_cursor *cur)
{
	sqfs_off_t pos = cur->block;
	sqfs_block *block;

	return pos > 0 && sqfs_md_cache(&w->fs, &pos, &block) == SQFS_OK &&
	       cur->offset < block->size;
}

sqfs_err squashfs_walk_table(struct squashfs_walk *w, const sqfs_table *table,
			     uint64_t count, uint64_t i, void *out)
{
	uint64_t at = i * table->each;
	size_t off = at % SQUASHFS_METADATA_SIZE;
	sqfs_block *block;
	sqfs_off_t pos;

	if (i >= count || !table->blocks)
		return SQFS_ERR;
	pos = (sqfs_off_t)table->blocks[at / SQUASHFS_METADATA_SIZE];
	if (pos <= 0 || sqfs_md_cache(&w->fs, &pos, &block) != SQFS_OK ||
	    off > block->size || block->size - off < table->each)
		return SQFS_ERR;
	memcpy(out, (char *)block->data + off, table->each);
	return SQFS_OK;
}

void squashfs_walk_beat(struct squashfs_walk *w)
{
	uint64_t n = members_count(w->b);

	if (n + w->blocks / 16 < w->beaten + BEAT_EVERY)
		return;
	w->beaten = n + w->blocks / 16;
	if (w->beat)
		w->beat(w->ctx, n);
}

static uint32_t squashfs_owner_of(struct squashfs_walk *w, unsigned i)
{
	unsigned char raw[4];

	if (squashfs_walk_table(w, &w->fs.id_table, w->fs.sb.no_ids, i, raw) ==
	    SQFS_OK)
		return load_le32(raw);
	members_damage(
		w->b, "unknown owner",
		"%s: its owner, number %u, is not in the table of owners",
		squashfs_walk_path(w), i);
	return NOBODY;
}

/* ---- inodes -------------------------------------------------------------- */

/* Return true if the target of a symlink is too long.  libsquashfuse would skip the
 * target to read what follows it. */
static bool is_long_symlink(struct squashfs_walk *w, sqfs_md_cursor cur)
{
	unsigned char raw[sizeof(struct squashfs_symlink_inode)];
	sqfs_md_cursor again = cur;

	if (sqfs_md_read(&w->fs, &cur, raw, 2) != SQFS_OK ||
	    load_le16(raw) != SQUASHFS_LSYMLINK_TYPE)
		return false;
	return sqfs_md_read(&w->fs, &again, raw, sizeof raw) != SQFS_OK ||
	       load_le32(raw + sizeof raw - 4) >= sizeof w->target;
}

/* Read the inode at position `where`.  Return 0, or -EINVAL if no possible inode is
 * there. */
static int get_squashfs_inode(struct squashfs_walk *w, uint64_t where,
			      sqfs_inode *out)
{
	sqfs_md_cursor cur;

	sqfs_md_cursor_inode(&cur, where,
			     (sqfs_off_t)w->fs.sb.inode_table_start);
	if (!squashfs_walk_cursor(w, &cur) || is_long_symlink(w, cur) ||
	    sqfs_inode_get(&w->fs, out, where) != SQFS_OK)
		return -EINVAL;
	out->base.mode = (uint16_t)((out->base.mode & 07777) |
				    sqfs_mode(out->base.inode_type));
	return 0;
}

static int damaged_inode(struct squashfs_walk *w)
{
	int r = squashfs_walk_failed(w);

	if (r < 0)
		return r;
	members_damage(w->b, "unreadable inode",
		       "%s: its inode is damaged; it is left out",
		       squashfs_walk_path(w));
	return -EINVAL;
}

static int get_target(struct squashfs_walk *w, sqfs_inode *inode,
		      struct member *m)
{
	size_t n = sizeof w->target;

	if (inode->xtra.symlink_size >= sizeof w->target ||
	    !squashfs_walk_cursor(w, &inode->next) ||
	    sqfs_readlink(&w->fs, inode, w->target, &n) != SQFS_OK)
		return damaged_inode(w);
	m->link = w->target;
	return 0;
}

/* Set what depends on the type of the inode. */
static int get_content(struct squashfs_walk *w, sqfs_inode *inode,
		       struct member *m)
{
	switch (m->mode & S_IFMT) {
	case S_IFDIR:
		m->kind = MEMBER_DIR;
		return 0;
	case S_IFREG:
		return squashfs_walk_file(w, inode, m);
	case S_IFLNK:
		m->kind = MEMBER_SYMLINK;
		return get_target(w, inode, m);
	case S_IFBLK:
	case S_IFCHR:
		m->data = makedev((unsigned)inode->xtra.dev.major,
				  (unsigned)inode->xtra.dev.minor);
		return 0;
	default:
		return 0;
	}
}

/* Add one more name of an inode that was met before.  If its first name was left
 * out, this one becomes the first. */
static int add_hard_link(struct squashfs_walk *w, uint32_t mode, uint64_t first)
{
	const struct member m = {.path = squashfs_walk_path(w),
				 .mode = mode,
				 .kind = MEMBER_LINK,
				 .same_as = first};
	int64_t r = members_add(w->b, &m, w->err);

	return r == -ENOENT || r == -EINVAL ? 0 : r < 0 ? (int)r : 0;
}

/* Add the inode at `where` under the name w->path.  Return 1 if it is a directory
 * to be entered, 0 if not, -ENOMEM or -EIO. */
static int add_inode(struct squashfs_walk *w, uint64_t where, sqfs_inode *inode)
{
	struct member m = {.path = squashfs_walk_path(w)};
	uint64_t *first;
	int64_t id;
	int r;

	if (get_squashfs_inode(w, where, inode) < 0)
		return damaged_inode(w) == -EINVAL ? 0 : w->err->code;
	m.mode = inode->base.mode;
	first = squashfs_map_find(&w->seen, where);
	if (first && S_ISDIR(m.mode)) {
		members_damage(w->b, "a directory twice",
			       "%s: this directory is already shown elsewhere; "
			       "it is left out",
			       squashfs_walk_path(w));
		return 0;
	}
	if (first)
		return add_hard_link(w, m.mode, *first);
	m.uid = squashfs_owner_of(w, inode->base.uid);
	m.gid = squashfs_owner_of(w, inode->base.guid);
	m.mtime = inode->base.mtime;
	r = get_content(w, inode, &m);
	if (r == 0)
		r = squashfs_walk_xattrs(w, inode, &m);
	if (r < 0)
		return r == -EINVAL ? 0 : r;
	id = members_add(w->b, &m, w->err);
	if (id < 0)
		return id == -EINVAL || id == -ENOENT ? 0 : (int)id;
	squashfs_walk_beat(w);
	if ((S_ISDIR(m.mode) || inode->nlink > 1 || m.kind == MEMBER_BLOCKS) &&
	    !squashfs_map_set(&w->seen, where,
			      S_ISDIR(m.mode) ? WALK_DIR : (uint64_t)id))
		return error_no_memory(w->err, "the list of members");
	return S_ISDIR(m.mode);
}

/* ---- directories --------------------------------------------------------- */

static bool name_is_possible(const char *name, size_t n)
{
	return strlen(name) == n && !strchr(name, '/') && strcmp(name, ".") &&
	       strcmp(name, "..");
}

/* Check the path of an entry.  libsquashfuse has put the name behind the path of
 * its directory. */
static int check_path(struct squashfs_walk *w, size_t dir, size_t name)
{
	if (!name_is_possible(w->path + dir + 1, name)) {
		members_damage(
			w->b, "impossible name",
			"/%.*s: an entry with an impossible name is left out",
			dir ? (int)dir - 1 : 0, w->path + 1);
		return -EINVAL;
	}
	if (dir + 1 + name > PATH_LONGEST) {
		members_left_out(w->b, "too deep",
				 "%.200s...: its path is longer than %d bytes; "
				 "it is left out",
				 squashfs_walk_path(w), PATH_LONGEST);
		return -EINVAL;
	}
	return 0;
}

static int enter_directory(struct squashfs_walk *w, frames *f,
			   sqfs_inode *inode)
{
	struct frame frame = {.path = strlen(w->path)};

	if (sqfs_dir_open(&w->fs, inode, &frame.dir, 0) != SQFS_OK)
		return 0;
	/* next_entry notes the damage */
	if (frame.dir.total > (sqfs_off_t)w->dirs_left) {
		frame.dir.total = (sqfs_off_t)w->dirs_left;
		frame.cut = true;
	}
	w->dirs_left -= (uint64_t)frame.dir.total;
	if (!vec_push(f, frame))
		return error_no_memory(w->err, "the list of members");
	return 0;
}

/* Read the next entry of the innermost directory.  Return false if there are no
 * more, with *r set to 0 or an error. */
static bool next_entry(struct squashfs_walk *w, struct frame *top,
		       sqfs_dir_entry *entry, int *r)
{
	sqfs_err e = SQFS_OK;
	bool more = top->dir.offset < top->dir.total;

	*r = 0;
	if (!more && !top->dir.header.count && !top->cut)
		return false;
	w->path[top->path] = '/';
	sqfs_dentry_init(entry, w->path + top->path + 1);
	if (more && squashfs_walk_cursor(w, &top->dir.cur) &&
	    sqfs_dir_next(&w->fs, &top->dir, entry, &e) &&
	    top->dir.offset <= top->dir.total) {
		sqfs_dentry_name(entry); /* appends the NUL */
		return true;
	}
	w->path[top->path] = '\0';
	*r = squashfs_walk_failed(w);
	if (*r == 0)
		members_damage(w->b, "damaged directory",
			       "%s: its list of entries is damaged; the "
			       "entries behind the damage are missing",
			       top->path ? squashfs_walk_path(w) : "/");
	return false;
}

static int walk_step(struct squashfs_walk *w, frames *f)
{
	struct frame *top = &f->at[f->n - 1];
	size_t dir = top->path;
	sqfs_dir_entry entry = {0};
	sqfs_inode inode;
	int r;

	errno = 0;
	if (!next_entry(w, top, &entry, &r)) {
		f->n--;
		return r;
	}
	if (check_path(w, dir, sqfs_dentry_name_size(&entry)) < 0)
		return 0;
	r = add_inode(w, sqfs_dentry_inode(&entry), &inode);
	return r == 1 ? enter_directory(w, f, &inode) : r;
}

static int walk_all(struct squashfs_walk *w)
{
	frames f = VEC_EMPTY;
	sqfs_inode root;
	int r;

	errno = 0;
	if (get_squashfs_inode(w, sqfs_inode_root(&w->fs), &root) < 0 ||
	    !S_ISDIR(root.base.mode)) {
		r = squashfs_walk_failed(w);
		return r < 0 ? r
			     : error_set(w->err, -EBADMSG,
					 "it is damaged: its root directory "
					 "cannot be read");
	}
	r = add_inode(w, sqfs_inode_root(&w->fs), &root);
	if (r == 1)
		r = enter_directory(w, &f, &root);
	while (r == 0 && f.n > 0)
		r = walk_step(w, &f);
	vec_free(&f);
	return r;
}

/* ---- limits of lists ------------------------------------------------------ */

/* Return how many bytes the blocks of metadata from `pos` to `end` decode to at
 * most. */
static uint64_t table_room(const struct squashfs_walk *w, uint64_t pos,
			   uint64_t end)
{
	unsigned char raw[2];
	uint64_t room = 0;
	bool compressed;
	uint16_t size;

	while (pos < end && pread(w->fs.fd, raw, sizeof raw,
				  (off_t)(pos + w->fs.offset)) == sizeof raw) {
		sqfs_md_header(load_le16(raw), &compressed, &size);
		room += max_u64(size, SQUASHFS_METADATA_SIZE);
		pos += sizeof raw + size;
	}
	return room;
}

/* Return where the first of the other tables behind `from` begins, or the end of
 * the image. */
static uint64_t table_end(const struct squashfs_walk *w, uint64_t from)
{
	const struct squashfs_super_block *sb = &w->fs.sb;
	const uint64_t tables[] = {
		sb->inode_table_start,    sb->directory_table_start,
		sb->fragment_table_start, sb->id_table_start,
		sb->lookup_table_start,   sb->xattr_id_table_start,
	};
	uint64_t end = w->info->bytes_used;

	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
		if (tables[i] > from)
			end = min_u64(end, tables[i]);
	return end;
}

static void measure_tables(struct squashfs_walk *w)
{
	uint64_t inodes = w->fs.sb.inode_table_start;
	uint64_t dirs = w->fs.sb.directory_table_start;

	w->lists_left = table_room(w, inodes, table_end(w, inodes));
	w->dirs_left = table_room(w, dirs, table_end(w, dirs));
}

/* ---- the whole walk ------------------------------------------------------ */

/* Free the table that sqfs_destroy of libsquashfuse 0.1.105 leaks.  sqfs_init calls
 * sqfs_destroy when it fails. */
static void forget_xattrs(struct squashfs_walk *w)
{
	sqfs_table_destroy(&w->fs.xattr_table);
}

static int open_image(struct squashfs_walk *w, int fd, uint64_t offset)
{
	const struct squashfs_super_block *sb = &w->fs.sb;

	errno = 0;
	switch (sqfs_init(&w->fs, fd, (size_t)offset)) {
	case SQFS_OK:
		break;
	case SQFS_BADCOMP:
		return error_set(w->err, -ENOTSUP,
				 "it is compressed with %s, but libsquashfuse "
				 "was built without it",
				 squashfs_compressor_name(w->info->compressor));
	default:
		forget_xattrs(w);
		if (squashfs_walk_failed(w) < 0)
			return w->err->code;
		return error_set(w->err, -EBADMSG,
				 "it is damaged: its tables of owners, "
				 "fragments or attributes cannot be read");
	}
	if (sb->block_size == w->info->block_size &&
	    sb->fragments == w->info->fragments &&
	    sb->compression == w->info->compressor)
		return 0;
	sqfs_destroy(&w->fs);
	forget_xattrs(w);
	return error_set(w->err, -ESTALE,
			 "it changed while it was being read: mount it again");
}

int squashfs_walk(int fd, uint64_t offset, const struct squashfs_info *info,
		  struct members_builder *b, squashfs_beat *beat, void *ctx,
		  struct error *err)
{
	cleanup_free struct squashfs_walk *w = calloc(1, sizeof *w);
	struct error why = {0};
	int r;

	if (!w)
		return error_no_memory(err, "reading the metadata");
	w->info = info;
	w->b = b;
	w->beat = beat;
	w->ctx = ctx;
	w->err = &why;
	w->xattrs_of = SQUASHFS_INVALID_XATTR;
	members_block_size(b, info->block_size);
	r = open_image(w, fd, offset);
	if (r == 0) {
		measure_tables(w);
		r = squashfs_walk_fragments(w);
		if (r == 0)
			r = walk_all(w);
		sqfs_destroy(&w->fs);
		forget_xattrs(w);
	}
	free(w->seen.at);
	free(w->shared.at);
	vec_free(&w->runs);
	vec_free(&w->list);
	vec_free(&w->xattrs);
	vec_free(&w->places);
	free(w->bytes);
	return r < 0 ? error_set(err, r, "%s", why.text) : 0;
}
