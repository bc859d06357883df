/* SPDX-License-Identifier: BSD-2-Clause */
/* Filter 32004, lz4: a frame of the filter's own around independent LZ4 blocks. */
/*
 *	u64 BE  plain bytes in all
 *	u32 BE  plain bytes in each block but the last
 *	per block:
 *		u32 BE  stored bytes n
 *		n bytes: one raw LZ4 block, or, when n is the block's
 *		plain size, the plain bytes themselves
 *
 * The frame has the length of each of its parts, so each number is checked against the
 * bytes that are really there, and bytes after the last block are an error.
 */
#include "codec/codec.h"

#include <errno.h>
#include <limits.h>
#include <lz4.h>
#include <string.h>

#include "base/bytes.h"
#include "base/number.h"
#include "codec/parts.h"

#define HEADER 12u
#define DEFAULT_BLOCK ((size_t)1 << 30)

/* Decode one block of `stored` bytes, which must give exactly `plain` bytes (> 0). */
static int lz4_filter_decode_block(const unsigned char *in, uint32_t stored,
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

struct job {
	unsigned char *out;
	size_t block;
};

static int lz4_decode_part(void *ctx, const struct part *p, struct error *err)
{
	const struct job *j = ctx;
	const unsigned char *in = p->in;
	size_t in_len = p->in_len, done = p->from;

	while (done < p->to) {
		size_t plain = min_u64(p->to - done, j->block);
		uint32_t stored;

		if (in_len < 4 || load_be32(in) > in_len - 4)
			return error_set(err, -EBADMSG,
					 "lz4: block %zu is cut off",
					 done / j->block);
		stored = load_be32(in);
		in += 4;
		in_len -= 4;
		if (lz4_filter_decode_block(in, stored, j->out + done, plain) <
		    0)
			return error_set(err, -EBADMSG,
					 "lz4: block %zu of %u bytes does not "
					 "decode to %zu bytes",
					 done / j->block, stored, plain);
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
	struct job j = {.out = out};
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
	j.block = block;
	r = parts_of_blocks(h + HEADER, in_len - HEADER, (size_t)total, block,
			    lz4_decode_part, &j, err);
	if (r < 0)
		return r;
	*out_len = (size_t)total;
	return 0;
}

/* The block size in bytes: the first client value, where 0 stands for 1 GiB as in the
 * reference filter. */
static size_t lz4_block_size(const struct codec_params *p, size_t in_len)
{
	size_t block = p->n && p->cd[0] ? p->cd[0] : DEFAULT_BLOCK;

	if (block > LZ4_MAX_INPUT_SIZE)
		block = LZ4_MAX_INPUT_SIZE;
	return block < in_len ? block : in_len;
}

/* Encode one block with its length in front.  Return the bytes written, or 0 if there is
 * no room. */
static size_t encode_block(const unsigned char *in, size_t plain,
			   unsigned char *out, size_t room)
{
	size_t most;
	int n = 0;

	if (room < 4)
		return 0;
	/* A block whose stored size is its plain size is read as a raw one. */
	most = room - 4 < plain ? room - 4 : plain - 1;
	if (most)
		n = LZ4_compress_default((const char *)in, (char *)out + 4,
					 (int)plain, (int)most);
	if (n <= 0) {
		if (plain > room - 4)
			return 0;
		memcpy(out + 4, in, plain);
		n = (int)plain;
	}
	store_be32(out, (uint32_t)n);
	return 4 + (size_t)n;
}

static int lz4_encode(const struct codec_params *p, const void *in,
		      size_t in_len, void *out, size_t out_cap, size_t *out_len,
		      struct error *err)
{
	size_t block = lz4_block_size(p, in_len), made = HEADER, done = 0;
	const unsigned char *from = in;
	unsigned char *to = out;

	(void)err;
	if (out_cap < HEADER)
		return 1;
	store_be64(to, in_len);
	store_be32(to + 8, (uint32_t)block);
	while (done < in_len) {
		size_t plain = in_len - done < block ? in_len - done : block;
		size_t n = encode_block(from + done, plain, to + made,
					out_cap - made);

		if (!n)
			return 1;
		done += plain;
		made += n;
	}
	*out_len = made;
	return 0;
}

const struct codec codec_lz4 = {
	.name = "lz4",
	.id = 32004,
	.kind = CODEC_COMPRESS,
	.decode = lz4_decode,
	.encode = lz4_encode,
};
