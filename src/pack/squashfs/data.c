/* SPDX-License-Identifier: BSD-2-Clause */
/* The contents of files: in blocks, in blocks shared by small files, or not stored at
 * all. */

/*
 * Files with equal contents are stored once.  A hash finds candidates, whose bytes are
 * then compared: for small files with the contents of the shared block, which may have to
 * be read back; for other files in the image, as stored, because equal blocks are
 * compressed equally.  Blocks that turn out to be there already are removed from the end
 * of the image.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "pack/squashfs/private.h"

#define NOT_BEGUN UINT64_MAX
#define FIRST_ROOM 1024
#define COMPARE 65536

/* ---- the table of contents
 * ---------------------------------------------------------- */

static size_t start_of(const struct image_same *s, uint64_t key)
{
	return (size_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 20) &
	       (s->room - 1);
}

static bool same_grow(struct image_same *s)
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
/* Look for a file with the bytes of `n`.  Return 1 if *found has the same bytes; 0 if no
 * file has, and enter `n` in the table; -errno. */
static int same_look_up(struct image *im, struct image_node *n, uint64_t key,
			equal_fn *equal, const void *data,
			struct image_node **found, struct error *err)
{
	struct image_same *s = &im->same;
	size_t at;
	int r = 0;

	if (2 * (s->n + 1) > s->room && !same_grow(s))
		return error_no_memory(
			err, "the table of files with the same bytes");
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

static void image_same_free(struct image_same *s)
{
	free(s->at);
	memset(s, 0, sizeof *s);
}

/* ---- small files ------------------------------------------------------------- */

/* Read a shared block that is already in the image into im->back. */
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
		return error_no_memory(err, "a block of small files");
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
	int r = same_look_up(im, n, key, small_equal, data, &found, err);

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

/* ---- files of blocks --------------------------------------------------------- */

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
	int r = same_look_up(im, n, key, blocks_equal, NULL, &found, err);

	if (r != 1)
		return r;
	r = out_back(im->file.out, n->place, err);
	n->place = found->place;
	return r < 0 ? r : 1;
}

static bool all_zero(const unsigned char *p, size_t n)
{
	return n == 0 || (!p[0] && !memcmp(p, p + 1, n - 1));
}

/* ---- blocks that were compressed --------------------------------------------------- */

static int write_slot(struct image *im, const struct image_slot *s,
		      uint32_t *size, struct error *err)
{
	bool packed = s->packed_len > 0;

	*size = packed ? (uint32_t)s->packed_len : s->len | IMAGE_STORED;
	return image_append(im, packed ? s->packed : s->data,
			    packed ? s->packed_len : s->len, err);
}

static int fragment_done(struct image *im, const struct image_slot *s,
			 struct error *err)
{
	uint64_t at = out_size(im->file.out);
	uint32_t size;
	int r = write_slot(im, s, &size, err);

	if (r < 0)
		return r;
	r = sqfs_frag_table_set(im->fragments, s->fragment, at, size);
	return r ? image_failed(im, r, "the table of fragments", err) : 0;
}

/* All blocks of a file are in the image: set its place, and look for an equal file. */
static int file_done(struct image *im, struct image_node *n, struct error *err)
{
	int r = 0;

	if (im->begun != NOT_BEGUN) {
		n->place = im->begun;
		r = image_same_blocks(im, n, XXH3_64bits_digest(im->hash), err);
	}
	im->begun = NOT_BEGUN;
	return r < 0 ? r : 0;
}

static int slot_done(void *ctx, const struct image_slot *s, struct error *err)
{
	struct image *im = ctx;
	uint32_t size;
	int r = 0;

	if (s->fragment != IMAGE_NONE)
		return fragment_done(im, s, err);
	if (s->len) {
		if (im->begun == NOT_BEGUN) {
			im->begun = out_size(im->file.out);
			XXH3_64bits_reset(im->hash);
		}
		XXH3_64bits_update(im->hash,
				   s->packed_len ? s->packed : s->data,
				   s->packed_len ? s->packed_len : s->len);
		r = write_slot(im, s, &size, err);
		im->sizes.at[s->size_at] = size;
	}
	return r == 0 && s->last ? file_done(im, &im->nodes.at[s->node], err)
				 : r;
}

/* ---- blocks of files --------------------------------------------------------- */

static int take_slot(struct image *im, struct error *err)
{
	int r = 0;

	if (!im->filling)
		r = image_blocks_get(im->blocks, &im->filling, err);
	return r;
}

/* Note a block whose stored size will be known when it was compressed. */
static bool note_block(struct image *im)
{
	im->noted++;
	return vec_push(&im->sizes, 0);
}

/* Note `n` blocks of zeros.  Adjacent runs are merged, so that equal files are noted
 * equally. */
static bool note_holes(struct image *im, uint64_t n)
{
	bool first = im->sizes.n == im->nodes.at[im->node].blocks;
	uint32_t *before = first ? NULL : &im->sizes.at[im->sizes.n - 1];

	im->noted += n;
	if (before && *before & IMAGE_HOLES) {
		/* Does not overflow: a file has fewer than 2^31 blocks. */
		*before += (uint32_t)n;
		return true;
	}
	return vec_push(&im->sizes, IMAGE_HOLES | (uint32_t)n);
}

/* Add `n` blocks of zeros, which are not stored.  Only the end of the file goes into the
 * queue. */
static int give_holes(struct image *im, uint64_t n, bool last,
		      struct error *err)
{
	int r = last ? take_slot(im, err) : 0;

	if (r < 0)
		return r;
	if (!note_holes(im, n))
		return error_no_memory(err, "the sizes of blocks");
	if (!last)
		return 0;
	im->filling->len = 0;
	im->filling->node = im->node;
	im->filling->last = true;
	image_blocks_put(im->blocks, im->filling);
	im->filling = NULL;
	return 0;
}

/* Pass on the block that was filled. */
static int give_slot(struct image *im, bool last, struct error *err)
{
	struct image_slot *s = im->filling;

	if (all_zero(s->data, s->len)) {
		s->len = 0;
		return give_holes(im, 1, last, err);
	}
	if (!note_block(im))
		return error_no_memory(err, "the sizes of blocks");
	s->node = im->node;
	s->size_at = im->sizes.n - 1;
	s->last = last;
	im->filling = NULL;
	image_blocks_put(im->blocks, s);
	return 0;
}

int image_data_add(struct image *im, const void *data, uint64_t n, bool last,
		   struct error *err)
{
	const unsigned char *at = data;
	int r = 0;

	while (n > 0 && r == 0) {
		size_t have = im->filling ? im->filling->len : 0;
		size_t part = (size_t)min_u64(n, im->block - have);
		bool full = have + part == im->block || (last && part == n);

		if (!at && !have && full) {
			uint64_t rest = last ? 0 : n % im->block;

			r = give_holes(im, div_up(n - rest, im->block), last,
				       err);
			n = rest;
			continue;
		}
		n -= part;
		r = take_slot(im, err);
		if (r < 0)
			break;
		if (at)
			memcpy(im->filling->data + have, at, part);
		else
			memset(im->filling->data + have, 0, part);
		at = at ? at + part : NULL;
		im->filling->len += (uint32_t)part;
		if (full)
			r = give_slot(im, last && n == 0, err);
	}
	return r;
}

/* ---- small files ------------------------------------------------------------- */

static void give_small(struct image *im)
{
	if (im->small)
		image_blocks_put(im->blocks, im->small);
	im->small = NULL;
}

static int take_small(struct image *im, struct error *err)
{
	int r = image_blocks_get(im->blocks, &im->small, err);

	if (r < 0)
		return r;
	r = sqfs_frag_table_append(im->fragments, 0, 0, &im->small_number);
	if (r)
		return image_failed(im, r, "the table of fragments", err);
	im->small->fragment = im->small_number;
	return 0;
}

/* Store a small file that will not be compressed in a block of its own, so that a reader
 * gets it without its neighbours. */
static int give_dense(struct image *im, const void *data, size_t n,
		      struct error *err)
{
	return note_block(im)
		       ? image_blocks_store(im->blocks, data, (uint32_t)n,
					    im->node, im->sizes.n - 1, err)
		       : error_no_memory(err, "the sizes of blocks");
}

int image_data_small(struct image *im, const void *data, size_t n,
		     struct error *err)
{
	struct image_node *node = &im->nodes.at[im->node];
	int r;

	if (n == 0)
		return 0;
	if (!data || all_zero(data, n))
		return image_data_add(im, NULL, n, true, err);
	if (im->probe && image_dense(im->probe, data, n))
		return give_dense(im, data, n, err);
	r = image_same_small(im, node, data, XXH3_64bits(data, n), err);
	if (r != 0)
		return r < 0 ? r : 0;
	if (im->small && im->small->len + n > im->block)
		give_small(im);
	if (!im->small && (r = take_small(im, err)) < 0)
		return r;
	memcpy(im->small->data + im->small->len, data, n);
	node->fragment = im->small_number;
	node->offset = im->small->len;
	im->small->len += (uint32_t)n;
	return 0;
}

/* ---- the interface
 * ------------------------------------------------------------------ */

int image_data_open(struct image *im, struct error *err)
{
	int r = 0;

	im->begun = NOT_BEGUN;
	im->back_number = IMAGE_NONE;
	im->hash = XXH3_createState();
	if (!im->hash)
		return error_no_memory(err, "the hash of files");
	if (im->codec.choose)
		r = image_press_new(&im->probe, &im->codec, im->block, err);
	return r < 0 ? r
		     : image_blocks_new(&im->blocks, &im->codec, im->block,
					im->a.threads, im->a.memory, slot_done,
					im, im->a.stop, err);
}

int image_data_finish(struct image *im, struct error *err)
{
	give_small(im);
	return image_blocks_drain(im->blocks, err);
}

void image_data_close(struct image *im)
{
	image_blocks_free(im->blocks);
	image_press_free(im->probe);
	XXH3_freeState(im->hash);
	image_same_free(&im->same);
	free(im->back);
	free(im->back_raw);
}
