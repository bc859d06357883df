/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows of .xz files: a cursor that decodes blocks from a point on. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#if HAVE_LZMA
#include <errno.h>
#include <stdlib.h>

#include "base/number.h"
#include "stream/idle_decoders.h"
#include "stream/xz_block.h"

struct cursor {
	struct slide feed;
	enum {
		STREAM, /* the header of a stream follows */
		BLOCK,  /* a block or an index follows */
		WITHIN  /* a block */
	} state;
	lzma_check check;
	struct xz_block block;
	lzma_stream lzma;
	/* Bytes of memory of `lzma`, which does not report them. */
	size_t memory;
};

static int xz_window_open(void **out, const struct stream *s, uint64_t i,
			  struct error *err)
{
	struct cursor *c = calloc(1, sizeof *c);
	unsigned char check;
	ssize_t r;

	if (!c)
		return error_no_memory(err, "decoding xz data");
	slide_of_stream(&c->feed, s, s->point[i].in);
	c->lzma = (lzma_stream)LZMA_STREAM_INIT;
	c->block.filters[0].id = LZMA_VLI_UNKNOWN;
	/* Without a state a stream begins here.  The state is the type of the check
	 * that blocks end with. */
	if (s->point[i].state_size) {
		r = stream_state(s, i, &check, 1, err);
		if (r == 1 && check > LZMA_CHECK_ID_MAX)
			r = 0;
		if (r != 1) {
			free(c);
			return r < 0 ? (int)r
				     : error_set(err, -EBADMSG,
						 "xz: the state of a seek "
						 "point is not valid");
		}
		c->state = BLOCK;
		c->check = check;
	}
	*out = c;
	return 0;
}

static void xz_window_close(void *decoder)
{
	struct cursor *c = decoder;

	lzma_end(&c->lzma);
	xz_block_free(&c->block);
	slide_free(&c->feed);
	free(c);
}

static size_t xz_window_memory(void *decoder)
{
	struct cursor *c = decoder;

	return c->feed.room + c->memory;
}

/* Pass a number of the index.  Its value is not checked. */
static int xz_window_pass_number(struct slide *f, uint64_t *v,
				 struct error *err)
{
	*v = 0;
	for (unsigned i = 0; i < LZMA_VLI_BYTES_MAX; i++) {
		ssize_t r = slide_need(f, 1, err);
		unsigned char byte;

		if (r <= 0)
			return r < 0 ? (int)r : xz_truncated(f->at, err);
		byte = f->data[0];
		slide_drop(f, 1);
		*v |= (uint64_t)(byte & 127) << 7 * i;
		if (byte < 128)
			return 0;
	}
	return xz_failed(LZMA_DATA_ERROR, f->at, err);
}

/* Pass the index and footer of a stream, unchecked: the first pass has checked them. */
static int xz_window_pass_index(struct slide *f, struct error *err)
{
	uint64_t begin = f->at, n, v, rest;
	int64_t got;
	int r;

	slide_drop(f, 1);
	r = xz_window_pass_number(f, &n, err);
	for (uint64_t i = 0; i < n && r == 0; i++) {
		r = xz_window_pass_number(f, &v, err);
		if (r == 0)
			r = xz_window_pass_number(f, &v, err);
	}
	if (r < 0)
		return r;
	rest = (4 - (f->at - begin) % 4) % 4 + 4 + LZMA_STREAM_HEADER_SIZE;
	got = slide_skip(f, rest, err);
	if (got < 0)
		return (int)got;
	return (uint64_t)got < rest ? xz_truncated(f->at, err) : 0;
}

static int xz_window_next_block(struct cursor *c, struct error *err)
{
	int r = xz_block_header(&c->feed, c->check, &c->block, err);

	if (r < 0)
		return r;
	if (r == 0) {
		c->state = STREAM;
		return xz_window_pass_index(&c->feed, err);
	}
	c->memory = (size_t)xz_block_memory(&c->block);
	r = xz_block_begin(&c->block, &c->lzma, err);
	if (r == 0) {
		slide_drop(&c->feed, c->block.block.header_size);
		c->state = WITHIN;
	} else {
		xz_block_free(&c->block);
	}
	return r;
}

/* Decode some of the block: *got bytes, at most n.  Return 0 or -errno. */
static int xz_window_within(struct cursor *c, unsigned char *out, size_t n,
			    size_t *got, struct error *err)
{
	ssize_t have = slide_need(&c->feed, 1, err);
	size_t used;
	lzma_ret ret;

	if (have < 0)
		return (int)have;
	c->lzma.next_in = c->feed.data;
	c->lzma.avail_in = c->feed.n;
	c->lzma.next_out = out;
	c->lzma.avail_out = n;
	ret = lzma_code(&c->lzma, LZMA_RUN);
	used = c->feed.n - c->lzma.avail_in;
	*got = n - c->lzma.avail_out;
	slide_drop(&c->feed, used);
	if (ret == LZMA_STREAM_END) {
		xz_block_free(&c->block);
		c->state = BLOCK;
		return 0;
	}
	if (ret != LZMA_OK && ret != LZMA_BUF_ERROR)
		return xz_failed(ret, c->feed.at, err);
	return !have && !*got ? xz_truncated(c->feed.at, err) : 0;
}

static int xz_window_step(struct cursor *c, unsigned char *out, size_t n,
			  size_t *got, struct error *err)
{
	int r;

	*got = 0;
	if (c->state == WITHIN)
		return xz_window_within(c, out, n, got, err);
	if (c->state == BLOCK)
		return xz_window_next_block(c, err);
	r = xz_stream_header(&c->feed, false, &c->check, err);
	c->state = BLOCK;
	return r == 0 ? xz_truncated(c->feed.at, err) : r < 0 ? r : 0;
}

static int xz_window_read(void *decoder, const struct stream *s, uint64_t i,
			  unsigned char *out, size_t n, struct error *err)
{
	size_t done = 0;

	(void)s;
	(void)i;
	while (done < n) {
		size_t got;
		int r = xz_window_step(decoder, out + done, n - done, &got,
				       err);

		if (r < 0)
			return r;
		done += got;
	}
	return 0;
}

static const struct idle_decoder_ops idle_decoder_ops = {
	.open = xz_window_open,
	.read = xz_window_read,
	.memory = xz_window_memory,
	.close = xz_window_close,
};

int xz_window(struct stream *s, uint64_t i, unsigned char *out,
	      struct error *err)
{
	return idle_decoder_window(s, &idle_decoder_ops, i, out, err);
}
#endif
