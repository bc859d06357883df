/* SPDX-License-Identifier: BSD-2-Clause */
/* Several archives as one tree: of equal names the later one wins. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "formats/archive/archive.h"

/*
 * The tables of the archives are added one after the other to a new table, whose
 * records say which archive ("volume") their bytes are in.  Tables of extents and
 * blocks are joined, so what refers to them moves by where each begins.
 */

struct joined {
	struct source source; /* first member */
	struct members members;
	struct volume *volumes;
	unsigned n;
	struct nest *nest;
	bool tars; /* all of them are tars */
};

struct joining {
	struct members_builder *b;
	const struct members *m;
	uint16_t volume;
	/* Where the extents and blocks of this table begin in the joined ones. */
	uint64_t extents, blocks;
	/* For each of its records: the inode in `b`, or UINT64_MAX. */
	uint64_t *inode;
	char *path;
	size_t path_room;
	/* The attributes of one record, and their names, each with a NUL. */
	vec(struct member_xattr) xattrs;
	char *names;
	size_t names_room; /* bytes */
	struct error *err;
};

static void joined_close(struct source *source)
{
	struct joined *j = (struct joined *)source;

	if (!j)
		return;
	if (j->nest)
		j->nest->ops->close(j->nest);
	for (unsigned i = 0; j->volumes && i < j->n; i++)
		if (j->volumes[i].blocks)
			squashfs_blocks_free(j->volumes[i].blocks);
	free(j->volumes);
	members_free(&j->members);
	free(j);
}

/* Return the whole path of a record, however long, or NULL if there is no memory. */
static const char *joined_path(struct joining *x, uint64_t record)
{
	size_t need = 2;
	char *p;

	for (uint64_t i = record; i; i = x->m->at[i].parent)
		need += strlen(member_name(x->m, &x->m->at[i])) + 1;
	if (need > x->path_room) {
		p = realloc(x->path, 2 * need);
		if (!p)
			return NULL;
		x->path = p;
		x->path_room = 2 * need;
	}
	members_path(x->m, record, x->path, x->path_room);
	return x->path + 1;
}

/* Make room for the names of all extended attributes of a record. */
static bool joined_names_room(struct joining *x, const struct member_record *r)
{
	struct member_xattr_at at;
	size_t need = 0;
	char *grown;

	member_xattr_first(x->m, r, &at);
	while (member_xattr_next(&at))
		need += at.name_len + 1;
	if (need <= x->names_room)
		return true;
	grown = realloc(x->names, need);
	if (!grown)
		return false;
	x->names = grown;
	x->names_room = need;
	return true;
}

/* Collect the extended attributes of a record in x->xattrs; return false when out of
 * memory. */
static bool joined_xattrs(struct joining *x, const struct member_record *r)
{
	struct member_xattr_at at;
	char *name;

	x->xattrs.n = 0;
	if (!joined_names_room(x, r))
		return false;
	name = x->names;
	member_xattr_first(x->m, r, &at);
	while (member_xattr_next(&at)) {
		struct member_xattr one = {name, at.value, at.size};

		memcpy(name, at.name, at.name_len);
		name[at.name_len] = '\0';
		name += at.name_len + 1;
		if (!vec_push(&x->xattrs, one))
			return false;
	}
	return true;
}

static uint64_t joined_data(const struct joining *x,
			    const struct member_record *r)
{
	switch (r->kind) {
	case MEMBER_SPARSE:
		return r->data + x->extents;
	case MEMBER_BLOCKS:
		return r->data + x->blocks;
	case MEMBER_FRAGMENT:
		return r->data + (x->blocks << 20);
	default:
		return r->data;
	}
}

static int join_record(struct joining *x, uint64_t i)
{
	const struct member_record *r = &x->m->at[i];
	const struct member_common *common = member_common(x->m, r);
	struct member m = {.path = joined_path(x, i),
			   .mode = r->mode,
			   .uid = common->uid,
			   .gid = common->gid,
			   .mtime = member_mtime(x->m, r),
			   .nsec = member_nsec(r),
			   .size = r->size,
			   .kind = r->kind,
			   .data = joined_data(x, r),
			   .volume = x->volume};
	int64_t inode;

	if (!m.path)
		return error_no_memory(x->err, "the path of a member");
	if (!joined_xattrs(x, r))
		return error_no_memory(x->err, "the attributes of a member");
	m.xattrs = x->xattrs.at;
	m.n_xattrs = x->xattrs.n;
	if (r->kind == MEMBER_SYMLINK)
		m.link = x->m->names + r->data;
	else if (r->kind == MEMBER_LINK)
		m.same_as = x->inode[r->data];
	/* The record that a link names may have been left out. */
	if (r->kind == MEMBER_LINK && x->inode[r->data] == UINT64_MAX)
		return 0;
	inode = members_add(x->b, &m, x->err);
	if (inode == -ENOMEM)
		return -ENOMEM;
	if (inode >= 0)
		x->inode[i] = (uint64_t)inode;
	return 0;
}

static int join_tables(struct joining *x)
{
	const struct members *m = x->m;
	int64_t extents = members_add_extents(x->b, m->extents, m->n_extents);
	int64_t blocks = members_add_blocks(x->b, m->blocks, m->n_blocks);

	if (extents < 0 || blocks < 0)
		return error_no_memory(x->err, "the tables of the archives");
	x->extents = (uint64_t)extents;
	x->blocks = (uint64_t)blocks;
	for (uint64_t i = 0; i < m->n_blocks; i++) {
		struct member_block *b = members_block(x->b, x->blocks + i);

		if (b->flags & MEMBER_TAIL)
			b->pos += x->blocks << 20;
	}
	return 0;
}

static int join_archive(struct joining *x)
{
	cleanup_free uint64_t *inode = malloc(x->m->n * sizeof *inode);
	int r = inode ? join_tables(x)
		      : error_no_memory(x->err, "the members of an archive");

	x->inode = inode;
	for (uint64_t i = 0; r == 0 && i < x->m->n; i++) {
		inode[i] = UINT64_MAX;
		if (x->m->at[i].kind != MEMBER_LINK)
			r = join_record(x, i);
	}
	for (uint64_t i = 0; r == 0 && i < x->m->n; i++)
		if (x->m->at[i].kind == MEMBER_LINK)
			r = join_record(x, i);
	return r;
}

static int join_all(struct members_builder *b, struct source *const *archives,
		    unsigned n, struct error *err)
{
	struct joining x = {.b = b, .err = err, .xattrs = VEC_EMPTY};
	uint32_t block_size = 0;
	int r = 0;

	for (unsigned i = 0; i < n && r == 0; i++) {
		const struct archive *a = archive_of_source(archives[i]);
		const struct members *m = &a->members;

		if (m->n_blocks && block_size && m->block_size != block_size)
			r = error_set(err, -ENOTSUP,
				      "%s: its block size of %u bytes differs "
				      "from that of another image (%u bytes): "
				      "they cannot be mounted as one tree",
				      a->path, m->block_size, block_size);
		if (m->n_blocks)
			block_size = m->block_size;
		x.m = m;
		x.volume = (uint16_t)i;
		if (r == 0)
			r = join_archive(&x);
	}
	free(x.path);
	free(x.names);
	vec_free(&x.xattrs);
	members_block_size(b, block_size);
	return r;
}

static int join_volumes(struct joined *j, struct source *const *archives,
			struct error *err)
{
	int r = 0;

	for (unsigned i = 0; i < j->n && r == 0; i++) {
		const struct archive *a = archive_of_source(archives[i]);

		j->volumes[i] = a->volume;
		j->volumes[i].blocks = NULL;
		j->tars &=
			a->kind == &archive_tar || a->kind == &archive_stream;
		if (a->members.n_blocks)
			r = squashfs_blocks_new(&j->volumes[i].blocks,
						&j->members, &a->stored,
						&a->info, err);
	}
	return r;
}

static int publish_union(struct joined *j, const struct source_args *a,
			 struct error *err)
{
	struct files *f;
	int r = archive_files(&f, a, &j->members, j->volumes, j->n, 0, j->tars,
			      err);

	if (r < 0)
		return r;
	tree_set_files(a->tree, a->dir, f);
	if (!a->archive->nest)
		return 0;
	return archive_show_nested(&j->nest, a->archive->nest, a, &j->members,
				   j->volumes, j->n, f, 0, err);
}

static const struct source_ops source_union = {
	.name = "union",
	.summary = "several archives as one tree",
	.close = joined_close,
};

int archive_union(struct source *const *archives, unsigned n,
		  const struct source_args *a, struct source **out,
		  struct error *err)
{
	struct joined *j = calloc(1, sizeof *j);
	struct members_builder *b = NULL;
	int r;

	*out = NULL;
	if (!j || !(j->volumes = calloc(n, sizeof *j->volumes))) {
		free(j);
		return error_no_memory(err, "the tree of all archives");
	}
	j->source.ops = &source_union;
	j->n = n;
	j->tars = true;
	r = members_builder_new(&b, NULL, err);
	if (r == 0) {
		r = join_all(b, archives, n, err);
		if (r == 0)
			r = members_finish(b, &j->members, err);
		else
			members_builder_free(b);
	}
	if (r == 0) {
		archive_log_notes(&j->members, NULL);
		r = join_volumes(j, archives, err);
	}
	if (r == 0)
		r = publish_union(j, a, err);
	if (r < 0) {
		joined_close(&j->source);
		return r;
	}
	*out = &j->source;
	return 0;
}
