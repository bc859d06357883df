/* SPDX-License-Identifier: BSD-2-Clause */
/* Extended attributes of members: equal sets of them are kept once. */
#include "members/members_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define XATTRS_MAX (UINT32_C(64) << 20) /* of one member */

static size_t padded(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

/* Bytes of a set; 0: too many. */
static size_t set_size(const struct member_xattr *x, size_t n)
{
	size_t size = 4;

	for (size_t i = 0; i < n; i++) {
		if (x[i].size > XATTRS_MAX || strlen(x[i].name) > 255)
			return 0;
		size += 8 + padded(strlen(x[i].name) + x[i].size);
		if (size > XATTRS_MAX)
			return 0;
	}
	return size;
}

static void set_write(unsigned char *to, const struct member_xattr *x, size_t n)
{
	uint32_t word = (uint32_t)n;

	memcpy(to, &word, 4);
	to += 4;
	for (size_t i = 0; i < n; i++) {
		uint32_t head[2] = {(uint32_t)strlen(x[i].name),
				    (uint32_t)x[i].size};

		memcpy(to, head, 8);
		memcpy(to + 8, x[i].name, head[0]);
		if (head[1])
			memcpy(to + 8 + head[0], x[i].value, head[1]);
		to += 8 + padded((size_t)head[0] + head[1]);
	}
}

/* Behind those that are there, which end at `used`; false: no memory. */
static bool make_room(struct members_builder *b, size_t used, size_t size)
{
	size_t want = 2 * b->xattrs.room + size;
	unsigned char *p;

	if (size <= b->xattrs.room - used)
		return true;
	p = realloc(b->xattrs.at, want);
	if (!p)
		return false;
	b->xattrs.at = p;
	b->xattrs.room = want;
	return true;
}

/* What is there has no equal: a free slot will do. */
static bool sets_grow(struct members_builder *b)
{
	size_t want = b->sets_room ? 2 * b->sets_room : 64;
	struct build_set *sets = calloc(want, sizeof *sets);

	if (!sets)
		return false;
	for (size_t i = 0; i < b->sets_room; i++) {
		size_t at = b->sets[i].hash & (want - 1);

		if (!b->sets[i].at)
			continue;
		while (sets[at].at)
			at = (at + 1) & (want - 1);
		sets[at] = b->sets[i];
	}
	free(b->sets);
	b->sets = sets;
	b->sets_room = want;
	return true;
}

/* The slot of the set of `size` bytes that begins at `used`, or where it would be.  A
 * set says itself where it ends, so one that begins like another is that one. */
static struct build_set *set_slot(const struct members_builder *b, size_t used,
				  size_t size, uint32_t hash)
{
	size_t i = hash & (b->sets_room - 1);

	for (; b->sets[i].at; i = (i + 1) & (b->sets_room - 1)) {
		size_t off = ((size_t)b->sets[i].at - 1) * 4;

		if (b->sets[i].hash == hash && size <= used - off &&
		    !memcmp(b->xattrs.at + off, b->xattrs.at + used, size))
			break;
	}
	return &b->sets[i];
}

int build_xattrs(struct members_builder *b, const struct member_xattr *x,
		 size_t n, uint32_t *at)
{
	size_t used = b->xattrs.n, size = set_size(x, n);
	struct build_set *slot;
	uint32_t hash;

	*at = 0;
	if (n == 0)
		return 0;
	if (!size || used / 4 + size / 4 >= UINT32_MAX)
		return -E2BIG;
	if (!make_room(b, used, size) ||
	    (2 * b->n_sets >= b->sets_room && !sets_grow(b)))
		return -ENOMEM;
	memset(b->xattrs.at + used, 0, size);
	set_write(b->xattrs.at + used, x, n);
	hash = (uint32_t)XXH3_64bits_withSeed(b->xattrs.at + used, size,
					      b->seed);
	slot = set_slot(b, used, size, hash);
	if (!slot->at) {
		*slot = (struct build_set){(uint32_t)(used / 4) + 1, hash};
		b->n_sets++;
		b->xattrs.n = used + size;
	}
	*at = slot->at;
	return 0;
}
