/* SPDX-License-Identifier: BSD-2-Clause */
/* Compare what an index says of an archive with what the archive has now. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/archive/verify.h"

/*
 * Equal members make equal tables byte by byte, so usually that is all there is to
 * compare.  Otherwise the counterpart of each record is looked up by its path; a
 * directory precedes its entries.
 */
#define NOWHERE UINT64_MAX

static bool equal_bytes(const void *a, uint64_t n, const void *b, uint64_t m)
{
	return n == m && (!n || !memcmp(a, b, n));
}

static bool same_tables(const struct members *a, const struct members *b)
{
	return equal_bytes(a->at, a->n * sizeof *a->at, b->at,
			   b->n * sizeof *b->at) &&
	       equal_bytes(a->names, a->names_size, b->names, b->names_size) &&
	       equal_bytes(a->extents, a->n_extents * sizeof *a->extents,
			   b->extents, b->n_extents * sizeof *b->extents) &&
	       equal_bytes(a->blocks, a->n_blocks * sizeof *a->blocks,
			   b->blocks, b->n_blocks * sizeof *b->blocks) &&
	       equal_bytes(a->xattrs, a->xattrs_size, b->xattrs,
			   b->xattrs_size) &&
	       equal_bytes(a->common, a->n_common * sizeof *a->common,
			   b->common, b->n_common * sizeof *b->common);
}

static bool same_xattrs(const struct members *a, const struct member_record *r,
			const struct members *b, const struct member_record *s)
{
	struct member_xattr_at x, y;
	bool more;

	member_xattr_first(a, r, &x);
	member_xattr_first(b, s, &y);
	do {
		more = member_xattr_next(&x);
		if (more != member_xattr_next(&y))
			return false;
		if (more &&
		    (!equal_bytes(x.name, x.name_len, y.name, y.name_len) ||
		     !equal_bytes(x.value, x.size, y.value, y.size)))
			return false;
	} while (more);
	return true;
}

static bool same_content(const struct members *a, const struct member_record *r,
			 const struct members *b, const struct member_record *s)
{
	const struct member_extent *x, *y;
	uint64_t n;

	switch (r->kind) {
	case MEMBER_DIR: /* its entries are compared by themselves */
	case MEMBER_LINK:
		return true;
	case MEMBER_SYMLINK:
		return r->size == s->size &&
		       !strcmp(a->names + r->data, b->names + s->data);
	case MEMBER_SPARSE:
		x = &a->extents[r->data];
		y = &b->extents[s->data];
		return r->size == s->size &&
		       equal_bytes(x, (x->off + 1) * sizeof *x, y,
				   (y->off + 1) * sizeof *y);
	case MEMBER_BLOCKS:
		n = a->block_size ? div_up(r->size, a->block_size) : 0;
		return r->size == s->size && a->block_size == b->block_size &&
		       equal_bytes(&a->blocks[r->data], n * sizeof *a->blocks,
				   &b->blocks[s->data], n * sizeof *b->blocks);
	default:
		return r->size == s->size && r->data == s->data;
	}
}

static bool same_record(const struct members *a, const struct member_record *r,
			const struct members *b, const struct member_record *s)
{
	const struct member_common *x = member_common(a, r),
				   *y = member_common(b, s);

	return r->kind == s->kind && r->mode == s->mode && x->uid == y->uid &&
	       x->gid == y->gid && x->volume == y->volume &&
	       x->since == y->since && r->when == s->when &&
	       same_content(a, r, b, s) && same_xattrs(a, r, b, s);
}

/* Return true if the stream no longer decodes to what it was when the index was
 * made.  The checksums of its windows then say what is wrong. */
static bool is_spoilt(const struct archive_check *k)
{
	return k->a->stream && (k->fresh->damage || !k->fresh->stream);
}

static void compare_same(struct archive_check *k, uint64_t i, uint64_t j)
{
	const struct members *a = &k->a->members, *b = &k->fresh->members;

	if (!same_record(a, &a->at[i], b, &b->at[j]))
		archive_bad_member(k, i, -EBADMSG,
				   "the archive and its index differ about it");
}

/* Compare the roots, without their times: if no member sets the time of the root,
 * it is derived from the entries. */
static void compare_roots(struct archive_check *k)
{
	const struct members *a = &k->a->members, *b = &k->fresh->members;
	const struct member_common *x = member_common(a, a->at),
				   *y = member_common(b, b->at);

	if (a->at->mode != b->at->mode || x->uid != y->uid ||
	    x->gid != y->gid || !same_xattrs(a, a->at, b, b->at))
		archive_bad_member(k, 0, -EBADMSG,
				   "the archive and its index differ about the "
				   "root directory");
}

/* Compare record i.  Return the number of its counterpart, or NOWHERE. */
static uint64_t compare_record(struct archive_check *k, uint64_t i,
			       const uint64_t *there)
{
	const struct members *a = &k->a->members, *b = &k->fresh->members;
	const struct member_record *r = &a->at[i];
	uint64_t dir = there[r->parent], j;

	if (dir == NOWHERE || members_find(b, dir, member_name(a, r), &j) < 0) {
		archive_bad_member(k, i, -EBADMSG,
				   "it is in the index, but a scan of the "
				   "archive does not find it");
		return NOWHERE;
	}
	compare_same(k, i, j);
	return j;
}

int archive_compare(struct archive_check *k, struct error *err)
{
	const struct members *a = &k->a->members, *b = &k->fresh->members;
	cleanup_free uint64_t *there = NULL;
	struct error why;
	uint64_t found = 1;

	if (same_tables(a, b) || is_spoilt(k))
		return 0;
	there = malloc(a->n * sizeof *there);
	if (!there)
		return error_no_memory(err,
				       "comparing the archive with its index");
	there[0] = 0;
	compare_roots(k);
	for (uint64_t i = 1; i < a->n; i++) {
		there[i] = compare_record(k, i, there);
		found += there[i] != NOWHERE;
	}
	if (found == b->n)
		return 0;
	error_set(&why, -EBADMSG,
		  "its index lacks %" PRIu64 " of its members; remove %s",
		  b->n - found, k->a->index ? k->a->index : "the index");
	archive_bad(k, why.code, why.text);
	return 0;
}
