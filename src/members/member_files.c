/* SPDX-License-Identifier: BSD-2-Clause */
/* A member table shown as a subtree of files: every answer is an array access. */
#include "members/member_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/number.h"

/*
 * Node n is record n; members_check has verified the records.  A hard link is only a
 * name: the node listed under it is that of the inode.
 *
 * Where the bytes are:
 *
 *	range      one extent of the backing
 *	sparse     extents, and zeros between them
 *	blocks     block after block: a chunk, a range of the file where it is
 *	           stored as it is, or zeros
 *	fragment   a piece of a block that several members share
 */

struct member_files {
	struct files files; /* first member */
	const struct members *m;
	const struct volume *volumes;
	unsigned n;
	uint64_t root;
};

static const struct member_files *member_files_of(const struct files *f)
{
	return (const struct member_files *)f;
}

/* Return the record of a node, or NULL if there is none.  Node 0 is the record that
 * is shown as the root. */
static const struct member_record *member_files_record(const struct files *f,
						       uint64_t node)
{
	const struct member_files *s = member_files_of(f);

	if (node == 0)
		return &s->m->at[s->root];
	return node < s->m->n ? &s->m->at[node] : NULL;
}

/* Return the source of the record's bytes, or NULL if it is missing. */
static const struct volume *member_files_volume(const struct member_files *s,
						const struct member_record *r)
{
	unsigned i = member_common(s->m, r)->volume;

	return i < s->n ? &s->volumes[i] : NULL;
}

static uint64_t mf_count(const struct files *f, uint64_t dir)
{
	const struct member_record *r = member_files_record(f, dir);

	return r && r->kind == MEMBER_DIR ? r->size : 0;
}

static uint64_t mf_child(const struct files *f, uint64_t dir, uint64_t i,
			 uint32_t *type)
{
	const struct members *m = member_files_of(f)->m;
	uint64_t node = member_files_record(f, dir)->data + i;

	*type = m->at[node].mode & S_IFMT;
	return m->at[node].kind == MEMBER_LINK ? m->at[node].data : node;
}

static int mf_name(const struct files *f, uint64_t dir, uint64_t i, char *buf,
		   size_t n)
{
	const struct members *m = member_files_of(f)->m;
	const char *name =
		member_name(m, &m->at[member_files_record(f, dir)->data + i]);
	size_t len = strlen(name) + 1;

	if (len > n)
		return -ENAMETOOLONG;
	memcpy(buf, name, len);
	return 0;
}

static int mf_find(const struct files *f, uint64_t dir, const char *name,
		   uint64_t *node)
{
	const struct member_files *s = member_files_of(f);
	int r = members_find(s->m, dir ? dir : s->root, name, node);

	if (r == 0 && s->m->at[*node].kind == MEMBER_LINK)
		*node = s->m->at[*node].data;
	return r;
}

static int mf_parent(const struct files *f, uint64_t node, uint64_t *dir)
{
	const struct member_files *s = member_files_of(f);

	if (node >= s->m->n || node == 0)
		return -ENOENT;
	*dir = s->m->at[node].parent;
	if (*dir == s->root)
		*dir = 0;
	return 0;
}

/* Return how many bytes of a member's blocks are holes.  Each read asks for this, so
 * holes were counted when the table was finished.  The last block may be short. */
static uint64_t hole_of_blocks(const struct members *m,
			       const struct member_record *r)
{
	const struct member_block *b = &m->blocks[r->data];
	uint64_t n = m->block_size ? div_up(r->size, m->block_size) : 0;
	uint64_t hole = (uint64_t)b->holes * m->block_size;

	if (n && member_block_is_hole(&b[n - 1]))
		hole -= min_u64(hole, n * m->block_size - r->size);
	return min_u64(hole, r->size);
}

static int mf_attr(struct files *f, uint64_t node, struct pinner *p,
		   struct attr *out, struct error *err)
{
	const struct member_record *r = member_files_record(f, node);
	const struct member_common *common;

	(void)p;
	(void)err;
	if (!r || r->kind == MEMBER_LINK)
		return -ENOENT;
	out->size = r->size;
	common = member_common(member_files_of(f)->m, r);
	out->mtime = member_mtime(member_files_of(f)->m, r);
	out->nsec = member_nsec(r);
	out->mode = r->mode;
	out->nlink = common->nlink;
	out->stored = true;
	out->uid = common->uid;
	out->gid = common->gid;
	if (S_ISBLK(r->mode) || S_ISCHR(r->mode))
		out->rdev = r->data;
	if (r->kind == MEMBER_SPARSE)
		out->hole =
			r->size - member_files_of(f)->m->extents[r->data].pos;
	else if (r->kind == MEMBER_BLOCKS)
		out->hole = hole_of_blocks(member_files_of(f)->m, r);
	else if (r->kind == MEMBER_FILE)
		out->hole = min_u64((r->data >> 32) * 4096, r->size);
	return 0;
}

static const char *mf_link(const struct files *f, uint64_t node)
{
	const struct member_record *r = member_files_record(f, node);

	return r && r->kind == MEMBER_SYMLINK
		       ? member_files_of(f)->m->names + r->data
		       : NULL;
}

/* ---- content ------------------------------------------------------------- */

/* A fill of zeros: one byte, repeated. */
static const struct fill zeros = {"", 1};

/* Return the first run of a sparse member that ends after `off`, or n if there is
 * none. */
static uint64_t sparse_find(const struct member_extent *x, uint64_t n,
			    uint64_t off)
{
	struct bisect b = bisect_in(0, n);

	while (bisect_next(&b))
		bisect_answer(&b, x[b.mid].off + x[b.mid].len > off);
	return b.lo;
}

static void map_sparse(const struct members *m, const struct member_record *r,
		       const struct backing *b, uint64_t off, struct plan *p)
{
	uint64_t n = m->extents[r->data].off;
	const struct member_extent *x = &m->extents[r->data + 1];
	uint64_t i = sparse_find(x, n, off);

	while (off < r->size && plan_open(p)) {
		uint64_t next = i < n ? x[i].off : r->size, skip, took;

		if (off < next) {
			took = plan_fill(p, zeros, 0, next - off);
		} else {
			skip = off - x[i].off;
			took = backing_map(b, x[i].pos + skip, x[i].len - skip,
					   p);
			if (took == x[i].len - skip)
				i++;
		}
		if (!took)
			return;
		off += took;
	}
}

/* Map `len` bytes of block `i` from `skip` on.  Return the bytes that were taken. */
static uint64_t map_block(const struct members *m, const struct volume *v,
			  uint64_t i, uint64_t skip, uint64_t len,
			  struct plan *p)
{
	const struct member_block *b = &m->blocks[i];

	if (!b->stored)
		return plan_fill(p, zeros, 0, len);
	if (b->flags & MEMBER_STORED)
		return backing_map(&v->backing, b->pos + skip, len, p);
	return plan_chunk(p, v->blocks, i, skip, len);
}

static uint64_t map_in_block(const struct members *m, const struct volume *v,
			     uint64_t where, uint64_t skip, uint64_t len,
			     struct plan *p)
{
	return map_block(m, v, where >> 20, (where & ((1u << 20) - 1)) + skip,
			 len, p);
}

static void map_blocks(const struct members *m, const struct member_record *r,
		       const struct volume *v, uint64_t off, struct plan *p)
{
	while (off < r->size && plan_open(p)) {
		uint64_t i = r->data + off / m->block_size;
		uint64_t skip = off % m->block_size;
		uint64_t len = min_u64(r->size - off, m->block_size - skip);
		uint64_t took;

		if (m->blocks[i].flags & MEMBER_TAIL)
			took = map_in_block(m, v, m->blocks[i].pos, skip, len,
					    p);
		else
			took = map_block(m, v, i, skip, len, p);
		if (!took)
			return;
		off += took;
	}
}

struct backing volume_range(const struct volume *v, uint64_t off, uint64_t len)
{
	return v->range ? v->range(v, off, len)
			: backing_part(&v->backing, off, len);
}

static int mf_map(const struct files *f, uint64_t node, uint64_t off,
		  struct plan *p, struct error *err)
{
	const struct member_files *s = member_files_of(f);
	const struct member_record *r = member_files_record(f, node);
	const struct volume *v;
	struct backing b;

	if (r && r->kind == MEMBER_FILE) {
		plan_file(p, (uint32_t)r->data, off, r->size - off);
		return 0;
	}
	v = r ? member_files_volume(s, r) : NULL;
	if (!v)
		return error_set(err, -EIO,
				 "the source of this member is missing");
	switch (r->kind) {
	case MEMBER_RANGE:
		b = volume_range(v, r->data, r->size);
		backing_map(&b, off, r->size - off, p);
		return 0;
	case MEMBER_SPARSE:
		map_sparse(s->m, r, &v->backing, off, p);
		return 0;
	case MEMBER_FRAGMENT:
	case MEMBER_BLOCKS:
		if (!v->blocks)
			return error_set(
				err, -EIO,
				"the blocks of this member are missing");
		if (r->kind == MEMBER_BLOCKS)
			map_blocks(s->m, r, v, off, p);
		else
			map_in_block(s->m, v, r->data, off, r->size - off, p);
		return 0;
	default:
		return error_set(err, -EIO, "it has no content");
	}
}

/* ---- attributes ---------------------------------------------------------- */

static ssize_t member_files_deliver(const void *value, size_t size, char *buf,
				    size_t n)
{
	if (n && size > n)
		return -ERANGE;
	if (n && size)
		memcpy(buf, value, size);
	return (ssize_t)size;
}

static ssize_t mf_stored_xattr(const struct files *f, uint64_t node,
			       const char *name, char *buf, size_t n)
{
	struct member_xattr_at x;

	member_xattr_first(member_files_of(f)->m, member_files_record(f, node),
			   &x);
	while (member_xattr_next(&x))
		if (strlen(name) == x.name_len &&
		    !memcmp(name, x.name, x.name_len))
			return member_files_deliver(x.value, x.size, buf, n);
	return -ENODATA;
}

static ssize_t mf_stored_xattr_list(const struct files *f, uint64_t node,
				    char *buf, size_t n)
{
	struct member_xattr_at x;
	size_t used = 0;

	member_xattr_first(member_files_of(f)->m, member_files_record(f, node),
			   &x);
	while (member_xattr_next(&x)) {
		if (used + x.name_len + 1 <= n) {
			memcpy(buf + used, x.name, x.name_len);
			buf[used + x.name_len] = '\0';
		}
		used += x.name_len + 1;
	}
	return n && used > n ? -ERANGE : (ssize_t)used;
}

/* The attribute user.tensorfs.source: the file that holds the member's bytes. */
static ssize_t mf_xattr(struct files *f, uint64_t node, const char *key,
			struct pinner *p, char *buf, size_t n)
{
	const struct member_files *s = member_files_of(f);
	const struct member_record *r = member_files_record(f, node);
	const struct volume *v = r ? member_files_volume(s, r) : NULL;
	char text[512];
	int len;

	(void)p;
	if (strcmp(key, "source") || !v || !S_ISREG(r->mode))
		return -ENODATA;
	len = snprintf(text, sizeof text, "%s%s",
		       v->backing.stream ? "decoded from " : "",
		       backing_name(&v->backing));
	if (r->kind == MEMBER_RANGE && len > 0 && (size_t)len < sizeof text)
		len += snprintf(text + len, sizeof text - (size_t)len,
				" at %llu",
				(unsigned long long)(r->data + v->backing.pos));
	return member_files_deliver(text, (size_t)len, buf, n);
}

static const char *mf_xattr_keys(const struct files *f, uint64_t node,
				 size_t *len)
{
	const struct member_record *r = member_files_record(f, node);

	*len = 0;
	if (!r || !S_ISREG(r->mode))
		return NULL;
	*len = sizeof "source";
	return "source";
}

static void mf_free(struct files *f)
{
	free(f);
}

static const struct files_ops member_files_ops = {
	.count = mf_count,
	.child = mf_child,
	.name = mf_name,
	.find = mf_find,
	.parent = mf_parent,
	.attr = mf_attr,
	.map = mf_map,
	.xattr = mf_xattr,
	.xattr_keys = mf_xattr_keys,
	.link = mf_link,
	.stored_xattr = mf_stored_xattr,
	.stored_xattr_list = mf_stored_xattr_list,
	.free = mf_free,
};

const char *member_files_place(const struct files *f, uint64_t node,
			       uint64_t *at)
{
	const struct member_files *s = member_files_of(f);
	const struct member_record *r = member_files_record(f, node);
	const struct volume *v = r ? member_files_volume(s, r) : NULL;
	const struct backing *b;
	const char *name, *slash;

	*at = UINT64_MAX;
	if (!v || r->kind == MEMBER_FILE)
		return NULL;
	b = &v->backing;
	if (r->kind == MEMBER_RANGE && backing_is_plain(b))
		*at = b->pos + r->data;
	name = backing_name(b);
	slash = strrchr(name, '/');
	return slash ? slash + 1 : name;
}

bool member_files_are(const struct files *f)
{
	return f->ops == &member_files_ops;
}

int member_files_new(struct files **out, const struct members *m,
		     const struct volume *volumes, unsigned n, uint64_t root,
		     struct error *err)
{
	struct member_files *s = calloc(1, sizeof *s);

	*out = NULL;
	if (!s)
		return error_no_memory(err, "the files of an archive");
	s->files.ops = &member_files_ops;
	s->m = m;
	s->volumes = volumes;
	s->n = n;
	s->root = root;
	*out = &s->files;
	return 0;
}

struct backing member_backing(struct handles *h, struct pinner *p,
			      const struct members *m, uint64_t i,
			      const struct volume *volumes, struct files *files)
{
	const struct member_record *r = &m->at[i];
	struct backing b = {.handles = h, .pinner = p, .size = r->size};
	const struct volume *v;

	if (r->kind == MEMBER_FILE) {
		b.file = (uint32_t)r->data;
		return b;
	}
	v = &volumes[member_common(m, r)->volume];
	if (r->kind == MEMBER_RANGE)
		return volume_range(v, r->data, r->size);
	b.file = v->backing.file;
	b.files = files;
	b.node = i;
	return b;
}
