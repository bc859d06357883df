/* SPDX-License-Identifier: BSD-2-Clause */
/* info: describe one member and where its bytes are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/archive/about.h"
#include "formats/archive/places.h"

/* Names of an inode, and runs of a sparse file, that are listed at most. */
#define LISTED 100
#define PATH_ROOM 4096

static const char *type_word(const struct member_record *r)
{
	switch (r->mode & S_IFMT) {
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "symlink";
	case S_IFCHR:
		return "char device";
	case S_IFBLK:
		return "block device";
	case S_IFIFO:
		return "fifo";
	case S_IFSOCK:
		return "socket";
	default:
		return "file";
	}
}

/* ---- any record ---------------------------------------------------------- */

static json_t *path_json(const struct members *m, uint64_t record)
{
	char path[PATH_ROOM];

	members_path(m, record, path, sizeof path);
	return json_text(path, strlen(path));
}

/* List the names of an inode. */
static json_t *names_json(const struct members *m, uint64_t record)
{
	json_t *list = json_array();

	json_array_append_new(list, path_json(m, record));
	for (uint64_t i = 0; i < m->n && json_array_size(list) < LISTED; i++)
		if (m->at[i].kind == MEMBER_LINK && m->at[i].data == record)
			json_array_append_new(list, path_json(m, i));
	return list;
}

static json_t *xattrs_json(const struct members *m,
			   const struct member_record *r)
{
	json_t *list = json_array();
	struct member_xattr_at x;

	member_xattr_first(m, r, &x);
	while (member_xattr_next(&x)) {
		json_t *o = json_object();

		json_object_set_new(o, "name", json_text(x.name, x.name_len));
		about_put(o, "bytes", x.size);
		json_array_append_new(list, o);
	}
	return list;
}

/* Count what is below a directory, by type.  Return false if there is no memory. */
static bool about_below(json_t *o, const struct members *m, uint64_t root)
{
	static const unsigned char slot[MEMBER_KINDS] = {
		[MEMBER_DIR] = 1, [MEMBER_SYMLINK] = 2, [MEMBER_LINK] = 3};
	cleanup_free unsigned char *below = calloc(m->n, 1);
	uint64_t counts[5] = {0}, bytes = 0;

	for (uint64_t i = root; below && i < m->n; i++) {
		const struct member_record *r = &m->at[i];
		bool other = r->kind == MEMBER_NONE && !S_ISREG(r->mode);

		below[i] = i == root || below[r->parent];
		if (!below[i] || i == root)
			continue;
		counts[other ? 4 : slot[r->kind]]++;
		if (S_ISREG(r->mode) && r->kind != MEMBER_LINK)
			bytes += r->size;
	}
	about_counts(o, counts, bytes);
	return below;
}

json_t *about_record(const struct members *m, uint64_t record)
{
	const struct member_record *r = &m->at[record];
	const struct member_common *common = member_common(m, r);
	json_t *o = json_object();
	char mode[8];

	snprintf(mode, sizeof mode, "%04o", r->mode & 07777);
	about_text(o, "type", type_word(r));
	if (r->kind != MEMBER_DIR)
		about_put(o, "size", r->size);
	about_text(o, "mode", mode);
	about_put(o, "uid", common->uid);
	about_put(o, "gid", common->gid);
	json_object_set_new(o, "mtime", json_integer(member_mtime(m, r)));
	about_put(o, "mtime_nsec", member_nsec(r));
	about_put(o, "links", common->nlink);
	if (r->kind != MEMBER_DIR && common->nlink > 1)
		json_object_set_new(o, "names", names_json(m, record));
	if (r->kind == MEMBER_SYMLINK)
		about_text(o, "target", m->names + r->data);
	if (S_ISCHR(r->mode) || S_ISBLK(r->mode)) {
		about_put(o, "major", major((dev_t)r->data));
		about_put(o, "minor", minor((dev_t)r->data));
	}
	json_object_set_new(o, "xattrs", xattrs_json(m, r));
	if (r->kind == MEMBER_DIR && !about_below(o, m, record)) {
		json_decref(o);
		return NULL;
	}
	return o;
}

/* ---- a file in an archive ------------------------------------------------ */

struct summing {
	const struct archive *a;
	uint64_t first, last, n, decoded, stored, next;
};

static bool sum_places(void *ctx, uint64_t first, uint64_t last)
{
	struct summing *s = ctx;

	if (!s->n)
		s->first = first;
	/* Runs of a sparse member may share a window, which counts once. */
	for (uint64_t i = max_u64(first, s->next); i <= last; i++) {
		s->n++;
		s->decoded += places_size(s->a, i);
		s->stored += places_stored(s->a, i);
	}
	s->last = last;
	if (s->a->stream)
		s->next = last + 1;
	return true;
}

/* Describe the windows of the stream that are decoded when the member is read. */
static void about_windows(json_t *o, const struct archive *a,
			  const struct member_record *r)
{
	struct summing s = {.a = a};
	uint64_t n;
	const struct stream_point *p = stream_points(a->stream, &n);

	places_of(a, r, sum_places, &s);
	if (!s.n)
		return;
	about_put(o, "windows", s.n);
	about_put(o, "first_window", s.first);
	about_put(o, "last_window", s.last);
	about_put(o, "decoded_bytes", s.decoded);
	about_put(o, "stored_bytes", s.stored);
	about_put(o, "stored_at", p[s.first].in + a->stored.pos);
}

static void about_blocks(json_t *o, const struct archive *a,
			 const struct member_record *r)
{
	const struct members *m = &a->members;
	uint64_t holes = 0, n = r->kind == MEMBER_BLOCKS && m->block_size
					? div_up(r->size, m->block_size)
					: 0;
	uint64_t fragment = r->kind == MEMBER_FRAGMENT ? r->data : UINT64_MAX;
	struct summing s = {.a = a};

	places_of(a, r, sum_places, &s);
	for (uint64_t i = r->data; i < r->data + n; i++) {
		if (m->blocks[i].flags & MEMBER_TAIL)
			fragment = m->blocks[i].pos;
		else
			holes += !m->blocks[i].stored;
	}
	about_put(o, "blocks", s.n - (fragment != UINT64_MAX));
	about_put(o, "holes", holes);
	if (n && m->blocks[r->data].stored &&
	    !(m->blocks[r->data].flags & MEMBER_TAIL))
		about_put(o, "stored_at",
			  m->blocks[r->data].pos + a->stored.pos);
	if (fragment != UINT64_MAX) {
		const struct member_block *b = &m->blocks[fragment >> 20];

		about_put(o, "fragment_block", fragment >> 20);
		about_put(o, "fragment_offset", fragment & 0xfffff);
		about_put(o, "fragment_bytes", b->size);
		about_put(o, "fragment_stored_bytes", b->stored);
		about_put(o, "fragment_at", b->pos + a->stored.pos);
	}
	about_put(o, "decoded_bytes", s.decoded);
	about_put(o, "stored_bytes", s.stored);
}

static void about_runs(json_t *o, const struct archive *a,
		       const struct member_record *r)
{
	const struct member_extent *x = &a->members.extents[r->data];
	json_t *list = json_array();
	uint64_t bytes = 0;

	for (uint64_t i = 1; i <= x->off; i++) {
		json_t *run;

		bytes += x[i].len;
		if (i > LISTED)
			continue;
		run = json_object();
		about_put(run, "offset", x[i].off);
		about_put(run, "bytes", x[i].len);
		about_put(run, "at", x[i].pos + a->volume.backing.pos);
		json_array_append_new(list, run);
	}
	about_put(o, "runs", x->off);
	about_put(o, "runs_bytes", bytes);
	json_object_set_new(o, "first_runs", list);
}

static void about_zip(json_t *o, const struct archive *a,
		      const struct member_record *r)
{
	struct summing s = {.a = a};
	uint64_t at;

	about_text(o, "kept_as", zip_storage_name(a->zip, r->data, &at));
	if (at)
		about_put(o, "at", at + a->stored.pos);
	places_of(a, r, sum_places, &s);
	about_put(o, "windows", s.n);
	about_put(o, "decoded_bytes", s.decoded);
}

json_t *about_member(const struct archive *a, uint64_t record)
{
	static const char *const kept[MEMBER_KINDS] = {
		[MEMBER_RANGE] = "range",
		[MEMBER_SPARSE] = "sparse",
		[MEMBER_BLOCKS] = "blocks",
		[MEMBER_FRAGMENT] = "fragment"};
	const struct member_record *r;
	json_t *o;

	if (record >= a->members.n)
		return json_object();
	r = &a->members.at[record];
	o = about_record(&a->members, record);
	if (!o || !kept[r->kind])
		return o;
	about_text(o, "kept_as", kept[r->kind]);
	if (places_beyond(a, r)) {
		about_text(o, "damage",
			   "its bytes lie beyond the end of the archive");
		return o;
	}
	if (a->zip && r->kind == MEMBER_RANGE)
		about_zip(o, a, r);
	else if (r->kind == MEMBER_RANGE)
		about_put(o, a->stream ? "decoded_at" : "at",
			  r->data + a->volume.backing.pos);
	if (r->kind == MEMBER_SPARSE)
		about_runs(o, a, r);
	if (a->stream)
		about_windows(o, a, r);
	else if (r->kind == MEMBER_BLOCKS || r->kind == MEMBER_FRAGMENT)
		about_blocks(o, a, r);
	return o;
}
