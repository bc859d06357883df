/* SPDX-License-Identifier: BSD-2-Clause */
/* Zstandard frames: their headers, and a cursor that decodes them. */
/*
 * libzstd decodes.  Frames and blocks are parsed here (RFC 8878), because seek points
 * are where they begin, and so that decoding can go on after a frame whose checksum is
 * wrong.
 *
 * A frame that is in memory as a whole is decoded in one step, which needs no window.
 * Any other frame is given to the streaming decoder block by block, after a header that
 * is made here and asks for a window no larger than the data that can follow: a header
 * of a few bytes may claim 2 GiB, which libzstd would allocate.
 */
#include "stream/zstd_frame.h"

#include <errno.h>
#include <string.h>
#include <zstd_errors.h>

#include "base/bytes.h"
#include "base/number.h"
#include "base/system.h"

#define MAGIC 0xfd2fb528u
/* The smallest frame, in bytes. */
#define FRAME_LEAST 8
/* A block of 4 bytes may stand for this many decoded bytes. */
#define EXPANSION_MOST (UINT64_C(128) << 10)
/* Windows up to this many bytes are not compared with the available memory. */
#define WINDOW_SMALL (UINT64_C(128) << 20)
#define WINDOW_MOST (UINT64_C(1) << 31)

static bool zstd_is_frame(uint32_t magic)
{
	return magic == MAGIC;
}

const struct frame_kind zstd_frames = {
	.name = "zstd",
	.is_frame = zstd_is_frame,
	.skippable_bid = 20,
	.rest = -EIO,
};

/* ---- headers ------------------------------------------------------------- */

static int zstd_parse_header(struct slide *f, struct zstd_frame *out,
			     struct error *err)
{
	static const unsigned char dict_sizes[4] = {0, 1, 2, 4};
	unsigned descriptor = f->data[4], dict = dict_sizes[descriptor & 3];
	bool single = descriptor & 0x20;
	unsigned content = 1u << (descriptor >> 6);
	const unsigned char *p;
	int r;

	if (content == 1 && !single)
		content = 0;
	out->header = 5 + !single + dict + content;
	out->checksum = descriptor & 4;
	r = frame_need(&zstd_frames, f, out->header, err);
	if (r < 0)
		return r;
	if (descriptor & 8)
		return error_set(err, -ENOTSUP,
				 "zstd: the frame at %llu uses a bit that is "
				 "reserved: written by a newer zstd, or "
				 "damaged",
				 (unsigned long long)f->at);
	p = f->data + 5 + !single;
	if (load_le(p, dict))
		return error_set(err, -ENOTSUP,
				 "zstd: the frame at %llu needs dictionary "
				 "%llu; compress without one",
				 (unsigned long long)f->at,
				 (unsigned long long)load_le(p, dict));
	out->content = content ? load_le(p + dict, content) : UINT64_MAX;
	if (content == 2)
		out->content += 256;
	out->window = out->content;
	if (!single) {
		uint64_t base = UINT64_C(1) << (10 + (f->data[5] >> 3));

		out->window = base + base / 8 * (f->data[5] & 7);
	}
	out->block = (size_t)min_u64(out->window, ZSTD_BLOCK_MOST);
	return 1;
}

int zstd_next_frame(struct slide *f, struct zstd_frame *out, struct error *err)
{
	int r = frame_next(&zstd_frames, f, err);

	if (r <= 0)
		return r;
	r = frame_need(&zstd_frames, f, FRAME_LEAST, err);
	return r < 0 ? r : zstd_parse_header(f, out, err);
}

int zstd_parse_block(const struct zstd_frame *frame, const unsigned char p[3],
		     struct zstd_block *out, struct error *err)
{
	uint32_t header = (uint32_t)load_le(p, 3);
	uint32_t size = header >> 3;
	unsigned type = header >> 1 & 3;

	out->last = header & 1;
	out->stored = type == 1 ? 1 : size;
	out->decoded = type == 2 ? frame->block : size;
	if (type == 3 || size > frame->block)
		return error_set(err, -EBADMSG,
				 "zstd: a block of %u bytes, type %u, is "
				 "impossible: damaged",
				 (unsigned)size, type);
	return 0;
}

/* ---- decoding ------------------------------------------------------------ */

void zstd_cursor_free(struct zstd_cursor *c)
{
	slide_free(&c->feed);
	ZSTD_freeDCtx(c->d);
	c->d = NULL;
}

static int zstd_failed(const struct zstd_cursor *c, size_t code,
		       struct error *err)
{
	if (ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation)
		return error_set(err, -ENOMEM,
				 "zstd: out of memory for a window of %llu "
				 "bytes",
				 (unsigned long long)c->frame.window);
	return error_set(err, -EBADMSG, "zstd: at %llu: %s",
			 (unsigned long long)c->feed.at,
			 ZSTD_getErrorName(code));
}

/* Find the smallest window (2^*log bytes) that is enough for the frame's data.
 * Return 0, or -ENOTSUP or -ENOMEM if it is too large. */
static int zstd_choose_window(const struct zstd_cursor *c, unsigned *log,
			      struct error *err)
{
	const struct zstd_frame *frame = &c->frame;
	uint64_t rest =
		c->file_size > c->feed.at ? c->file_size - c->feed.at : 0;
	uint64_t need = min_u64(frame->window, frame->content);
	uint64_t most;

	if (!mul_overflows(rest / 4 + 1, EXPANSION_MOST, &most))
		need = min_u64(need, most);
	*log = 17;
	while (*log < 32 && UINT64_C(1) << *log < need)
		++*log;
	if (*log > 31)
		return error_set(err, -ENOTSUP,
				 "zstd: the frame at %llu needs a window of "
				 "%llu MiB, more than the limit of 2 GiB",
				 (unsigned long long)c->feed.at,
				 (unsigned long long)(need >> 20));
	if (need > WINDOW_SMALL && need > system_memory() / 4)
		return error_set(err, -ENOMEM,
				 "zstd: the frame at %llu needs a window of "
				 "%llu MiB, more than a quarter of the memory "
				 "here; compress with a smaller --long",
				 (unsigned long long)c->feed.at,
				 (unsigned long long)(need >> 20));
	return 0;
}

static int zstd_begin_frame(struct zstd_cursor *c, struct error *err)
{
	unsigned char header[6] = {MAGIC & 255, MAGIC >> 8 & 255,
				   MAGIC >> 16 & 255, MAGIC >> 24};
	ZSTD_inBuffer in = {header, sizeof header, 0};
	ZSTD_outBuffer none = {header, 0, 0};
	unsigned log;
	size_t r;
	int code = zstd_choose_window(c, &log, err);

	if (code < 0)
		return code;
	header[4] = c->frame.checksum ? 4 : 0;
	header[5] = (unsigned char)((log - 10) << 3);
	ZSTD_DCtx_reset(c->d, ZSTD_reset_session_only);
	r = ZSTD_DCtx_setParameter(c->d, ZSTD_d_windowLogMax, 31);
	if (!ZSTD_isError(r))
		r = ZSTD_decompressStream(c->d, &none, &in);
	if (ZSTD_isError(r))
		return zstd_failed(c, r, err);
	slide_drop(&c->feed, c->frame.header);
	c->done = 0;
	c->state = ZSTD_BLOCKS;
	return 0;
}

/* Decode a frame that is in the feed as a whole.  Return whether that succeeded. */
static bool zstd_whole_frame(struct zstd_cursor *c, unsigned char *out,
			     size_t n, size_t *got)
{
	size_t stored, r;

	if (c->blocks ||
	    (c->frame.content != UINT64_MAX && c->frame.content > n))
		return false;
	stored = ZSTD_findFrameCompressedSize(c->feed.data, c->feed.n);
	if (ZSTD_isError(stored))
		return false;
	r = ZSTD_decompressDCtx(c->d, out, n, c->feed.data, stored);
	if (ZSTD_isError(r))
		return false;
	slide_drop(&c->feed, stored);
	*got = r;
	return true;
}

/* Give the decoder n bytes of the feed.  Return 1 or -errno. */
static int zstd_feed_decoder(struct zstd_cursor *c, size_t n,
			     unsigned char *out, size_t room, size_t *got,
			     struct error *err)
{
	ZSTD_inBuffer in = {c->feed.data, n, 0};
	ZSTD_outBuffer to = {out, room, 0};
	size_t r, was;

	do {
		was = in.pos + to.pos;
		r = ZSTD_decompressStream(c->d, &to, &in);
		if (ZSTD_isError(r))
			return zstd_failed(c, r, err);
	} while (in.pos < in.size && to.pos < to.size && in.pos + to.pos > was);
	slide_drop(&c->feed, in.pos);
	*got = to.pos;
	c->done += to.pos;
	c->left = n - in.pos;
	if (to.pos == to.size)
		c->state = ZSTD_FLUSH;
	else if (c->left)
		return error_set(err, -EBADMSG,
				 "zstd: at %llu: the decoder is stuck",
				 (unsigned long long)c->feed.at);
	else if (!c->last)
		c->state = ZSTD_BLOCKS;
	else
		c->state = ZSTD_CHECK;
	return 1;
}

static int zstd_decode_block(struct zstd_cursor *c, unsigned char *out,
			     size_t n, size_t *got, struct error *err)
{
	struct zstd_block block;
	int r = frame_need(&zstd_frames, &c->feed, 3, err);

	if (r == 0)
		r = zstd_parse_block(&c->frame, c->feed.data, &block, err);
	if (r == 0)
		r = frame_need(&zstd_frames, &c->feed, 3 + block.stored, err);
	if (r < 0)
		return r;
	c->last = block.last;
	return zstd_feed_decoder(c, 3 + block.stored, out, n, got, err);
}

static int zstd_check_frame(struct zstd_cursor *c, struct error *err)
{
	unsigned char none;
	ZSTD_outBuffer to = {&none, 0, 0};
	ZSTD_inBuffer in = {NULL, 4, 0};
	size_t r;
	int code;

	c->state = ZSTD_BETWEEN;
	if (c->frame.content != UINT64_MAX && c->done != c->frame.content)
		return error_set(err, -EBADMSG,
				 "zstd: the frame that ends at %llu decodes to "
				 "%llu bytes, but its header says %llu",
				 (unsigned long long)c->feed.at,
				 (unsigned long long)c->done,
				 (unsigned long long)c->frame.content);
	if (!c->frame.checksum)
		return 1;
	code = frame_need(&zstd_frames, &c->feed, 4, err);
	if (code < 0)
		return code;
	in.src = c->feed.data;
	r = ZSTD_decompressStream(c->d, &to, &in);
	slide_drop(&c->feed, 4);
	if (!ZSTD_isError(r))
		return 1;
	if (ZSTD_getErrorCode(r) != ZSTD_error_checksum_wrong)
		return zstd_failed(c, r, err);
	return error_set(err, -EILSEQ,
			 "zstd: the checksum of the frame that ends at %llu "
			 "does not match",
			 (unsigned long long)c->feed.at);
}

int zstd_cursor_step(struct zstd_cursor *c, unsigned char *out, size_t n,
		     size_t *got, struct error *err)
{
	int r;

	*got = 0;
	if (!c->d && !(c->d = ZSTD_createDCtx()))
		return error_no_memory(err, "decoding zstd data");
	switch (c->state) {
	case ZSTD_BETWEEN:
		r = zstd_next_frame(&c->feed, &c->frame, err);
		if (r <= 0 || zstd_whole_frame(c, out, n, got))
			return r;
		r = zstd_begin_frame(c, err);
		return r < 0 ? r : 1;
	case ZSTD_BLOCKS:
		return zstd_decode_block(c, out, n, got, err);
	case ZSTD_FLUSH:
		return zstd_feed_decoder(c, c->left, out, n, got, err);
	case ZSTD_CHECK:
		return zstd_check_frame(c, err);
	}
	return -EINVAL;
}
