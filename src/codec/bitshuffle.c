/* SPDX-License-Identifier: BSD-2-Clause */
/* Filter 32008, bitshuffle: blocks of bit planes, often compressed. */
/*
 * The client data are { major, minor, element size, block size, compression, level }.
 * Older versions of the filter, and writers that left defaults, wrote fewer values.
 * Fewer than three values are what a user gives: { block size, compression }, which the
 * filter's set_local callback would have put behind the first three, had it been present
 * when the file was made.  The element is then the whole type of the dataset
 * (codec_params.elem_size).
 *
 * Elements are taken in blocks of `block size` (in elements, a multiple of 8; 0 stands
 * for about 8 KiB).  The last block has as many of the remaining elements as are a
 * multiple of 8, and up to 7 elements after it are stored unchanged.  In each block, bits
 * are transposed as bitplane.h says.
 *
 * Without compression, that is all.  With LZ4 (2) or Zstandard (3) the chunk is:
 *
 *	u64 BE  plain bytes in all
 *	u32 BE  plain bytes in each block but the last
 *	per block:
 *		u32 BE  stored bytes n
 *		n bytes: one LZ4 block, or Zstandard frames
 *	up to 7 elements as they are
 *
 * and the block size in the header is the one that counts.  The format looks like filter
 * 32004, but has no raw blocks: a block that LZ4 cannot compress becomes longer.
 *
 * (bshuf_h5filter.c, bitshuffle_core.c and bitshuffle.c of bitshuffle by K. Masui, 0.1 to
 * 0.5.)
 *
 * A block is decompressed and transposed while it is in the first-level cache.  Blocks
 * larger than that are rare; they get a buffer of their own.
 */
#include "codec/codec.h"

#include <errno.h>
#include <limits.h>
#include <lz4.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "codec/bitplane.h"
#include "codec/parts.h"

#define HEADER 12u
#define SMALL_BLOCK 16384u
#define ZSTD_ID 32015u

enum { CD_MAJOR, CD_MINOR, CD_ELEM, CD_BLOCK, CD_COMPRESSION };
enum { COMPRESSION_NONE = 0, COMPRESSION_LZ4 = 2, COMPRESSION_ZSTD = 3 };

/* A chunk being decoded; sizes in bytes. */
struct job {
	enum shuffle_path path;
	const struct codec *zstd; /* NULL: blocks are LZ4 */
	size_t elem;
	size_t block;           /* bytes of each block but the last */
	size_t total;           /* plain bytes of the chunk */
	unsigned char *out;     /* the decoded chunk */
	unsigned char *scratch; /* room for one block, if compressed */
};

/* The number of values that set_local put in front of the user's. */
static unsigned values_before_users(const struct codec_params *p)
{
	return p->n > CD_ELEM ? CD_BLOCK : 0;
}

static uint32_t bitshuffle_value(const struct codec_params *p, unsigned which)
{
	unsigned i = which - CD_BLOCK + values_before_users(p);

	return i < p->n ? p->cd[i] : 0;
}

static uint32_t bitshuffle_compression(const struct codec_params *p)
{
	return bitshuffle_value(p, CD_COMPRESSION);
}

static uint32_t bitshuffle_element_size(const struct codec_params *p)
{
	return values_before_users(p) ? p->cd[CD_ELEM] : p->elem_size;
}

/* The block size in bytes that 0 stands for.  Files depend on this rule: about 8 KiB, but
 * at least 128 elements. */
static uint64_t default_block(uint32_t elem)
{
	uint32_t n = 8192 / elem / 8 * 8;

	return (uint64_t)(n < 128 ? 128 : n) * elem;
}

/* The bytes of a block as the client data say. */
static uint64_t bitshuffle_block_size(const struct codec_params *p)
{
	uint32_t elem = bitshuffle_element_size(p),
		 block = bitshuffle_value(p, CD_BLOCK);

	return block ? (uint64_t)block * elem : default_block(elem);
}

static int bitshuffle_check(const struct codec_params *p, struct error *err)
{
	if (!bitshuffle_element_size(p))
		return error_set(err, -EBADMSG,
				 values_before_users(p)
					 ? "bitshuffle: element size is 0"
					 : "bitshuffle: its parameters do not "
					   "say the size of elements, and it "
					   "is not known here");
	if (bitshuffle_value(p, CD_BLOCK) % 8)
		return error_set(err, -EBADMSG,
				 "bitshuffle: blocks of %u elements are not a "
				 "multiple of 8",
				 bitshuffle_value(p, CD_BLOCK));
	switch (bitshuffle_compression(p)) {
	case COMPRESSION_NONE:
	case COMPRESSION_LZ4:
	case COMPRESSION_ZSTD:
		return 0;
	default:
		return error_set(err, -EBADMSG,
				 "bitshuffle: unknown compression %u",
				 bitshuffle_compression(p));
	}
}

/* Return the plain bytes of the block that starts at byte `done`, or 0 if no block
 * does. */
static size_t plain_size_of_block_at(const struct job *j, size_t done)
{
	size_t left = j->total - done;

	return left < j->block ? left - left % (8 * j->elem) : j->block;
}

static int check_total(const struct job *j, struct error *err)
{
	if (j->total % j->elem == 0)
		return 0;
	return error_set(err, -EBADMSG,
			 "bitshuffle: %zu bytes are not a whole number of "
			 "elements of %zu",
			 j->total, j->elem);
}

static void decode_plain(const struct job *j, const unsigned char *in,
			 unsigned char *out)
{
	size_t done = 0, n;

	for (; (n = plain_size_of_block_at(j, done)); done += n)
		bitplane_undo(j->path, in + done, n / j->elem, j->elem,
			      out + done);
	if (j->total > done)
		memcpy(out + done, in + done, j->total - done);
}

/* Decompress one block to exactly `plain` bytes of scratch. */
static int bitshuffle_decompress_block(const struct job *j,
				       const unsigned char *in, uint32_t stored,
				       size_t plain, struct error *err)
{
	size_t made = 0;
	int r;

	if (j->zstd) {
		r = j->zstd->decode(NULL, in, stored, j->scratch, plain, &made,
				    err);
		if (r == -ENOMEM)
			return r;
		if (r == 0 && made == plain)
			return 0;
	} else if (stored <= INT_MAX && plain <= INT_MAX) {
		r = LZ4_decompress_safe((const char *)in, (char *)j->scratch,
					(int)stored, (int)plain);
		if (r >= 0 && (size_t)r == plain)
			return 0;
	}
	return error_set(err, -EBADMSG,
			 "bitshuffle: %u stored bytes do not decode to a block "
			 "of %zu",
			 stored, plain);
}

static int decode_blocks(const struct job *j, const struct part *p,
			 struct error *err)
{
	const unsigned char *in = p->in;
	size_t in_len = p->in_len, done = p->from, n;
	int r;

	for (; done < p->to && (n = plain_size_of_block_at(j, done));
	     done += n) {
		uint32_t stored;

		if (in_len < 4 || load_be32(in) > in_len - 4)
			return error_set(err, -EBADMSG,
					 "bitshuffle: the block for bytes %zu "
					 "to %zu is cut off",
					 done, done + n);
		stored = load_be32(in);
		r = bitshuffle_decompress_block(j, in + 4, stored, n, err);
		if (r < 0)
			return r;
		bitplane_undo(j->path, j->scratch, n / j->elem, j->elem,
			      j->out + done);
		in += 4 + (size_t)stored;
		in_len -= 4 + (size_t)stored;
	}
	if (in_len != p->to - done)
		return error_set(err, -EBADMSG,
				 "bitshuffle: %zu bytes instead of %zu follow "
				 "the last block",
				 in_len, p->to - done);
	if (in_len)
		memcpy(j->out + done, in, in_len);
	return 0;
}

/* Decode one part, with scratch for its largest block. */
static int bitshuffle_decode_part(void *ctx, const struct part *p,
				  struct error *err)
{
	struct job j = *(const struct job *)ctx;
	unsigned char small[SMALL_BLOCK];
	size_t largest = plain_size_of_block_at(&j, p->from);
	struct buf *large = NULL;
	int r;

	j.scratch = small;
	if (largest > sizeof small) {
		large = buf_new(largest, NULL);
		if (!large)
			return error_set(err, -ENOMEM,
					 "bitshuffle: out of memory for a "
					 "block of %zu bytes",
					 largest);
		j.scratch = large->data;
	}
	r = decode_blocks(&j, p, err);
	buf_unref(large);
	return r;
}

/* Read the header's numbers into the job. */
static int bitshuffle_read_header(const struct codec_params *p,
				  const unsigned char *in, size_t in_len,
				  size_t out_cap, struct job *j,
				  struct error *err)
{
	uint64_t total, block;

	if (in_len < HEADER)
		return error_set(err, -EBADMSG,
				 "bitshuffle: %zu stored bytes are less than a "
				 "header",
				 in_len);
	total = load_be64(in);
	block = load_be32(in + 8);
	if (total > out_cap)
		return error_set(err, -ENOSPC,
				 "bitshuffle: the header promises %llu bytes, "
				 "expected at most %zu",
				 (unsigned long long)total, out_cap);
	if (!block)
		block = default_block(bitshuffle_element_size(p));
	if (block % (8 * (uint64_t)bitshuffle_element_size(p)))
		return error_set(err, -EBADMSG,
				 "bitshuffle: blocks of %llu bytes are not a "
				 "multiple of 8 elements of %u",
				 (unsigned long long)block,
				 bitshuffle_element_size(p));
	j->total = (size_t)total;
	j->block = (size_t)block;
	return 0;
}

static int decode_compressed(const struct codec_params *p, struct job *j,
			     const void *in, size_t in_len, void *out,
			     size_t out_cap, struct error *err)
{
	int r;

	if (bitshuffle_compression(p) == COMPRESSION_ZSTD) {
		j->zstd = codec_by_id(ZSTD_ID);
		if (!j->zstd)
			return error_set(err, -ENOTSUP,
					 "bitshuffle: compressed with "
					 "Zstandard, which was left out when "
					 "this program was built");
	}
	r = bitshuffle_read_header(p, in, in_len, out_cap, j, err);
	if (r < 0)
		return r;
	r = check_total(j, err);
	if (r < 0)
		return r;
	j->out = out;
	return parts_of_blocks((const unsigned char *)in + HEADER,
			       in_len - HEADER, j->total, j->block,
			       bitshuffle_decode_part, j, err);
}

static int bitshuffle_decode(const struct codec_params *p, const void *in,
			     size_t in_len, void *out, size_t out_cap,
			     size_t *out_len, struct error *err)
{
	struct job j = {.path = shuffle_best_path(), .total = in_len};
	int r = bitshuffle_check(p, err);

	if (r < 0)
		return r;
	j.elem = bitshuffle_element_size(p);
	j.block = (size_t)bitshuffle_block_size(p);
	if (bitshuffle_compression(p) != COMPRESSION_NONE) {
		r = decode_compressed(p, &j, in, in_len, out, out_cap, err);
	} else if (in_len > out_cap) {
		r = error_set(err, -ENOSPC,
			      "bitshuffle: %zu bytes, expected at most %zu",
			      in_len, out_cap);
	} else {
		r = check_total(&j, err);
		if (r == 0)
			decode_plain(&j, in, out);
	}
	if (r == 0)
		*out_len = j.total;
	return r;
}

const struct codec codec_bitshuffle = {
	.name = "bitshuffle",
	.id = 32008,
	.kind = CODEC_COMPRESS,
	.check = bitshuffle_check,
	.decode = bitshuffle_decode,
};
