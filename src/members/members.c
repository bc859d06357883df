/* SPDX-License-Identifier: BSD-2-Clause */
/* A finished member table: lookup, paths, and its sections in an index file. */
#include "members/build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"

enum {
	SECTION_HEAD = MEMBERS_SECTION,
	SECTION_RECORDS,
	SECTION_NAMES,
	SECTION_EXTENTS,
	SECTION_BLOCKS,
	SECTION_XATTRS,
	SECTION_NOTES,
	SECTION_COMMON
};

/* The fields of a table that are not arrays.  They are one section of the index. */
struct head {
	uint32_t block_size;
	/* Bytes at the beginning of the notes that are about damage. */
	uint32_t damage;
	uint32_t left_out;
	uint32_t unused; /* 0 */
};

unsigned members_sections(const struct members *m, struct index_section *out)
{
	static _Thread_local struct head head;
	const struct index_section all[] = {
		{SECTION_HEAD, &head, sizeof head, NULL},
		{SECTION_RECORDS, m->at, m->n * sizeof *m->at, NULL},
		{SECTION_NAMES, m->names, m->names_size, NULL},
		{SECTION_EXTENTS, m->extents, m->n_extents * sizeof *m->extents,
		 NULL},
		{SECTION_BLOCKS, m->blocks, m->n_blocks * sizeof *m->blocks,
		 NULL},
		{SECTION_XATTRS, m->xattrs, m->xattrs_size, NULL},
		{SECTION_NOTES, m->notes, m->notes_size, NULL},
		{SECTION_COMMON, m->common, m->n_common * sizeof *m->common,
		 NULL},
	};
	const unsigned n = sizeof all / sizeof all[0];

	_Static_assert(sizeof all / sizeof all[0] <= MEMBERS_SECTIONS, "room");
	head.block_size = m->block_size;
	head.damage = (uint32_t)m->damage_size;
	head.left_out = m->left_out;
	memcpy(out, all, sizeof all);
	return n;
}

static int members_take_section(struct members *m,
				const struct index_section *s,
				struct error *err)
{
	uint64_t unit = 1, n;

	switch (s->id) {
	case SECTION_HEAD:
		if (s->size != sizeof(struct head))
			return error_set(err, -EBADMSG,
					 "the header of its member table has a "
					 "wrong size");
		m->block_size = ((const struct head *)s->data)->block_size;
		m->damage_size = ((const struct head *)s->data)->damage;
		m->left_out = ((const struct head *)s->data)->left_out;
		return 0;
	case SECTION_RECORDS:
		unit = sizeof *m->at;
		break;
	case SECTION_EXTENTS:
		unit = sizeof *m->extents;
		break;
	case SECTION_BLOCKS:
		unit = sizeof *m->blocks;
		break;
	case SECTION_COMMON:
		unit = sizeof *m->common;
		break;
	default:
		break;
	}
	if (s->size % unit || (uintptr_t)s->data % 8)
		return error_set(err, -EBADMSG,
				 "section %u has a wrong size or alignment",
				 s->id);
	n = s->size / unit;
	switch (s->id) {
	case SECTION_RECORDS:
		m->at = s->data;
		m->n = n;
		break;
	case SECTION_NAMES:
		m->names = s->data;
		m->names_size = n;
		break;
	case SECTION_EXTENTS:
		m->extents = s->data;
		m->n_extents = n;
		break;
	case SECTION_BLOCKS:
		m->blocks = s->data;
		m->n_blocks = n;
		break;
	case SECTION_XATTRS:
		m->xattrs = s->data;
		m->xattrs_size = n;
		break;
	case SECTION_NOTES:
		m->notes = s->data;
		m->notes_size = n;
		break;
	case SECTION_COMMON:
		m->common = s->data;
		m->n_common = n;
		break;
	default:
		break;
	}
	return 0;
}

static int members_take_sections(struct members *m,
				 const struct index_section *s, unsigned n,
				 struct index *x, struct error *err)
{
	int r = 0;

	memset(m, 0, sizeof *m);
	m->index = x;
	for (unsigned i = 0; i < n && r == 0; i++)
		if (s[i].size)
			r = members_take_section(m, &s[i], err);
	if (r == 0)
		r = members_check(m, false, err);
	if (r < 0)
		memset(m, 0, sizeof *m);
	return r;
}

int members_of_sections(struct members *m, const struct index_section *s,
			unsigned n, void *own, struct error *err)
{
	int r = members_take_sections(m, s, n, NULL, err);

	if (r == 0)
		m->own[0] = own;
	return r;
}

int members_of_index(struct members *m, struct index *x, struct error *err)
{
	struct index_section s[MEMBERS_SECTIONS] = {0};
	unsigned n = 0;

	for (uint32_t id = SECTION_HEAD; id <= SECTION_COMMON; id++, n++) {
		s[n].id = id;
		s[n].data = index_section(x, id, &s[n].size);
		if (!s[n].data)
			s[n].size = 0;
	}
	return members_take_sections(m, s, n, x, err);
}

void members_free(struct members *m)
{
	for (size_t i = 0; i < sizeof m->own / sizeof m->own[0]; i++)
		free(m->own[i]);
	if (m->index)
		index_free(m->index);
	memset(m, 0, sizeof *m);
}

int members_find(const struct members *m, uint64_t dir, const char *name,
		 uint64_t *record)
{
	struct bisect b;
	uint64_t end;

	if (dir >= m->n || m->at[dir].kind != MEMBER_DIR)
		return -ENOENT;
	end = m->at[dir].data + m->at[dir].size;
	b = bisect_in(m->at[dir].data, end);
	while (bisect_next(&b))
		bisect_answer(&b,
			      strcmp(member_name(m, &m->at[b.mid]), name) >= 0);
	if (b.lo == end || strcmp(member_name(m, &m->at[b.lo]), name) != 0)
		return -ENOENT;
	*record = b.lo;
	return 0;
}

void members_path(const struct members *m, uint64_t record, char *buf, size_t n)
{
	size_t at = n - 1;

	buf[at] = '\0';
	if (record == 0 && at > 0)
		buf[--at] = '/';
	while (record && record < m->n && at > 0) {
		const char *name = member_name(m, &m->at[record]);
		size_t len = strlen(name);

		if (len > at) {
			name += len - at;
			len = at;
		}
		at -= len;
		memcpy(buf + at, name, len);
		if (at > 0)
			buf[--at] = '/';
		record = m->at[record].parent;
	}
	memmove(buf, buf + at, n - at);
}

/* ---- attributes ---------------------------------------------------------- */

void member_xattr_first(const struct members *m, const struct member_record *r,
			struct member_xattr_at *x)
{
	uint64_t xattrs = r ? member_common(m, r)->xattrs : 0;

	x->left = 0;
	if (!xattrs)
		return;
	x->at = m->xattrs + (xattrs - 1) * 4;
	memcpy(&x->left, x->at, 4);
	x->at += 4;
}

bool member_xattr_next(struct member_xattr_at *x)
{
	uint32_t head[2];

	if (!x->left)
		return false;
	x->left--;
	memcpy(head, x->at, 8);
	x->name_len = head[0];
	x->size = head[1];
	x->name = (const char *)x->at + 8;
	x->value = x->at + 8 + head[0];
	x->at += 8 + (((uint64_t)head[0] + head[1] + 3) & ~UINT64_C(3));
	return true;
}
