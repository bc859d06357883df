/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks that a member table can be used safely: every number in it against the
 * others. */
#include "members/build.h"

#include <errno.h>
#include <string.h>

#include "base/number.h"

/*
 * A table that is read from a file may hold anything.  After this pass no number in it
 * leads outside of its arrays, children are where their parents say, in order, and
 * links lead to inodes; code that uses the table need not check again.  Positions in
 * the source are not checked: reading past its end is an error by itself.
 *
 * Directories come in the order of their records, and so do their children: the first
 * child of a directory is the record after the last child of the directory before it.
 * That excludes cycles and gaps.
 *
 * Maps, lists of blocks, attributes and targets may belong to several members (equal
 * files of a squashfs share their blocks), so a small table can ask for any amount of
 * checking.  A table that needs more than WORK_MAX steps is refused.  An honest table
 * needs that many only for hundreds of terabytes.
 */
#define WORK_MAX (UINT64_C(1) << 30)

struct checking {
	struct members *m;
	uint64_t next; /* first child of the next directory */
	uint64_t work; /* steps that may still be done */
	bool files;    /* members may be MEMBER_FILE */
	struct error *err;
};

static int check_failed(struct checking *c, uint64_t i, const char *what)
{
	return error_set(c->err, -EBADMSG, "member %llu: %s",
			 (unsigned long long)i, what);
}

static int check_charge(struct checking *c, uint64_t steps)
{
	if (steps > c->work)
		return error_set(c->err, -EBADMSG,
				 "its members share so much data that checking "
				 "it would take too long");
	c->work -= steps;
	return 0;
}

static bool check_type_fits(const struct member_record *r)
{
	switch (r->mode & S_IFMT) {
	case S_IFDIR:
		return r->kind == MEMBER_DIR;
	case S_IFLNK:
		return r->kind == MEMBER_SYMLINK || r->kind == MEMBER_LINK;
	case S_IFREG:
		return r->kind != MEMBER_DIR && r->kind != MEMBER_SYMLINK;
	case S_IFBLK:
	case S_IFCHR:
	case S_IFIFO:
	case S_IFSOCK:
		return r->kind == MEMBER_NONE || r->kind == MEMBER_LINK;
	default:
		return false;
	}
}

/* Return whether the record's name is a valid file name.  `names` ends with NUL. */
static bool check_name_fits(const struct members *m,
			    const struct member_record *r)
{
	const char *name;
	size_t n;

	if (member_name_at(r) >= m->names_size)
		return false;
	name = member_name(m, r);
	n = strnlen(name, 256);
	return n > 0 && n <= 255 && !strchr(name, '/') && strcmp(name, ".") &&
	       strcmp(name, "..");
}

static int check_dir(struct checking *c, uint64_t i)
{
	const struct member_record *r = &c->m->at[i];
	uint64_t end;

	if (add_overflows(c->next, r->size, &end) || end > c->m->n ||
	    r->data != c->next || r->data <= i)
		return check_failed(
			c, i, "its entries are at a wrong place in the table");
	for (uint64_t k = c->next; k < end; k++) {
		const struct member_record *kid = &c->m->at[k];

		if (kid->parent != i || !check_name_fits(c->m, kid))
			return check_failed(
				c, k, "its name or directory is not valid");
		if (k > c->next && strcmp(member_name(c->m, kid - 1),
					  member_name(c->m, kid)) >= 0)
			return check_failed(c, k, "names are not in order");
	}
	c->next = end;
	return 0;
}

static int check_sparse(struct checking *c, uint64_t i)
{
	const struct member_record *r = &c->m->at[i];
	const struct members *m = c->m;
	const struct member_extent *x;
	uint64_t n, at = 0, stored;

	if (r->data >= m->n_extents)
		return check_failed(c, i, "its sparse map is missing");
	x = &m->extents[r->data];
	n = x->off;
	stored = x->pos;
	if (n >= m->n_extents - r->data)
		return check_failed(c, i, "its sparse map is cut off");
	if (check_charge(c, n) < 0)
		return -EBADMSG;
	while (n-- > 0) {
		uint64_t end, pos;

		x++;
		if (x->off < at || !x->len ||
		    add_overflows(x->off, x->len, &end) || end > r->size ||
		    add_overflows(x->pos, x->len, &pos))
			return check_failed(c, i,
					    "its sparse map is not valid");
		at = end;
		stored -= x->len;
	}
	return stored ? check_failed(
				c, i,
				"the bytes of its sparse map do not add up")
		      : 0;
}

/* Return whether `size` bytes at `where` (a MEMBER_IN_BLOCK) lie within a block. */
static bool check_in_block(const struct members *m, uint64_t where,
			   uint64_t size)
{
	uint64_t block = where >> 20, off = where & ((1u << 20) - 1);

	return block < m->n_blocks && !(m->blocks[block].flags & MEMBER_TAIL) &&
	       m->blocks[block].stored && off <= m->blocks[block].size &&
	       size <= m->blocks[block].size - off;
}

static int check_blocks(struct checking *c, uint64_t i)
{
	const struct members *m = c->m;
	const struct member_record *r = &m->at[i];
	uint64_t full, rest;

	if (!m->block_size)
		return check_failed(
			c, i, "it has blocks, but the table has no block size");
	full = r->size / m->block_size;
	rest = r->size % m->block_size;
	if (r->data > m->n_blocks || full + (rest != 0) > m->n_blocks - r->data)
		return check_failed(c, i, "its blocks are missing");
	if (check_charge(c, full) < 0)
		return -EBADMSG;
	for (uint64_t k = 0; k < full; k++) {
		const struct member_block *b = &m->blocks[r->data + k];

		if (b->size != m->block_size || (b->flags & MEMBER_TAIL))
			return check_failed(c, i, "a block has the wrong size");
	}
	if (rest) {
		const struct member_block *b = &m->blocks[r->data + full];

		if (b->flags & MEMBER_TAIL ? !check_in_block(m, b->pos, rest)
					   : b->size != rest)
			return check_failed(c, i,
					    "its last block is not valid");
	}
	return 0;
}

static int check_common_failed(struct checking *c, uint64_t i, const char *what)
{
	return error_set(c->err, -EBADMSG, "common fields %llu of members: %s",
			 (unsigned long long)i, what);
}

static int check_xattrs(struct checking *c, uint64_t i)
{
	const struct members *m = c->m;
	uint64_t at = ((uint64_t)m->common[i].xattrs - 1) * 4;
	uint32_t count, head[2];

	if (at > m->xattrs_size || m->xattrs_size - at < 4)
		return check_common_failed(c, i,
					   "their attributes are missing");
	memcpy(&count, m->xattrs + at, 4);
	at += 4;
	while (count-- > 0) {
		uint64_t size;

		if (check_charge(c, 1) < 0)
			return -EBADMSG;
		if (m->xattrs_size - at < 8)
			return check_common_failed(
				c, i, "their attributes are cut off");
		memcpy(head, m->xattrs + at, 8);
		at += 8;
		size = ((uint64_t)head[0] + head[1] + 3) & ~UINT64_C(3);
		if (!head[0] || head[0] > 255 || size > m->xattrs_size - at)
			return check_common_failed(
				c, i, "their attributes are not valid");
		at += size;
	}
	return 0;
}

static int check_common(struct checking *c)
{
	for (uint64_t i = 0; i < c->m->n_common; i++) {
		const struct member_common *k = &c->m->common[i];

		if (k->since & ((INT64_C(1) << 34) - 1))
			return check_common_failed(c, i,
						   "their time is not valid");
		if (k->unused[0] || k->unused[1] || k->unused[2])
			return check_common_failed(c, i,
						   "their source is not valid");
		if (k->xattrs && check_xattrs(c, i) < 0)
			return -EBADMSG;
	}
	return 0;
}

static int check_link(struct checking *c, uint64_t i)
{
	const struct members *m = c->m;
	const struct member_record *r = &m->at[i], *to;

	if (r->data >= m->n)
		return check_failed(
			c, i, "it is a link to a member that does not exist");
	to = &m->at[r->data];
	if (to->kind == MEMBER_LINK || to->kind == MEMBER_DIR ||
	    (to->mode & S_IFMT) != (r->mode & S_IFMT) ||
	    member_common(m, r)->xattrs)
		return check_failed(c, i,
				    "it is a link to a member of another type");
	return 0;
}

static int check_record(struct checking *c, uint64_t i)
{
	const struct members *m = c->m;
	const struct member_record *r = &m->at[i];
	uint64_t end;

	if (r->kind >= MEMBER_KINDS || member_nsec(r) >= 1000000000 ||
	    r->common >= m->n_common || !check_type_fits(r))
		return check_failed(c, i, "its type is not valid");
	if (r->kind != MEMBER_DIR && r->size > INT64_MAX)
		return check_failed(c, i, "its size is not valid");
	switch ((enum member_kind)r->kind) {
	case MEMBER_DIR:
		return check_dir(c, i);
	case MEMBER_SYMLINK:
		if (r->data >= m->names_size ||
		    r->size >= m->names_size - r->data ||
		    strnlen(m->names + r->data, r->size + 1) != r->size)
			return check_failed(c, i, "its target is not valid");
		return check_charge(c, r->size);
	case MEMBER_LINK:
		return check_link(c, i);
	case MEMBER_RANGE:
		return add_overflows(r->data, r->size, &end)
			       ? check_failed(c, i, "its place is not valid")
			       : 0;
	case MEMBER_SPARSE:
		return check_sparse(c, i);
	case MEMBER_BLOCKS:
		return check_blocks(c, i);
	case MEMBER_FRAGMENT:
		return check_in_block(m, r->data, r->size)
			       ? 0
			       : check_failed(c, i,
					      "its fragment is not valid");
	case MEMBER_FILE:
		return c->files ? 0
				: check_failed(c, i,
					       "it is a file of its own, which "
					       "an index cannot hold");
	case MEMBER_NONE:
	case MEMBER_KINDS:
		break;
	}
	return S_ISREG(r->mode) && r->size
		       ? check_failed(c, i, "it has no content")
		       : 0;
}

static void check_count_member(struct members *m, const struct member_record *r)
{
	static const unsigned char slot[MEMBER_KINDS] = {
		[MEMBER_DIR] = 1, [MEMBER_SYMLINK] = 2, [MEMBER_LINK] = 3};
	unsigned i = slot[r->kind];

	if (r->kind == MEMBER_NONE && !S_ISREG(r->mode))
		i = 4;
	m->counts[i]++;
	if (S_ISREG(r->mode) && r->kind != MEMBER_LINK)
		m->bytes += r->size;
}

/* Check the sizes of blocks, which decoders allocate memory for. */
static int check_block_table(struct checking *c)
{
	const struct members *m = c->m;

	for (uint64_t i = 0; i < m->n_blocks; i++) {
		const struct member_block *b = &m->blocks[i];
		uint64_t end;

		if (b->flags & MEMBER_TAIL)
			continue;
		if (b->size > m->block_size ||
		    b->stored > 2 * (uint64_t)m->block_size ||
		    ((b->flags & MEMBER_STORED) && b->stored != b->size) ||
		    add_overflows(b->pos, b->stored, &end))
			return error_set(c->err, -EBADMSG,
					 "block %llu is not valid",
					 (unsigned long long)i);
	}
	return 0;
}

int members_check(struct members *m, bool files, struct error *err)
{
	struct checking c = {m, 1, WORK_MAX, files, err};

	if (!m->n || !m->names_size || m->names[m->names_size - 1] ||
	    m->n > UINT32_MAX)
		return error_set(err, -EBADMSG, "the table is empty");
	if (m->at[0].kind != MEMBER_DIR ||
	    member_name_at(&m->at[0]) >= m->names_size)
		return error_set(err, -EBADMSG,
				 "the table has no root directory");
	if (m->block_size > 1u << 20)
		return error_set(err, -EBADMSG,
				 "its blocks are larger than 1 MiB");
	if (m->damage_size > m->notes_size ||
	    (m->damage_size && m->notes[m->damage_size - 1] != '\n'))
		return error_set(err, -EBADMSG, "its notes are damaged");
	if (check_block_table(&c) < 0 || check_common(&c) < 0)
		return -EBADMSG;
	memset(m->counts, 0, sizeof m->counts);
	m->bytes = 0;
	for (uint64_t i = 0; i < m->n; i++) {
		if (check_record(&c, i) < 0)
			return -EBADMSG;
		check_count_member(m, &m->at[i]);
	}
	if (c.next != m->n)
		return error_set(err, -EBADMSG,
				 "some members are not in a directory");
	return 0;
}
