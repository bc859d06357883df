/* SPDX-License-Identifier: BSD-2-Clause */
/* The first pass over .xz files: blocks in parallel, large blocks in pieces. */
/*
 *	stream: [ header | block | block ... | index | footer ] [ padding ] stream
 *
 * The size of a block is in its own header (xz -T), or in the index after all blocks
 * (xz --block-size alone), or unknown if the file was cut off.  A block whose size is
 * known and not too large is a job; xz -T0 makes such blocks.  Any other block (xz
 * alone makes one block of everything) is decoded in pieces, one after the other.
 * liblzma verifies the check of each block; this file compares the index with the
 * blocks.
 *
 * A block is a point.  Its state is one byte, the type of the stream's check; it needs
 * none if the stream begins there, too.  Windows within a large block are POINT_LATER:
 * see idle_decoders.c.
 *
 * .lzma files are an older format without a magic number: they are not supported.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#if HAVE_LZMA
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "stream/ahead.h"
#include "stream/idle_decoders.h"
#include "stream/xz_block.h"
#include "stream/xz_index.h"

/* Blocks are jobs if they are no larger than this many windows, with threads and
 * without, ... */
#define WHOLE_THREADS 64
#define WHOLE_ALONE 4
/* ... and become one window if they are no larger than this many windows. */
#define WINDOW_WHOLE 2
/* A piece of a larger block: its decoded bytes in windows, and its stored bytes, at
 * most. */
#define PIECE_OUT 4
#define PIECE_IN(window) ((size_t)(window) / 2)

struct unit {
	struct ahead_unit base;
	struct xz_block block;
	lzma_stream own, *lzma; /* `lzma` is the decoder's for a piece */
	lzma_check check;
	uint64_t window;
	bool whole;
	bool begin;      /* the block begins with this unit */
	bool new_stream; /* and the stream begins with the block */
	bool cut;        /* the file ends with the unit's bytes */
	bool ended;      /* the block has ended */
	bool large;      /* windows begin within the block */
	/* Offset of the header of the stream that begins. */
	uint64_t header_at;
	uint64_t block_in; /* offset of the block's header */
	uint64_t file_at;  /* offset of base.in in the file */
	/* Bytes that fit into `out`, and bytes used of `in`. */
	size_t room, used;
	uint64_t block_done; /* decoded bytes of the block before the unit */
};
struct decoder {
	struct ahead_decoder base;
	uint64_t window, whole; /* bytes */
	struct xz_index *index; /* NULL: there is no valid index */
	enum {
		STREAM, /* the header of a stream follows */
		BLOCK,  /* a block or an index follows */
		WITHIN  /* a large block */
	} state;
	bool first;      /* no stream was seen yet */
	bool new_stream; /* no block of the stream was seen yet */
	bool flying;     /* a piece was not taken yet */
	/* A piece of the large block was gathered. */
	bool begun;
	uint64_t header_at, block_in; /* as in struct unit */
	lzma_check check;
	lzma_index_hash *hash; /* of the blocks so far */
	struct xz_block block; /* the large block */
	lzma_stream lzma;      /* its decoder */
	uint64_t block_done, block_at;
};

/* Set the error for blocks that go on past the end of the file.  If there is a valid
 * index, the file was not cut off but is damaged. */
static int xz_file_ends(const struct decoder *d, struct error *err)
{
	int r = xz_truncated(scan_from(d->base.stream.scan)->size, err);

	return d->index ? error_set(err, -EBADMSG,
				    "xz: the blocks are longer than the file: "
				    "damaged")
			: r;
}

static int xz_hash_block(struct decoder *d, const lzma_block *b,
			 struct error *err)
{
	lzma_ret ret = lzma_index_hash_append(
		d->hash, lzma_block_unpadded_size(b), b->uncompressed_size);

	return ret == LZMA_OK ? 0 : xz_failed(ret, d->base.feed.at, err);
}

/* ---- gathering ----------------------------------------------------------- */

static void xz_unit_clear(struct ahead_unit *base)
{
	struct unit *u = (struct unit *)base;

	xz_block_free(&u->block);
	lzma_end(&u->own);
}

static struct unit *xz_unit_new(struct decoder *d, size_t in)
{
	struct unit *u = calloc(1, sizeof *u);

	if (!u)
		return NULL;
	u->block.filters[0].id = LZMA_VLI_UNKNOWN;
	u->own = (lzma_stream)LZMA_STREAM_INIT;
	u->base.in = malloc(in + 1);
	if (!u->base.in) {
		ahead_discard(&d->base, &u->base);
		return NULL;
	}
	u->file_at = d->base.feed.at;
	u->block_in = d->block_in;
	u->header_at = d->header_at;
	u->new_stream = d->new_stream;
	u->check = d->check;
	u->window = d->window;
	return u;
}

/* Find the sizes of the next block.  Return whether they are known and small enough
 * for a job. */
static bool xz_is_whole(struct decoder *d, lzma_block *b)
{
	if (b->compressed_size == LZMA_VLI_UNKNOWN ||
	    b->uncompressed_size == LZMA_VLI_UNKNOWN)
		xz_index_look_up(d->index, d->base.feed.at, b);
	return b->compressed_size != LZMA_VLI_UNKNOWN &&
	       b->uncompressed_size != LZMA_VLI_UNKNOWN &&
	       b->uncompressed_size <= d->whole && lzma_block_total_size(b) &&
	       lzma_block_total_size(b) <= d->whole;
}

/* Gather all of a block. */
static int xz_gather_whole(struct decoder *d, struct xz_block *b,
			   struct ahead_unit **out, struct error *err)
{
	size_t n = (size_t)lzma_block_total_size(&b->block);
	struct unit *u = xz_unit_new(d, n);
	ssize_t r;
	int code;

	if (!u)
		return error_no_memory(err, "decoding xz data");
	r = slide_read(&d->base.feed, u->base.in, n, err);
	code = r < 0 ? (int)r : xz_hash_block(d, &b->block, err);
	if (code < 0) {
		ahead_discard(&d->base, &u->base);
		return code;
	}
	u->base.in_size = (size_t)r;
	u->cut = (size_t)r < n;
	u->block = *b;
	b->filters[0].id = LZMA_VLI_UNKNOWN;
	u->whole = u->begin = true;
	u->lzma = &u->own;
	u->room = (size_t)u->block.block.uncompressed_size;
	u->large = u->room > WINDOW_WHOLE * d->window;
	u->base.cost = n + u->room + (size_t)xz_block_memory(&u->block);
	d->new_stream = false;
	*out = &u->base;
	return AHEAD_UNIT;
}

/* Gather a piece of a block.  Its bytes are passed when the decoder has shown how
 * many it used. */
static int xz_gather_piece(struct decoder *d, struct ahead_unit **out,
			   struct error *err)
{
	ssize_t n = slide_need(&d->base.feed, PIECE_IN(d->window), err);
	struct unit *u;

	if (n < 0)
		return (int)n;
	u = xz_unit_new(d, (size_t)n);
	if (!u)
		return error_no_memory(err, "decoding xz data");
	memcpy(u->base.in, d->base.feed.data, (size_t)n);
	u->base.in_size = (size_t)n;
	u->cut = (size_t)n < PIECE_IN(d->window);
	u->begin = !d->begun;
	u->lzma = &d->lzma;
	u->room = PIECE_OUT * (size_t)d->window;
	u->large = true;
	u->block_done = d->block_done;
	u->base.cost = (size_t)n + u->room;
	d->begun = d->flying = true;
	*out = &u->base;
	return AHEAD_UNIT;
}

static int xz_gather_block(struct decoder *d, struct xz_block *b,
			   struct ahead_unit **out, struct error *err)
{
	int r;

	d->block_in = d->base.feed.at;
	if (xz_is_whole(d, &b->block))
		return xz_gather_whole(d, b, out, err);
	d->block = *b;
	b->filters[0].id = LZMA_VLI_UNKNOWN;
	r = xz_block_begin(&d->block, &d->lzma, err);
	if (r < 0)
		return r;
	slide_drop(&d->base.feed, d->block.block.header_size);
	d->begun = false;
	d->block_done = 0;
	d->state = WITHIN;
	return xz_gather_piece(d, out, err);
}

static int xz_enter_stream(struct decoder *d, struct error *err)
{
	lzma_index_hash *hash;
	int r;

	r = xz_stream_header(&d->base.feed, d->first, &d->check, err);
	if (r == 0 && d->first)
		return xz_truncated(0, err);
	if (r <= 0)
		return r;
	if (d->check == LZMA_CHECK_NONE)
		scan_unchecked(d->base.stream.scan);
	hash = lzma_index_hash_init(d->hash, NULL);
	if (!hash)
		return error_no_memory(err, "decoding xz data");
	d->hash = hash;
	d->header_at = d->base.feed.at - LZMA_STREAM_HEADER_SIZE;
	d->first = false;
	d->new_stream = true;
	d->state = BLOCK;
	return 1;
}

static int xz_gather_unit(void *own, struct ahead_unit **out, struct error *err)
{
	struct decoder *d = own;
	const struct stream_scan *scan = d->base.stream.scan;
	struct xz_block b;
	int r = 0;

	if (d->flying)
		return AHEAD_WAIT;
	d->window = scan_window(scan);
	d->whole = d->window *
		   (scan_threads(scan) > 1 ? WHOLE_THREADS : WHOLE_ALONE);
	if (d->state == WITHIN)
		return xz_gather_piece(d, out, err);
	for (;;) {
		if (d->state == STREAM) {
			r = xz_enter_stream(d, err);
			if (r <= 0)
				return r < 0 ? r : AHEAD_END;
		}
		r = xz_block_header(&d->base.feed, d->check, &b, err);
		if (r < 0)
			return r == -EIO ? xz_file_ends(d, err) : r;
		if (r == 1)
			break;
		r = xz_pass_index(&d->base.feed, d->hash, d->check, err);
		if (r < 0)
			return r == -EIO ? xz_file_ends(d, err) : r;
		d->state = STREAM;
	}
	r = xz_gather_block(d, &b, out, err);
	xz_block_free(&b);
	return r;
}

/* ---- decoding ------------------------------------------------------------ */

static bool xz_mark_begin(struct unit *u)
{
	struct ahead_mark mark = {
		.in = u->block_in, .must = u->large, .state = !u->new_stream};

	if (u->new_stream) {
		mark.in = u->header_at;
		mark.flags = POINT_START;
	}
	return ahead_add_mark(&u->base, mark);
}

static size_t xz_mark_state(const struct ahead_unit *base,
			    const struct ahead_mark *m,
			    unsigned char to[AHEAD_STATE_MOST])
{
	(void)m;
	to[0] = (unsigned char)((const struct unit *)base)->check;
	return 1;
}

/* Return the decoded bytes up to where the next window may begin, or to the end of
 * the room. */
static size_t xz_until_mark(const struct unit *u)
{
	uint64_t done = u->block_done + u->base.out_size;
	size_t left = u->room - u->base.out_size;

	return u->large ? (size_t)min_u64(left, u->window - done % u->window)
			: left;
}

static bool xz_mark_within(struct unit *u)
{
	struct ahead_mark mark = {.out = u->base.out_size,
				  .in = u->file_at + u->used,
				  .flags = POINT_LATER};

	if ((u->block_done + mark.out) % u->window || !u->large ||
	    (u->begin && !mark.out))
		return true;
	return ahead_add_mark(&u->base, mark);
}

/* Decode the bytes of the unit.  Return 0, or the error that ends the stream. */
static int xz_decode_unit(struct unit *u, struct error *err)
{
	lzma_stream *z = u->lzma;
	lzma_ret ret = LZMA_OK;

	while (ret == LZMA_OK) {
		unsigned char spare;
		size_t n = xz_until_mark(u);

		if (!xz_mark_within(u))
			return error_no_memory(err, "decoding xz data");
		/* Without room for more bytes, the end of the block may still
		 * follow. */
		z->next_in = u->base.in + u->used;
		z->avail_in = u->base.in_size - u->used;
		z->next_out = n ? u->base.out + u->base.out_size : &spare;
		z->avail_out = n;
		if (!u->whole && (!n || (!z->avail_in && !u->cut)))
			return 0;
		ret = lzma_code(z, LZMA_RUN);
		u->used = u->base.in_size - z->avail_in;
		u->base.out_size += n - z->avail_out;
	}
	u->ended = ret == LZMA_STREAM_END;
	if (u->ended)
		return 0;
	if (ret != LZMA_BUF_ERROR)
		return xz_failed(ret, u->file_at + u->used, err);
	if (u->whole || u->cut)
		return u->cut && u->used == u->base.in_size
			       ? xz_truncated(u->file_at + u->used, err)
			       : xz_failed(LZMA_DATA_ERROR,
					   u->file_at + u->used, err);
	return 0;
}

static int xz_run_unit(struct ahead_unit *base, struct error *err)
{
	struct unit *u = (struct unit *)base;
	int r = 0;

	base->out = malloc(u->room + 1);
	if (!base->out || (u->begin && !xz_mark_begin(u)))
		r = error_no_memory(err, "decoding xz data");
	if (r == 0 && u->whole) {
		r = xz_block_begin(&u->block, &u->own, err);
		u->used = u->block.block.header_size;
	}
	if (r == 0)
		r = xz_decode_unit(u, err);
	lzma_end(&u->own);
	return r;
}

static int xz_take_unit(void *own, struct ahead_unit *base, struct error *err)
{
	struct unit *u = (struct unit *)base;
	struct decoder *d = own;
	int r = 0;

	base->verified = u->whole ? base->at : d->block_at;
	if (base->err.code == -EIO && d->index)
		xz_file_ends(d, &base->err);
	if (u->whole)
		return 0;
	if (u->begin)
		d->block_at = base->verified = base->at;
	slide_drop(&d->base.feed, u->used);
	d->block_done += base->out_size;
	d->flying = false;
	d->new_stream = false;
	if (u->ended) {
		r = xz_hash_block(d, &d->block.block, err);
		xz_block_free(&d->block);
		d->state = BLOCK;
	}
	return r;
}

/* ---- the format ---------------------------------------------------------- */

static int xz_open(void *own, struct error *err)
{
	struct decoder *d = own;

	(void)err;
	d->first = true;
	d->lzma = (lzma_stream)LZMA_STREAM_INIT;
	d->block.filters[0].id = LZMA_VLI_UNKNOWN;
	d->index = xz_index_read(scan_from(d->base.stream.scan));
	return 0;
}

static void xz_close(void *own)
{
	struct decoder *d = own;

	lzma_end(&d->lzma);
	xz_block_free(&d->block);
	lzma_index_hash_end(d->hash, NULL);
	xz_index_free(d->index);
}

static const struct ahead_ops ahead_ops = {
	.size = sizeof(struct decoder),
	.open = xz_open,
	.close = xz_close,
	.next = xz_gather_unit,
	.run = xz_run_unit,
	.taken = xz_take_unit,
	.state = xz_mark_state,
	.clear = xz_unit_clear,
};

static int xz_probe(const unsigned char *head, size_t n)
{
	static const unsigned char magic[6] = {0xfd, '7', 'z', 'X', 'Z', 0};

	return n >= sizeof magic && !memcmp(head, magic, sizeof magic) ? 100
								       : 0;
}

static const char *const suffixes[] = {".tar.xz=.tar", ".txz=.tar",
				       ".xz=", NULL};

const struct stream_format stream_xz = {
	.name = "xz",
	.suffixes = suffixes,
	.probe = xz_probe,
	.decoder = &ahead_decoder,
	.ahead = &ahead_ops,
	.window = xz_window,
	.free_own = idle_decoders_free,
};
#endif
