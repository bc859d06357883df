/* SPDX-License-Identifier: BSD-2-Clause */
/* The blocks of bzip2 streams, which begin at any bit. */
/*
 * A block depends only on its own bits, but nothing says where it ends: the next one
 * begins with a magic number of 48 bits, which may also occur within a block.  The
 * magic number is searched for; a false match, by chance or by intent, is noticed by
 * decoding:
 *
 * A block is decoded by libbz2 as a stream of its own: a header, the block's bits moved
 * to a whole byte, and the end of a stream with the CRC of its only block.  That works
 * exactly if the block ends where it was assumed to end.  If it does not, bits are
 * given to libbz2 up to one possible end after the other until it has decoded a block:
 * it delivers nothing before it has all of a block.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#if HAVE_BZIP2
#include "stream/bzip2_block.h"

#include <bzlib.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "codec/bits.h"

#define MAGIC_BITS 48
#define BLOCK_MAGIC UINT64_C(0x314159265359)
#define END_MAGIC UINT64_C(0x177245385090)

/* ---- searching ----------------------------------------------------------- */

/* A bit for each two bytes that may be the second and third byte that a magic number
 * touches. */
static unsigned char table[65536 / 8];

static void bzip2_make_table(void)
{
	static const uint64_t magic[2] = {BLOCK_MAGIC, END_MAGIC};

	for (unsigned m = 0; m < 2; m++)
		for (unsigned skip = 0; skip < 8; skip++) {
			unsigned v =
				(unsigned)(magic[m] >> (24 + skip)) & 0xffff;

			table[v / 8] |= (unsigned char)(1u << v % 8);
		}
}

static uint64_t bzip2_peek_bits(const unsigned char *p, size_t n, uint64_t bit,
				unsigned count)
{
	struct bits b = {p, n, bit};

	return bits_take(&b, count);
}

static bool bzip2_is_magic(uint64_t v)
{
	return v == BLOCK_MAGIC || v == END_MAGIC;
}

/* Return the bit where the first magic number begins in the n bytes from bit `from`
 * on, or UINT64_MAX. */
static uint64_t bzip2_search_magic(const unsigned char *p, size_t n,
				   uint64_t from)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, bzip2_make_table);
	for (size_t i = (size_t)(from / 8) + 1; i + 1 < n; i++) {
		unsigned v = (unsigned)p[i] << 8 | p[i + 1];

		if (!(table[v / 8] >> v % 8 & 1))
			continue;
		for (unsigned skip = 0; skip < 8; skip++) {
			uint64_t bit = (uint64_t)(i - 1) * 8 + skip;

			if (bit >= from &&
			    bit + MAGIC_BITS <= 8 * (uint64_t)n &&
			    bzip2_is_magic(
				    bzip2_peek_bits(p, n, bit, MAGIC_BITS)))
				return bit;
		}
	}
	return UINT64_MAX;
}

const unsigned char *bzip2_bytes(struct slide *f, uint64_t bit, size_t n,
				 ssize_t *r, struct error *err)
{
	size_t skip = (size_t)(bit / 8 - f->at);

	*r = slide_need(f, skip + n, err);
	if (*r < 0)
		return NULL;
	*r = (size_t)*r > skip ? *r - (ssize_t)skip : 0;
	return *r ? f->data + skip : NULL;
}

int bzip2_find_end(struct slide *f, uint64_t bit, uint64_t from, uint64_t *end,
		   struct error *err)
{
	size_t n = (size_t)128 << 10;

	for (;;) {
		ssize_t r;
		const unsigned char *p = bzip2_bytes(f, bit, n, &r, err);
		uint64_t base = bit / 8 * 8, found;

		if (!p)
			return (int)r;
		found = bzip2_search_magic(p, (size_t)r, from - base);
		if (found != UINT64_MAX) {
			*end = base + found;
			return 1;
		}
		*end = base + 8 * (uint64_t)r;
		if ((size_t)r < n || n >= BZIP2_BLOCK_MOST)
			return 0;
		if (*end > base + 2 * MAGIC_BITS)
			from = max_u64(from, *end - MAGIC_BITS);
		n *= 2;
	}
}

/* ---- what is where ------------------------------------------------------- */

static int bzip2_truncated(struct slide *f, struct error *err)
{
	return error_set(err, -EIO,
			 "bzip2: the data ends at %llu, within a stream: "
			 "truncated?",
			 (unsigned long long)(f->at + f->n));
}

/* Look for the header of a stream.  Anything else ends the data without an error, as
 * bzip2(1) does, unless it looks like the header of a damaged or truncated stream. */
static int bzip2_look_header(struct slide *f, uint64_t bit, char *level,
			     struct error *err)
{
	ssize_t r;
	const unsigned char *p = bzip2_bytes(f, bit, 4096, &r, err);

	if (!p)
		return (int)r;
	if (r >= 4 && !memcmp(p, "BZh", 3) && p[3] >= '1' && p[3] <= '9') {
		*level = (char)p[3];
		return BZIP2_STREAM;
	}
	if (r < 4 && !memcmp(p, "BZh", (size_t)min_u64((uint64_t)r, 3)))
		return bzip2_truncated(f, err);
	if (bzip2_search_magic(p, (size_t)r, 0) != UINT64_MAX)
		return error_set(err, -EBADMSG,
				 "bzip2: the header of the stream at %llu is "
				 "damaged",
				 (unsigned long long)(bit / 8));
	return BZIP2_END;
}

int bzip2_look(struct slide *f, uint64_t bit, bool header, uint32_t *crc,
	       char *level, struct error *err)
{
	const unsigned char *p;
	uint64_t magic;
	ssize_t r;

	if (header)
		return bzip2_look_header(f, bit, level, err);
	p = bzip2_bytes(f, bit, 11, &r, err);
	if (r < 0)
		return (int)r;
	if (!p || 8 * (uint64_t)r < bit % 8 + MAGIC_BITS + 32)
		return bzip2_truncated(f, err);
	magic = bzip2_peek_bits(p, (size_t)r, bit % 8, MAGIC_BITS);
	*crc = (uint32_t)bzip2_peek_bits(p, (size_t)r, bit % 8 + MAGIC_BITS,
					 32);
	if (bzip2_is_magic(magic))
		return magic == BLOCK_MAGIC ? BZIP2_BLOCK : BZIP2_STREAM_END;
	return error_set(err, -EBADMSG,
			 "bzip2: neither a block nor the end of the stream is "
			 "at %llu: damaged",
			 (unsigned long long)(bit / 8));
}

/* ---- decoding ------------------------------------------------------------ */

/* Copy n bytes from bit `skip` of `p` on; `p` must have all of them. */
static void bzip2_shift_bits(unsigned char *to, const unsigned char *p,
			     unsigned skip, size_t n)
{
	if (!skip) {
		memcpy(to, p, n);
		return;
	}
	for (size_t i = 0; i < n; i++)
		to[i] = (unsigned char)(p[i] << skip | p[i + 1] >> (8 - skip));
}

/* Write the low `count` bits of `v` at bit `at` of `to`, which must be zeros. */
static void bzip2_put_bits(unsigned char *to, uint64_t at, uint64_t v,
			   unsigned count)
{
	for (unsigned i = 0; i < count; i++, at++)
		if (v >> (count - 1 - i) & 1)
			to[at / 8] |= (unsigned char)(0x80 >> at % 8);
}

/* Return a stream of this block alone, malloc'ed, *n bytes, or NULL when memory is
 * out. */
static unsigned char *bzip2_wrap_block(const unsigned char *p, unsigned skip,
				       uint64_t bits, char level, uint32_t crc,
				       bool tail, size_t *n)
{
	size_t whole = (size_t)(bits / 8);
	unsigned rest = bits % 8;
	unsigned char *to = calloc(1, 4 + whole + 16);
	uint64_t at = BZIP2_STREAM_BITS + 8 * (uint64_t)whole;

	if (!to)
		return NULL;
	memcpy(to, "BZh", 3);
	to[3] = (unsigned char)level;
	bzip2_shift_bits(to + 4, p, skip, whole);
	*n = 4 + whole;
	if (tail)
		return to;
	if (rest)
		bzip2_put_bits(to, at,
			       bzip2_peek_bits(p, bits_bytes(skip + bits),
					       skip + 8 * whole, rest),
			       rest);
	at += rest;
	bzip2_put_bits(to, at, END_MAGIC, MAGIC_BITS);
	bzip2_put_bits(to, at + MAGIC_BITS, crc, 32);
	*n = (size_t)bits_bytes(at + MAGIC_BITS + 32);
	return to;
}

static bool bzip2_grow_output(struct bzip2_out *out)
{
	size_t room =
		(size_t)min_u64(max_u64(2 * out->room, 1 << 20), out->most);
	unsigned char *p;

	if (!out->own || room <= out->room)
		return false;
	p = realloc(out->at, room);
	if (!p)
		return false;
	out->at = p;
	out->room = room;
	return true;
}

static int bzip2_failed(int ret, struct error *err)
{
	if (ret == BZ_MEM_ERROR)
		return error_no_memory(err, "decoding bzip2 data");
	return error_set(err, -EBADMSG,
			 "bzip2: a block is damaged (libbz2 says %d)", ret);
}

/* Decode all of the stream, or, with `tail`, one block of it.  Return 0 or -errno. */
static int bzip2_unpack(bz_stream *z, bool tail, struct bzip2_out *out,
			struct error *err)
{
	size_t from = out->n;
	int ret = BZ_OK;

	while (ret == BZ_OK) {
		char spare;
		bool full = out->n == out->room && !bzip2_grow_output(out);
		size_t n = full ? 1 : out->room - out->n;

		/* Decode another byte to see whether the block is too long. */
		z->next_out = full ? &spare : (char *)out->at + out->n;
		z->avail_out = (unsigned)n;
		ret = BZ2_bzDecompress(z);
		if (full && !z->avail_out)
			return error_set(err, -EBADMSG,
					 "bzip2: a block is too long");
		if (!full)
			out->n += n - z->avail_out;
		/* libbz2 wants more bits: perhaps those after the block. */
		if (ret == BZ_OK && !z->avail_in && z->avail_out)
			return tail && out->n > from ? 0
						     : bzip2_failed(ret, err);
	}
	return ret == BZ_STREAM_END && !z->avail_in ? 0
						    : bzip2_failed(ret, err);
}

int bzip2_decode_block(const unsigned char *p, unsigned skip, uint64_t bits,
		       char level, uint32_t crc, bool tail,
		       struct bzip2_out *out, struct error *err)
{
	cleanup_free unsigned char *in = NULL;
	size_t n = 0, from = out->n;
	bz_stream z = {.bzalloc = NULL};
	int r;

	in = bzip2_wrap_block(p, skip, bits, level, crc, tail, &n);
	if (!in || BZ2_bzDecompressInit(&z, 0, 0) != BZ_OK)
		return bzip2_failed(BZ_MEM_ERROR, err);
	z.next_in = (char *)in;
	z.avail_in = (unsigned)n;
	r = bzip2_unpack(&z, tail, out, err);
	if (r < 0)
		out->n = from;
	BZ2_bzDecompressEnd(&z);
	return r;
}

/* Give libbz2 the whole bytes of bits [*at, to).  Return whether a block came out. */
static bool bzip2_feed_decoder(bz_stream *z, const unsigned char *p,
			       uint64_t *at, uint64_t to, bool *broken)
{
	unsigned char in[4096];
	char out;

	while (*at < to && !*broken) {
		size_t n = (size_t)min_u64(sizeof in, (to - *at) / 8);

		if (!n)
			break;
		bzip2_shift_bits(in, p + *at / 8, *at % 8, n);
		z->next_in = (char *)in;
		z->avail_in = (unsigned)n;
		z->next_out = &out;
		z->avail_out = 1;
		*broken = BZ2_bzDecompress(z) != BZ_OK;
		*at += 8 * (uint64_t)n;
		if (!z->avail_out)
			return true;
	}
	return false;
}

int bzip2_real_end(struct slide *f, uint64_t bit, char level, uint64_t *end,
		   struct error *err)
{
	char header[4] = {'B', 'Z', 'h', level};
	uint64_t base = bit / 8 * 8, at = bit - base, to = *end;
	bz_stream z = {.bzalloc = NULL};
	bool broken = false, done = false;
	int r = 1;

	if (BZ2_bzDecompressInit(&z, 0, 0) != BZ_OK)
		return bzip2_failed(BZ_MEM_ERROR, err);
	z.next_in = header;
	z.avail_in = sizeof header;
	broken = BZ2_bzDecompress(&z) != BZ_OK;
	while (r == 1 && !broken && !done) {
		const unsigned char *p;
		uint64_t stop;
		ssize_t n;

		/* Give all bits of the block, and fewer than 8 after it. */
		stop = at;
		if (to - base > at)
			stop += (to - base - at + 7) / 8 * 8;
		p = bzip2_bytes(f, bit, (size_t)(stop / 8) + 2, &n, err);
		if (!p) {
			r = (int)n;
			break;
		}
		done = bzip2_feed_decoder(
			&z, p, &at, min_u64(stop, 8 * (uint64_t)n), &broken);
		/* The block ends where it was assumed to end, so it is damaged. */
		if (done && to == *end)
			broken = true;
		if (done)
			break;
		r = bzip2_find_end(f, bit, to + 1, &to, err);
	}
	BZ2_bzDecompressEnd(&z);
	if (r < 0)
		return r;
	if (r == 0 || broken)
		return bzip2_failed(BZ_DATA_ERROR, err);
	*end = to;
	return 0;
}
#endif
