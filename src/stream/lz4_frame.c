/* SPDX-License-Identifier: BSD-2-Clause */
/* LZ4 frames, legacy frames, and their blocks. */
/*
 * liblz4 decodes blocks.  Frames are parsed here, because a seek point is where a block
 * begins, and liblz4's frame decoder can begin only at a frame.
 */
#include "stream/lz4_frame.h"

#include <errno.h>
#include <lz4.h>
#include <string.h>
#include <xxhash.h>

#include "base/bytes.h"
#include "base/number.h"

#define MAGIC 0x184d2204u
#define MAGIC_LEGACY 0x184c2102u
#define LEGACY_BLOCK ((size_t)8 << 20)
#define RAW 0x80000000u
/* A compressed byte stands for this many decoded bytes at most. */
#define EXPANSION 255

static bool lz4_is_frame(uint32_t magic)
{
	return magic == MAGIC || magic == MAGIC_LEGACY;
}

const struct frame_kind lz4_frames = {
	.name = "lz4",
	.is_frame = lz4_is_frame,
	.skippable_bid = 10,
	.rest = -EBADMSG,
};

/* ---- frames -------------------------------------------------------------- */

static int lz4_bad_header(const struct slide *f, int code, const char *why,
			  struct error *err)
{
	return error_set(err, code, "lz4: the frame at %llu %s",
			 (unsigned long long)f->at, why);
}

static int lz4_parse_header(struct slide *f, struct lz4_frame *out,
			    struct error *err)
{
	unsigned flg = f->data[4], bd = f->data[5];
	size_t n = 7 + (flg & 8 ? 8 : 0) + (flg & 1 ? 4 : 0);
	unsigned size = bd >> 4 & 7;
	int r = frame_need(&lz4_frames, f, n, err);

	if (r < 0)
		return r;
	if ((XXH32(f->data + 4, n - 5, 0) >> 8 & 255) != f->data[n - 1])
		return lz4_bad_header(f, -EBADMSG, "has a damaged header", err);
	if (flg >> 6 != 1 || flg & 2 || bd & 0x8f || size < 4)
		return lz4_bad_header(f, -ENOTSUP, "has an unknown version",
				      err);
	if (flg & 1)
		return lz4_bad_header(
			f, -ENOTSUP, "needs a dictionary; compress without one",
			err);
	out->flags = (flg & 0x20 ? 0 : LZ4_LINKED) |
		     (flg & 0x10 ? LZ4_BLOCK_SUMS : 0) |
		     (flg & 4 ? LZ4_CONTENT_SUM : 0);
	out->block = (size_t)1 << (8 + 2 * size);
	out->content = UINT64_MAX;
	if (flg & 8)
		out->content = load_le64(f->data + 6);
	slide_drop(f, n);
	return 1;
}

int lz4_next_frame(struct slide *f, struct lz4_frame *out, struct error *err)
{
	int r = frame_next(&lz4_frames, f, err);

	if (r <= 0)
		return r;
	out->at = f->at;
	if (load_le32(f->data) == MAGIC_LEGACY) {
		out->flags = LZ4_LEGACY;
		out->block = LEGACY_BLOCK;
		out->content = UINT64_MAX;
		slide_drop(f, FRAME_MAGIC);
		return 1;
	}
	r = frame_need(&lz4_frames, f, 7, err);
	return r < 0 ? r : lz4_parse_header(f, out, err);
}

/* ---- blocks -------------------------------------------------------------- */

static int lz4_block_impossible(const struct slide *f, uint32_t size,
				struct error *err)
{
	return error_set(err, -EBADMSG,
			 "lz4: at %llu: a block of %u bytes is impossible: "
			 "damaged",
			 (unsigned long long)f->at, (unsigned)size);
}

int lz4_next_block(struct slide *f, const struct lz4_frame *frame,
		   struct lz4_block *out, size_t *n, struct error *err)
{
	bool legacy = frame->flags & LZ4_LEGACY;
	ssize_t have = slide_need(f, LZ4_BLOCK_HEAD, err);
	uint32_t size;
	int r;

	if (have < 0)
		return (int)have;
	/* Legacy frames have no end mark: they end with the file or where another
	 * frame begins, whose magic number is not a possible size of a block. */
	if (have == 0 && legacy)
		return 0;
	if (have < LZ4_BLOCK_HEAD)
		return frame_truncated(&lz4_frames, f, err);
	size = load_le32(f->data);
	if (legacy && (lz4_is_frame(size) || frame_is_skippable(size)))
		return 0;
	if (!size && !legacy) {
		slide_drop(f, LZ4_BLOCK_HEAD);
		return 0;
	}
	out->raw = !legacy && size & RAW;
	if (!legacy)
		size &= ~RAW;
	if (!size || size > (legacy ? (uint32_t)LZ4_COMPRESSBOUND(LEGACY_BLOCK)
				    : frame->block))
		return lz4_block_impossible(f, size, err);
	out->stored = size;
	*n = LZ4_BLOCK_HEAD + size + (frame->flags & LZ4_BLOCK_SUMS ? 4 : 0);
	r = frame_need(&lz4_frames, f, *n, err);
	return r < 0 ? r : 1;
}

int lz4_content_sum(struct slide *f, uint32_t *sum, struct error *err)
{
	int r = frame_need(&lz4_frames, f, 4, err);

	if (r < 0)
		return r;
	*sum = load_le32(f->data);
	slide_drop(f, 4);
	return 0;
}

size_t lz4_block_most(const struct lz4_frame *frame,
		      const struct lz4_block *block)
{
	return block->raw
		       ? block->stored
		       : (size_t)min_u64(frame->block,
					 (uint64_t)block->stored * EXPANSION);
}

ssize_t lz4_decode_block(const struct lz4_frame *frame, const unsigned char *p,
			 const struct lz4_block *block, unsigned char *out,
			 size_t n, size_t before, struct error *err)
{
	const unsigned char *data = p + LZ4_BLOCK_HEAD;
	int r;

	if (frame->flags & LZ4_BLOCK_SUMS &&
	    XXH32(data, block->stored, 0) != load_le32(data + block->stored))
		return error_set(err, -EBADMSG,
				 "lz4: the checksum of a block does not match");
	n = (size_t)min_u64(n, frame->block);
	if (block->raw && block->stored <= n) {
		memcpy(out, data, block->stored);
		return (ssize_t)block->stored;
	}
	before = (size_t)min_u64(before, LZ4_HISTORY);
	r = block->raw ? -1
		       : LZ4_decompress_safe_usingDict(
				 (const char *)data, (char *)out,
				 (int)block->stored, (int)n,
				 (const char *)out - before, (int)before);
	if (r < 0)
		return error_set(err, -EBADMSG,
				 "lz4: a block of %zu bytes does not decode: "
				 "damaged",
				 block->stored);
	return r;
}
