/* SPDX-License-Identifier: BSD-2-Clause */
/* Filter 32004, lz4: a frame of its own around independent LZ4 blocks. */
/*
 *	u64 BE  plain bytes in all
 *	u32 BE  plain bytes in each block but the last
 *	per block:
 *		u32 BE  stored bytes n
 *		n bytes: one raw LZ4 block, or, when n is the block's
 *		plain size, the plain bytes themselves
 *
 * The frame says how long everything is, so each number is held against what
 * is really there, and bytes after the last block are an error.
 */
#include "codec/codec.h"

#include <errno.h>
#include <limits.h>
#include <lz4.h>
#include <string.h>

#include "base/bytes.h"

#define HEADER 12u

/* One block of `stored` bytes that must decode to exactly `plain` (> 0). */
static int decode_block(const unsigned char *in, uint32_t stored,
			unsigned char *out, size_t plain)
{
	int n;

	if (stored == plain) {
		memcpy(out, in, plain);
		return 0;
	}
	if (stored > INT_MAX)
		return -EBADMSG;
	n = LZ4_decompress_safe((const char *)in, (char *)out, (int)stored,
				(int)plain);
	return n >= 0 && (size_t)n == plain ? 0 : -EBADMSG;
}

static int decode_blocks(const unsigned char *in, size_t in_len,
			 unsigned char *out, size_t total, size_t block,
			 struct error *err)
{
	size_t done = 0;

	for (uint64_t i = 0; done < total; i++) {
		size_t plain = total - done < block ? total - done : block;
		uint32_t stored;

		if (in_len < 4 || load_be32(in) > in_len - 4)
			return error_set(err, -EBADMSG,
					 "lz4: block %llu is cut off",
					 (unsigned long long)i);
		stored = load_be32(in);
		in += 4;
		in_len -= 4;
		if (decode_block(in, stored, out + done, plain) < 0)
			return error_set(err, -EBADMSG,
					 "lz4: block %llu of %u bytes does not "
					 "decode to %zu bytes",
					 (unsigned long long)i, stored, plain);
		in += stored;
		in_len -= stored;
		done += plain;
	}
	if (in_len)
		return error_set(err, -EBADMSG,
				 "lz4: %zu bytes follow the last block",
				 in_len);
	return 0;
}

static int lz4_decode(const struct codec_params *p, const void *in,
		      size_t in_len, void *out, size_t out_cap, size_t *out_len,
		      struct error *err)
{
	const unsigned char *h = in;
	uint64_t total;
	uint32_t block;
	int r;

	(void)p;
	if (in_len < HEADER)
		return error_set(err, -EBADMSG,
				 "lz4: %zu stored bytes are less than a header",
				 in_len);
	total = load_be64(h);
	block = load_be32(h + 8);
	if (total > out_cap)
		return error_set(err, -ENOSPC,
				 "lz4: the header promises %llu bytes, "
				 "expected at most %zu",
				 (unsigned long long)total, out_cap);
	if (block > total)
		block = (uint32_t)total;
	if (total && (!block || block > LZ4_MAX_INPUT_SIZE))
		return error_set(err, -EBADMSG,
				 "lz4: impossible block size of %u bytes",
				 block);
	r = decode_blocks(h + HEADER, in_len - HEADER, out, (size_t)total,
			  block, err);
	if (r < 0)
		return r;
	*out_len = (size_t)total;
	return 0;
}

const struct codec codec_lz4 = {
	.name = "lz4",
	.id = 32004,
	.kind = CODEC_COMPRESS,
	.decode = lz4_decode,
};
