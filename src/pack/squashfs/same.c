/* SPDX-License-Identifier: BSD-2-Clause */
/* Files with the same bytes are in an image once. */

/*
 * A hash finds candidates, and bytes are compared before anything is believed: those of
 * small files with what is, or was, in their block of small files; those of others where
 * they are in the image, twice, as stored: what is compressed alike is alike.  Then what
 * was just written is taken back.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "pack/squashfs/private.h"

#define FIRST_ROOM 1024
#define COMPARE 65536

static int no_memory(struct error *err)
{
	return error_set(err, -ENOMEM, "out of memory");
}

/* ---- the table -------------------------------------------------------------- */

static size_t start_of(const struct image_same *s, uint64_t key)
{
	return (size_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 20) &
	       (s->room - 1);
}

static bool grow(struct image_same *s)
{
	struct image_same bigger = {.room = s->room ? 2 * s->room : FIRST_ROOM};

	bigger.at = malloc(bigger.room * sizeof *bigger.at);
	if (!bigger.at)
		return false;
	for (size_t i = 0; i < bigger.room; i++)
		bigger.at[i].node = IMAGE_NONE;
	for (size_t i = 0; i < s->room; i++) {
		size_t to = start_of(&bigger, s->at[i].key);

		if (s->at[i].node == IMAGE_NONE)
			continue;
		while (bigger.at[to].node != IMAGE_NONE)
			to = (to + 1) & (bigger.room - 1);
		bigger.at[to] = s->at[i];
	}
	bigger.n = s->n;
	free(s->at);
	*s = bigger;
	return true;
}

typedef int equal_fn(struct image *im, const struct image_node *a,
		     const struct image_node *b, const void *data,
		     struct error *err);
/* 1: *found has the same bytes; 0: none has, and n is known from now on. */
static int look(struct image *im, struct image_node *n, uint64_t key,
		equal_fn *equal, const void *data, struct image_node **found,
		struct error *err)
{
	struct image_same *s = &im->same;
	size_t at;
	int r = 0;

	if (2 * (s->n + 1) > s->room && !grow(s))
		return no_memory(err);
	for (at = start_of(s, key); s->at[at].node != IMAGE_NONE && r == 0;
	     at = (at + 1) & (s->room - 1)) {
		struct image_node *other = &im->nodes.at[s->at[at].node];

		if (s->at[at].key == key && other->size == n->size &&
		    (other->fragment == IMAGE_NONE) == !data) {
			*found = other;
			r = equal(im, n, other, data, err);
		}
	}
	if (r != 0)
		return r;
	s->at[at].key = key;
	s->at[at].node = (uint32_t)(n - im->nodes.at);
	s->n++;
	return 0;
}

void image_same_free(struct image_same *s)
{
	free(s->at);
	memset(s, 0, sizeof *s);
}

/* ---- small files ------------------------------------------------------------- */

/* Bytes of a block of small files that is in the image. */
static int read_back(struct image *im, uint32_t number, struct error *err)
{
	sqfs_fragment_t f;
	uint32_t stored;
	int r;

	if (im->back && im->back_number == number)
		return 0;
	if (!im->back)
		im->back = malloc(im->block);
	if (!im->back_raw)
		im->back_raw = malloc(im->block);
	if (!im->back || !im->back_raw)
		return no_memory(err);
	im->back_number = IMAGE_NONE;
	r = sqfs_frag_table_lookup(im->fragments, number, &f);
	stored = SQFS_ON_DISK_BLOCK_SIZE(f.size);
	if (r == 0 && stored <= im->block)
		r = im->file.base.read_at(&im->file.base, f.start_offset,
					  f.size & IMAGE_STORED ? im->back
								: im->back_raw,
					  stored);
	if (r == 0 && !(f.size & IMAGE_STORED)) {
		r = im->codec.undo->do_block(im->codec.undo, im->back_raw,
					     stored, im->back, im->block);
		r = r > 0 ? 0 : r < 0 ? r : SQFS_ERROR_CORRUPTED;
	}
	if (r)
		return image_failed(im, r, "a block that it reads back", err);
	im->back_number = number;
	return 0;
}

static int small_equal(struct image *im, const struct image_node *a,
		       const struct image_node *b, const void *data,
		       struct error *err)
{
	const unsigned char *block;

	if (im->small && im->small_number == b->fragment) {
		block = im->small->data;
	} else if (!(block = image_blocks_find(im->blocks, b->fragment))) {
		int r = read_back(im, b->fragment, err);

		if (r < 0)
			return r;
		block = im->back;
	}
	return !memcmp(block + b->offset, data, a->size);
}

int image_same_small(struct image *im, struct image_node *n, const void *data,
		     uint64_t key, struct error *err)
{
	struct image_node *found;
	int r = look(im, n, key, small_equal, data, &found, err);

	if (r == 1) {
		n->fragment = found->fragment;
		n->offset = found->offset;
	}
	return r;
}

static bool sizes_equal(const struct image *im, const struct image_node *a,
			const struct image_node *b)
{
	struct image_walk one = {.at = a->blocks}, other = {.at = b->blocks};

	for (uint64_t n = image_n_blocks(im, a); n > 0; n--)
		if (image_next(im, &one) != image_next(im, &other))
			return false;
	return true;
}

/* ---- files of blocks ----------------------------------------------------------- */

static int blocks_equal(struct image *im, const struct image_node *a,
			const struct image_node *b, const void *data,
			struct error *err)
{
	unsigned char one[COMPARE / 8], other[COMPARE / 8];
	uint64_t left = out_size(im->file.out) - a->place, at = 0;

	(void)data;
	if (!sizes_equal(im, a, b))
		return 0;
	while (left > 0) {
		size_t part = (size_t)min_u64(left, sizeof one);
		int r = im->file.base.read_at(&im->file.base, a->place + at,
					      one, part);

		if (r == 0)
			r = im->file.base.read_at(&im->file.base, b->place + at,
						  other, part);
		if (r)
			return image_failed(im, r, "a comparison", err);
		if (memcmp(one, other, part) != 0)
			return 0;
		left -= part;
		at += part;
	}
	return 1;
}

int image_same_blocks(struct image *im, struct image_node *n, uint64_t key,
		      struct error *err)
{
	struct image_node *found;
	int r = look(im, n, key, blocks_equal, NULL, &found, err);

	if (r != 1)
		return r;
	r = out_back(im->file.out, n->place, err);
	n->place = found->place;
	return r < 0 ? r : 1;
}
