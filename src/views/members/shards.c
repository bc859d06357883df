/* SPDX-License-Identifier: BSD-2-Clause */
/* shards/NAME-000000.tar: the members as WebDataset shards, without writing these. */

/*
 * The shards are byte for byte those that `pack --shards --owner=0:0 --numeric-owner`
 * makes of the members: the same code decides which member is where (shards/layout.h)
 * and writes headers.  Stored are, for each member of a shard, its record and where it
 * begins, 12 bytes.  A shard is
 *
 *	| header 512 | bytes of the member | zeros | header | ... | zeros to 10240 |
 *
 * A header that fits into one block is made while mapping.  An extended header (for
 * names that cannot be cut, sizes from 8 GiB on, times before 1970) is a chunk, made
 * when it is read.  Owners are 0, so that a shard is the same in every mount.
 */
#include "views/members/shards.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/number.h"
#include "shards/names.h"
#include "shards/ustar.h"
#include "views/members/table.h"

/* Longer paths, in bytes, do not fit into a header. */
#define PATH_PLAIN 256

static struct member_view_shards *shards_view_self(const struct files *f)
{
	return (struct member_view_shards *)(uintptr_t)f;
}

static const struct members *
shards_view_members(const struct member_view_shards *s)
{
	return member_views_args(s->b)->m;
}

/* ---- names --------------------------------------------------------------- */

/* Node 0 is the directory, k + 1 its file k: shards, then the index. */
static uint64_t shards_view_count(const struct files *f, uint64_t dir)
{
	const struct member_view_shards *s = shards_view_self(f);

	return dir || s->why.code ? 0 : s->n_shards + 1;
}

static uint64_t shards_view_child(const struct files *f, uint64_t dir,
				  uint64_t i, uint32_t *type)
{
	(void)f;
	(void)dir;
	*type = S_IFREG;
	return i + 1;
}

static int shards_view_name(const struct files *f, uint64_t dir, uint64_t i,
			    char *buf, size_t n)
{
	const struct member_view_shards *s = shards_view_self(f);

	(void)dir;
	if (i > s->n_shards)
		return -ENOENT;
	shards_file_name(s->name, i, s->n_shards, buf, n);
	return 0;
}

static int shards_view_name_of(const struct files *f, uint64_t node, char *buf,
			       size_t n)
{
	return shards_view_name(f, 0, node - 1, buf, n);
}

static int shards_view_find(const struct files *f, uint64_t dir,
			    const char *name, uint64_t *node)
{
	const struct member_view_shards *s = shards_view_self(f);
	int r;

	if (s->why.code)
		return s->why.code;
	r = dir ? -ENOENT : shards_file_find(s->name, s->n_shards, name, node);
	if (r == 0)
		++*node;
	return r;
}

static int shards_view_parent(const struct files *f, uint64_t node,
			      uint64_t *dir)
{
	if (node > shards_view_count(f, 0))
		return -ENOENT;
	*dir = 0;
	return 0;
}

/* ---- attributes ---------------------------------------------------------- */

static bool shards_view_is_index(const struct member_view_shards *s,
				 uint64_t node)
{
	return node == s->n_shards + 1;
}

static bool shards_view_attr_is_slow(const struct files *f, uint64_t node)
{
	return shards_view_is_index(shards_view_self(f), node);
}

static int shards_view_index_size(struct member_view_shards *s,
				  struct pinner *p, uint64_t *size,
				  struct error *err)
{
	struct extent e = {.kind = EXTENT_CHUNK, .len = 1};
	struct span span;
	int r;

	e.u.chunk.set = &s->set;
	e.u.chunk.index = s->n;
	e.u.chunk.slice = EXTENT_WHOLE;
	r = p->pin(p, &e, &span, err);
	if (r < 0)
		return r;
	*size = span.buf->size;
	p->unpin(p, &span);
	return 0;
}

static int shards_view_attr(struct files *f, uint64_t node, struct pinner *p,
			    struct attr *out, struct error *err)
{
	struct member_view_shards *s = shards_view_self(f);

	out->mtime = member_mtime(
		shards_view_members(s),
		&shards_view_members(s)->at[member_views_args(s->b)->root]);
	out->mode = S_IFREG | 0444;
	out->nlink = 1;
	if (node == 0) {
		out->mode = S_IFDIR | 0555;
		out->nlink = 2;
		return 0;
	}
	if (node > shards_view_count(f, 0))
		return -ENOENT;
	if (shards_view_is_index(s, node))
		return shards_view_index_size(s, p, &out->size, err);
	out->size = ustar_archive_size(
		member_view_shard_taken(s, &s->shard[node - 1]));
	return 0;
}

/* Return the xattr "error" of the directory: the reason why there are no shards. */
static ssize_t shards_view_xattr(struct files *f, uint64_t node,
				 const char *key, struct pinner *p, char *buf,
				 size_t n)
{
	const struct member_view_shards *s = shards_view_self(f);
	size_t len = strlen(s->why.text);

	(void)p;
	if (node || !s->why.code || strcmp(key, "error"))
		return -ENODATA;
	if (n && n < len)
		return -ERANGE;
	if (n)
		memcpy(buf, s->why.text, len);
	return (ssize_t)len;
}

static const char *shards_view_xattr_keys(const struct files *f, uint64_t node,
					  size_t *len)
{
	bool has = !node && shards_view_self(f)->why.code;

	*len = has ? sizeof "error" : 0;
	return has ? "error" : NULL;
}

/* ---- content ------------------------------------------------------------- */

/* Return the path of a record, in `buf`, if it fits into a header; else NULL. */
static const char *shards_view_plain_path(const struct member_view_shards *s,
					  uint64_t record,
					  char buf[PATH_PLAIN + 1])
{
	const struct members *m = shards_view_members(s);
	const uint64_t root = member_views_args(s->b)->root;
	size_t at = PATH_PLAIN;

	buf[at] = '\0';
	for (uint64_t i = record; i != root; i = m->at[i].parent) {
		const char *name = member_name(m, &m->at[i]);
		size_t n = strlen(name);

		if (n + (i != record) > at)
			return NULL;
		if (i != record)
			buf[--at] = '/';
		at -= n;
		memcpy(buf + at, name, n);
	}
	return buf + at;
}

static void shards_view_map_header(const struct member_view_shards *s,
				   uint64_t i, uint64_t size, uint64_t off,
				   struct plan *p)
{
	const struct members *t = shards_view_members(s);
	const struct member_record *r =
		&t->at[member_view_node(s->b, s->record[i])];
	unsigned char header[USTAR_BLOCK];
	char buf[PATH_PLAIN + 1];
	struct ustar m = {.path = shards_view_plain_path(s, s->record[i], buf),
			  .mode = r->mode,
			  .size = r->size,
			  .mtime = member_mtime(t, r)};

	if (size > USTAR_BLOCK || !m.path) {
		plan_chunk(p, (struct chunk_set *)(uintptr_t)&s->set, i, off,
			   size - off);
		return;
	}
	ustar_header(header, &m);
	plan_copy(p, header + off, USTAR_BLOCK - off);
}

static void shards_view_map_zeros(struct plan *p, uint64_t n)
{
	static const unsigned char zero[1];

	plan_fill(p, (struct fill){.pattern = zero, .width = 1}, 0, n);
}

/* Map member i from byte `off` of what it takes in the tar, up to the end of its
 * header, content or padding. */
static int shards_view_map_member(const struct member_view_shards *s,
				  uint64_t i, uint64_t off, struct plan *p,
				  struct error *err)
{
	const struct member_views_args *a = member_views_args(s->b);
	const uint64_t node = member_view_node(s->b, s->record[i]);
	const uint64_t size = a->m->at[node].size, want = p->want;
	const uint64_t all = s->at[i + 1] - s->at[i];
	const uint64_t header = all - ustar_padded(size);
	int r;

	if (off < header) {
		shards_view_map_header(s, i, header, off, p);
		return 0;
	}
	if (off >= header + size) {
		shards_view_map_zeros(p, all - off);
		return 0;
	}
	off -= header;
	p->want = min_u64(want, p->have + size - off);
	r = a->members->ops->map(a->members, node, off, p, err);
	p->want = want;
	return r;
}

/* Return the member that has byte `at`, counted over all shards. */
static uint64_t shards_view_member_at(const struct member_view_shards *s,
				      const struct member_view_shard *shard,
				      uint64_t at)
{
	struct bisect b =
		bisect_in(shard->first + 1, shard->first + shard->files);

	while (bisect_next(&b))
		bisect_answer(&b, s->at[b.mid] > at);
	return b.lo - 1;
}

static int shards_view_map_shard(const struct member_view_shards *s,
				 const struct member_view_shard *shard,
				 uint64_t off, struct plan *p,
				 struct error *err)
{
	const uint64_t base = s->at[shard->first],
		       end = member_view_shard_taken(s, shard);
	uint64_t i =
		off < end ? shards_view_member_at(s, shard, base + off) : 0;
	int r = 0;

	while (r == 0 && plan_open(p)) {
		const uint64_t before = p->have;

		if (off >= end) {
			shards_view_map_zeros(p, p->want - p->have);
		} else {
			while (s->at[i + 1] <= base + off)
				i++;
			r = shards_view_map_member(s, i, base + off - s->at[i],
						   p, err);
		}
		if (p->have == before)
			break;
		off += p->have - before;
	}
	return r;
}

static int shards_view_map(const struct files *f, uint64_t node, uint64_t off,
			   struct plan *p, struct error *err)
{
	struct member_view_shards *s = shards_view_self(f);

	if (!node || node > shards_view_count(f, 0))
		return error_set(err, -ENOENT, "no such file");
	if (!shards_view_is_index(s, node))
		return shards_view_map_shard(s, &s->shard[node - 1], off, p,
					     err);
	plan_chunk(p, &s->set, s->n, off, p->want - p->have);
	return 0;
}

static void shards_view_free(struct files *f)
{
	struct member_view_shards *s = shards_view_self(f);

	free(s->record);
	free(s->at);
	free(s->shard);
	free(s);
}

static const struct files_ops shards_files_ops = {
	.count = shards_view_count,
	.child = shards_view_child,
	.name = shards_view_name,
	.name_of = shards_view_name_of,
	.find = shards_view_find,
	.parent = shards_view_parent,
	.attr_is_slow = shards_view_attr_is_slow,
	.attr = shards_view_attr,
	.map = shards_view_map,
	.xattr = shards_view_xattr,
	.xattr_keys = shards_view_xattr_keys,
	.free = shards_view_free,
};

/* ---- the view ------------------------------------------------------------ */

/* Name the shards after the source, up to the first dot: "train" for "train.tar.zst". */
static void shards_view_set_name(struct member_view_shards *s,
				 const char *source)
{
	size_t end = strlen(source), begin;

	while (end && source[end - 1] == '/')
		end--;
	for (begin = end; begin && source[begin - 1] != '/';)
		begin--;
	shards_name_from_source(
		s->name, source + begin,
		min_u64(end - begin, strcspn(source + begin, "./")));
}

static bool shards_fit(const struct member_views_args *a)
{
	return a->m->counts[0] > 0;
}

static uint64_t shards_numbers(const struct member_views_args *a)
{
	return min_u64(a->m->counts[0] + a->m->counts[3], SHARDS_MOST) + 2;
}

static int shards_make(struct member_views *b, struct files **out,
		       struct error *err)
{
	struct member_view_shards *s = calloc(1, sizeof *s);
	int r;

	*out = NULL;
	if (!s)
		return error_no_memory(err, "the view shards/");
	s->files.ops = &shards_files_ops;
	s->b = b;
	member_view_shards_chunks(s);
	shards_view_set_name(s, member_views_args(b)->source
					? member_views_args(b)->source
					: "");
	r = member_view_shards_plan(s, &s->why);
	if (r == -ENOMEM) {
		shards_view_free(&s->files);
		return error_no_memory(err, "the layout of shards/");
	}
	*out = &s->files;
	return 0;
}

const struct member_view_ops member_view_shards = {
	.name = "shards",
	.summary = "shards/NAME-NUMBER.tar, members as WebDataset shards",
	.top = "shards",
	.type = S_IFDIR,
	.fits = shards_fit,
	.numbers = shards_numbers,
	.make = shards_make,
};
