/* SPDX-License-Identifier: BSD-2-Clause */
/* What bench-codec has of each library: its decoder, and an encoder. */
#ifndef BENCH_CODEC_LIBRARIES_H
#define BENCH_CODEC_LIBRARIES_H

#include <bzlib.h>
#include <libdeflate.h>
#include <liblzf/lzf.h>
#include <lz4.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <zstd.h>
#if __has_include(<blosc.h>)
#include <blosc.h>
#define WITH_BLOSC 1
#endif
#if __has_include(<libaec.h>)
#include <libaec.h>
#define WITH_SZIP 1
#endif

#include "base/bytes.h"
#include "codec/pipeline.h"

/* Stored bytes of a chunk by the library alone; false: they do not decode. */
typedef bool own_fn(const unsigned char *in, size_t in_len, unsigned char *out,
		    size_t n);

struct bench {
	const char *name;
	uint32_t filters[3]; /* HDF5 ids in writing order, 0 ends */
	size_t chunk;        /* plain bytes */
	own_fn *own;         /* NULL: there is no library */
	uint32_t elem;       /* 0: 2 */
	uint32_t mode;       /* bitshuffle: its compression; blosc: shuffle */
};

static bool own_deflate(const unsigned char *in, size_t in_len,
			unsigned char *out, size_t n)
{
	static struct libdeflate_decompressor *d;

	if (!d)
		d = libdeflate_alloc_decompressor();
	return d && libdeflate_zlib_decompress(d, in, in_len, out, n, NULL) ==
			    LIBDEFLATE_SUCCESS;
}

static bool own_lzf(const unsigned char *in, size_t in_len, unsigned char *out,
		    size_t n)
{
	return lzf_decompress(in, (unsigned)in_len, out, (unsigned)n) == n;
}

static bool own_zstd(const unsigned char *in, size_t in_len, unsigned char *out,
		     size_t n)
{
	static ZSTD_DCtx *d;

	if (!d)
		d = ZSTD_createDCtx();
	return d && ZSTD_decompressDCtx(d, out, n, in, in_len) == n;
}

/* The one block of a chunk, behind the filter's three numbers. */
static bool own_lz4(const unsigned char *in, size_t in_len, unsigned char *out,
		    size_t n)
{
	return LZ4_decompress_safe((const char *)in + 16, (char *)out,
				   (int)in_len - 16, (int)n) == (int)n;
}

/* All blocks of a bitshuffle chunk: decompressed, bits left where they are. */
static bool own_blocks(const unsigned char *in, size_t in_len,
		       unsigned char *out, size_t n, bool lz4)
{
	size_t block = load_be32(in + 8), at = 12, done = 0;

	while (done < n) {
		size_t len = load_be32(in + at);

		if (lz4 ? LZ4_decompress_safe((const char *)in + at + 4,
					      (char *)out + done, (int)len,
					      (int)block) != (int)block
			: !own_zstd(in + at + 4, len, out + done, block))
			return false;
		at += 4 + len;
		done += block;
	}
	return at == in_len;
}

static bool own_bits_lz4(const unsigned char *in, size_t in_len,
			 unsigned char *out, size_t n)
{
	return own_blocks(in, in_len, out, n, true);
}

static bool own_bits_zstd(const unsigned char *in, size_t in_len,
			  unsigned char *out, size_t n)
{
	return own_blocks(in, in_len, out, n, false);
}

static bool own_bzip2(const unsigned char *in, size_t in_len,
		      unsigned char *out, size_t n)
{
	unsigned made = (unsigned)n;

	return BZ2_bzBuffToBuffDecompress((char *)out, &made, (char *)in,
					  (unsigned)in_len, 0, 0) == BZ_OK &&
	       made == n;
}

#ifdef WITH_BLOSC
static bool own_blosc(const unsigned char *in, size_t in_len,
		      unsigned char *out, size_t n)
{
	(void)in_len;
	return blosc_decompress_ctx(in, out, n, 1) == (int)n;
}
#endif

#ifdef WITH_SZIP
#define SZIP_BLOCK 32u
#define SZIP_LINE 256u
static void set_up_szip(struct aec_stream *s)
{
	memset(s, 0, sizeof *s);
	s->bits_per_sample = 16;
	s->block_size = SZIP_BLOCK;
	s->rsi = SZIP_LINE / SZIP_BLOCK;
	s->flags = AEC_DATA_PREPROCESS;
}

static bool own_szip(const unsigned char *in, size_t in_len, unsigned char *out,
		     size_t n)
{
	struct aec_stream s;

	set_up_szip(&s);
	s.next_in = in + 4;
	s.avail_in = in_len - 4;
	s.next_out = out;
	s.avail_out = n;
	return aec_buffer_decode(&s) == AEC_OK && s.total_out == n;
}
#endif

/* ---- encoding ------------------------------------------------------------ */

static size_t shuffle(const unsigned char *from, size_t n, size_t elem,
		      unsigned char *to)
{
	shuffle_do(SHUFFLE_PLAIN, from, n, elem, to);
	return n;
}

/* Blocks of 8 KiB of 16-bit elements, each row of bits for itself. */
static size_t encode_bits(const unsigned char *from, size_t n, uint32_t mode,
			  unsigned char *to)
{
	enum { BLOCK = 8192, ROW = BLOCK / 2 / 8 };
	unsigned char rows[BLOCK];
	size_t at = mode ? 12 : 0;

	if (mode) {
		store_be64(to, n);
		store_be32(to + 8, BLOCK);
	}
	for (size_t done = 0; done < n; done += BLOCK) {
		memset(rows, 0, sizeof rows);
		for (size_t i = 0; i < BLOCK; i++)
			for (unsigned b = 0; b < 8; b++)
				if (from[done + i] >> b & 1)
					rows[(i % 2 * 8 + b) * ROW + i / 16] |=
						(unsigned char)(1u
								<< i / 2 % 8);
		if (!mode) {
			memcpy(to + at, rows, BLOCK);
			at += BLOCK;
			continue;
		}
		size_t len =
			mode == 2 ? (size_t)LZ4_compress_default(
					    (char *)rows, (char *)to + at + 4,
					    BLOCK, 2 * BLOCK)
				  : ZSTD_compress(to + at + 4, 2 * BLOCK, rows,
						  BLOCK, 3);
		store_be32(to + at, (uint32_t)len);
		at += 4 + len;
	}
	return at;
}

/* 16-bit numbers below 2^bits, the highest bit first. */
static size_t put_bits(const unsigned char *from, size_t n, unsigned bits,
		       unsigned char *to)
{
	uint64_t at = 0;

	memset(to, 0, n);
	for (size_t i = 0; i < n; i += 2) {
		unsigned v = from[i] | (unsigned)from[i + 1] << 8;

		for (unsigned b = bits; b--; at++)
			if (v >> b & 1)
				to[at / 8] |= (unsigned char)(128u >> at % 8);
	}
	return (size_t)(at / 8) + 1;
}

static size_t encode_lz4(const unsigned char *from, size_t n, unsigned char *to,
			 size_t room)
{
	int len = LZ4_compress_default((const char *)from, (char *)to + 16,
				       (int)n, (int)room - 16);

	store_be64(to, n);
	store_be32(to + 8, (uint32_t)n);
	store_be32(to + 12, (uint32_t)len);
	return len > 0 ? (size_t)len + 16 : 0;
}

static size_t encode_scaleoffset(const unsigned char *from, size_t n,
				 unsigned char *to)
{
	memset(to, 0, 21);
	store_le32(to, 6);
	to[4] = 8;
	return 21 + put_bits(from, n, 6, to + 21);
}

static size_t encode_bzip2(const unsigned char *from, size_t n,
			   unsigned char *to, size_t room)
{
	unsigned len = (unsigned)room;

	return BZ2_bzBuffToBuffCompress((char *)to, &len, (char *)from,
					(unsigned)n, 9, 0, 0) == BZ_OK
		       ? len
		       : 0;
}

#ifdef WITH_SZIP
static size_t encode_szip(const unsigned char *from, size_t n,
			  unsigned char *to, size_t room)
{
	struct aec_stream s;

	set_up_szip(&s);
	s.next_in = from;
	s.avail_in = n;
	s.next_out = to + 4;
	s.avail_out = room - 4;
	store_le32(to, (uint32_t)n);
	return aec_buffer_encode(&s) == AEC_OK ? 4 + s.total_out : 0;
}
#endif

/* One filter's encoder: bytes written to `to`, which has room enough. */
static size_t encode(const struct bench *b, uint32_t id,
		     const unsigned char *from, size_t n, unsigned char *to,
		     size_t room)
{
	static struct libdeflate_compressor *c;

	switch (id) {
	case 1:
		if (!c)
			c = libdeflate_alloc_compressor(4);
		return c ? libdeflate_zlib_compress(c, from, n, to, room) : 0;
	case 2:
		return shuffle(from, n, b->elem ? b->elem : 2, to);
#ifdef WITH_SZIP
	case 4:
		return encode_szip(from, n, to, room);
#endif
	case 5:
		return put_bits(from, n, 12, to);
	case 6:
		return encode_scaleoffset(from, n, to);
	case 307:
		return encode_bzip2(from, n, to, room);
	case 32000:
		return lzf_compress(from, (unsigned)n, to, (unsigned)room);
#ifdef WITH_BLOSC
	case 32001:
		return (size_t)blosc_compress_ctx(5, (int)b->mode, 2, n, from,
						  to, room, "lz4", 0, 1);
#endif
	case 32004:
		return encode_lz4(from, n, to, room);
	case 32008:
		return encode_bits(from, n, b->mode, to);
	case 32015:
		n = ZSTD_compress(to, room, from, n, 3);
		return ZSTD_isError(n) ? 0 : n;
	default:
		return 0;
	}
}

/* The checksum as fletcher32.c describes it, without haste. */
static size_t add_fletcher32(const unsigned char *from, size_t n,
			     unsigned char *to)
{
	uint64_t a = 0, b = 0;

	for (size_t i = 0; i + 1 < n; i += 2) {
		a = (a + (uint64_t)(from[i] << 8 | from[i + 1])) % 65535;
		b = (b + a) % 65535;
	}
	memcpy(to, from, n);
	to[n] = a & 255;
	to[n + 1] = (unsigned char)(a >> 8);
	to[n + 2] = b & 255;
	to[n + 3] = (unsigned char)(b >> 8);
	return n + 4;
}

#endif
