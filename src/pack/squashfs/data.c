/* SPDX-License-Identifier: BSD-2-Clause */
/* The bytes of files: into blocks, into blocks of many small files, or nowhere. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "pack/squashfs/private.h"

#define NOT_BEGUN UINT64_MAX

static int no_memory(struct error *err)
{
	return error_set(err, -ENOMEM, "out of memory");
}

static bool all_zero(const unsigned char *p, size_t n)
{
	return n == 0 || (!p[0] && !memcmp(p, p + 1, n - 1));
}

/* ---- what comes out ---------------------------------------------------------- */

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

/* All blocks of a file are in the image. */
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

/* ---- blocks of files ---------------------------------------------------------- */

static int take_slot(struct image *im, struct error *err)
{
	int r = 0;

	if (!im->filling)
		r = image_blocks_get(im->blocks, &im->filling, err);
	return r;
}

/* A block whose size is known when it is done. */
static bool note_block(struct image *im)
{
	im->noted++;
	return vec_push(&im->sizes, 0);
}

/* Rows are as long as they can be, so that what is the same is noted alike. */
static bool note_holes(struct image *im, uint64_t n)
{
	bool first = im->sizes.n == im->nodes.at[im->node].blocks;
	uint32_t *before = first ? NULL : &im->sizes.at[im->sizes.n - 1];

	im->noted += n;
	if (before && *before & IMAGE_HOLES) {
		*before += (uint32_t)n; /* a file has fewer blocks than that */
		return true;
	}
	return vec_push(&im->sizes, IMAGE_HOLES | (uint32_t)n);
}

/* Blocks with nothing in them; what goes into the queue is only that this was all. */
static int give_holes(struct image *im, uint64_t n, bool last,
		      struct error *err)
{
	int r = last ? take_slot(im, err) : 0;

	if (r < 0)
		return r;
	if (!note_holes(im, n))
		return no_memory(err);
	if (!last)
		return 0;
	im->filling->len = 0;
	im->filling->node = im->node;
	im->filling->last = true;
	image_blocks_put(im->blocks, im->filling);
	im->filling = NULL;
	return 0;
}

/* The block that was filled. */
static int give_slot(struct image *im, bool last, struct error *err)
{
	struct image_slot *s = im->filling;

	if (all_zero(s->data, s->len)) {
		s->len = 0;
		return give_holes(im, 1, last, err);
	}
	if (!note_block(im))
		return no_memory(err);
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

/* ---- small files ---------------------------------------------------------------- */

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

/* What is not going to be compressed has a block of its own: a reader gets it without
 * its neighbours. */
static int give_dense(struct image *im, const void *data, size_t n,
		      struct error *err)
{
	return note_block(im)
		       ? image_blocks_store(im->blocks, data, (uint32_t)n,
					    im->node, im->sizes.n - 1, err)
		       : no_memory(err);
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

/* ---- all of it -------------------------------------------------------------------- */

int image_data_open(struct image *im, struct error *err)
{
	int r = 0;

	im->begun = NOT_BEGUN;
	im->back_number = IMAGE_NONE;
	im->hash = XXH3_createState();
	if (!im->hash)
		return no_memory(err);
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
