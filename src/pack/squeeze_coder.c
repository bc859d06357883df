/* SPDX-License-Identifier: BSD-2-Clause */
/* One block: whether compressing it saves enough, and its bytes as a gzip member or zstd
 * frame. */
#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/bytes.h"
#include "base/number.h"
#include "pack/squeeze_private.h"

/*
 * A block is compressed if a few pieces of it shrink enough.  Each piece is compressed by
 * itself at a fast level: where that saves nothing, a slower level or more distant
 * matches add little.  Pieces are spread evenly, so a text file among images counts by
 * its length.
 */
#define PIECES 12
#define PIECE ((size_t)4 << 10)
/* Smaller blocks are always compressed. */
#define SAMPLED (PIECES * PIECE * 2)
/* Pieces must shrink below this many percent of their size. */
#define WORTH 97

#define GZIP_LEVEL 6
#define GZIP_MOST 12
#define ZSTD_LEVEL 3

struct squeeze_coder {
	const struct squeeze_options *o;
	struct libdeflate_compressor *gzip, *fast, *store;
	ZSTD_CCtx *zstd, *piece;
	unsigned char *scratch; /* room for a compressed piece */
	size_t room;
};

int squeeze_usual(enum squeeze_codec c)
{
	return c == SQUEEZE_GZIP   ? GZIP_LEVEL
	       : c == SQUEEZE_ZSTD ? ZSTD_LEVEL
				   : 0;
}

int squeeze_most(enum squeeze_codec c)
{
	return c == SQUEEZE_GZIP   ? GZIP_MOST
	       : c == SQUEEZE_ZSTD ? ZSTD_maxCLevel()
				   : 0;
}

/* ---- zstd ---------------------------------------------------------------- */

/* RFC 8878, 3.1.1: a frame of raw blocks. */
#define RAW_MOST ((size_t)128 << 10)
#define RAW_HEAD (4 + 1 + 8)
#define RAW_BLOCK 3

static size_t raw_bound(size_t n)
{
	return RAW_HEAD + n + RAW_BLOCK * (n / RAW_MOST + 1) + 4;
}

static size_t raw_frame(const unsigned char *from, size_t n, unsigned char *to)
{
	unsigned char *p = to + RAW_HEAD;
	size_t left = n;

	store_le32(to, ZSTD_MAGICNUMBER);
	to[4] = 3 << 6 | 1 << 5 |
		1 << 2; /* 8 bytes of content size, single segment, checksum */
	store_le64(to + 5, n);
	do {
		size_t len = left < RAW_MOST ? left : RAW_MOST;
		uint32_t head = (uint32_t)len << 3 | (len == left);

		p[0] = head & 0xff;
		p[1] = head >> 8 & 0xff;
		p[2] = head >> 16 & 0xff;
		if (len)
			memcpy(p + RAW_BLOCK, from + (n - left), len);
		p += RAW_BLOCK + len;
		left -= len;
	} while (left);
	store_le32(p, (uint32_t)XXH64(from, n, 0));
	return (size_t)(p + 4 - to);
}

static int run_zstd(struct squeeze_coder *c, const void *from, size_t n,
		    void *to, size_t room, size_t *size, struct error *err)
{
	/* Content size and checksum are parameters of the context. */
	*size = ZSTD_compress2(c->zstd, to, room, from, n);
	if (!ZSTD_isError(*size))
		return 0;
	return error_set(err,
			 ZSTD_getErrorCode(*size) ==
					 ZSTD_error_memory_allocation
				 ? -ENOMEM
				 : -EIO,
			 "zstd failed to compress a block: %s",
			 ZSTD_getErrorName(*size));
}

/* ---- gzip ---------------------------------------------------------------- */

static int run_gzip(struct libdeflate_compressor *c, const void *from, size_t n,
		    void *to, size_t room, size_t *size, struct error *err)
{
	*size = libdeflate_gzip_compress(c, from, n, to, room);
	return *size ? 0
		     : error_set(err, -EIO, "gzip failed to compress a block");
}

/* ---- does compression save enough? ------------------------------------------- */

/* Compressed size of a piece in bytes, or `n` if it cannot be compressed. */
static size_t squeezed_size(struct squeeze_coder *c, const void *from, size_t n)
{
	size_t size;

	if (c->zstd) {
		size = ZSTD_compressCCtx(c->piece, c->scratch, c->room, from, n,
					 1);
		return ZSTD_isError(size) ? n : size;
	}
	size = libdeflate_deflate_compress(c->fast, from, n, c->scratch,
					   c->room);
	return size ? size : n;
}

static bool coder_is_worth_it(struct squeeze_coder *c,
			      const unsigned char *from, size_t n)
{
	size_t sum = 0;

	if (!c->o->sample || n < SAMPLED)
		return true;
	for (size_t i = 0; i < PIECES; i++)
		sum += squeezed_size(c, from + (n - PIECE) / (PIECES - 1) * i,
				     PIECE);
	return sum * 100 < PIECES * PIECE * WORTH;
}

/* ---- both ---------------------------------------------------------------- */

size_t coder_bound(const struct squeeze_options *o, size_t n)
{
	size_t bound = n;

	if (o->codec == SQUEEZE_GZIP)
		bound = libdeflate_gzip_compress_bound(NULL, n);
	if (o->codec == SQUEEZE_ZSTD) {
		bound = ZSTD_compressBound(n);
		if (bound < raw_bound(n))
			bound = raw_bound(n);
	}
	return bound;
}

/* Memory of zstd's levels as measured with zstd 1.5, in MiB.  Windows are no larger than
 * the block. */
uint64_t coder_memory(const struct squeeze_options *o)
{
	static const uint16_t mib[] = {0,  1,  1,  2,  3,   4,   4,  7,
				       7,  13, 25, 25, 49,  33,  49, 65,
				       33, 49, 50, 82, 162, 322, 642};
	const unsigned last = sizeof mib / sizeof mib[0] - 1;
	unsigned level =
		(unsigned)(o->level ? o->level : squeeze_usual(o->codec));

	if (o->codec == SQUEEZE_NONE)
		return 0;
	if (o->codec == SQUEEZE_GZIP)
		return UINT64_C(1) << 20;
	return min_u64((UINT64_C(1) << 20) + 16 * (uint64_t)o->block,
		       (uint64_t)mib[level < last ? level : last] << 20);
}

int coder_run(struct squeeze_coder *c, const void *from, size_t n, void *to,
	      size_t room, size_t *size, bool *squeezed, struct error *err)
{
	*squeezed = coder_is_worth_it(c, from, n);
	if (c->o->codec == SQUEEZE_GZIP)
		return run_gzip(*squeezed ? c->gzip : c->store, from, n, to,
				room, size, err);
	if (*squeezed)
		return run_zstd(c, from, n, to, room, size, err);
	*size = raw_frame(from, n, to);
	return 0;
}

/* ---- making -------------------------------------------------------------- */

static bool make_gzip(struct squeeze_coder *c, int level)
{
	c->gzip = libdeflate_alloc_compressor(level);
	if (!c->gzip || !c->o->sample)
		return c->gzip != NULL;
	c->fast = libdeflate_alloc_compressor(1);
	c->store = libdeflate_alloc_compressor(0);
	c->room = libdeflate_deflate_compress_bound(c->fast, PIECE);
	return c->fast && c->store;
}

static bool make_zstd(struct squeeze_coder *c, int level)
{
	c->zstd = ZSTD_createCCtx();
	c->piece = ZSTD_createCCtx();
	c->room = ZSTD_compressBound(PIECE);
	return c->zstd && c->piece &&
	       !ZSTD_isError(ZSTD_CCtx_setParameter(
		       c->zstd, ZSTD_c_compressionLevel, level)) &&
	       !ZSTD_isError(
		       ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_checksumFlag, 1));
}

int coder_new(struct squeeze_coder **out, const struct squeeze_options *o,
	      struct error *err)
{
	struct squeeze_coder *c = calloc(1, sizeof *c);
	int level = o->level ? o->level : squeeze_usual(o->codec);
	bool ok = c != NULL;

	*out = NULL;
	if (ok) {
		c->o = o;
		ok = o->codec == SQUEEZE_GZIP ? make_gzip(c, level)
					      : make_zstd(c, level);
	}
	if (ok && o->sample)
		ok = (c->scratch = malloc(c->room)) != NULL;
	if (!ok) {
		coder_free(c);
		return error_no_memory(err, "a compressor");
	}
	*out = c;
	return 0;
}

void coder_free(struct squeeze_coder *c)
{
	if (!c)
		return;
	if (c->gzip)
		libdeflate_free_compressor(c->gzip);
	if (c->fast)
		libdeflate_free_compressor(c->fast);
	if (c->store)
		libdeflate_free_compressor(c->store);
	ZSTD_freeCCtx(c->zstd);
	ZSTD_freeCCtx(c->piece);
	free(c->scratch);
	free(c);
}
