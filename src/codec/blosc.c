/* SPDX-License-Identifier: BSD-2-Clause */
/* Filter 32001, blosc: one Blosc 1 frame, by libblosc. */
/*
 *	u8  format version		u32  plain bytes
 *	u8  version of the compressor	u32  plain bytes in a block
 *	u8  flags			u32  stored bytes, header included
 *	u8  bytes of an element
 *	u32 for each block: where it starts
 *	per block, for each of its splits (one, or one per byte of an element):
 *		u32  stored bytes n
 *		n bytes: compressed, or plain when n is the split's size
 *
 * or, with flag 2, the plain bytes behind the header.  All numbers are little-endian.
 *
 * libblosc checks most of what it reads, but not all: blosclz adds up a length beyond
 * 2^31 and then writes where it points, zstd comes with decoders of its earliest formats
 * (see zstd.c), and a failed allocation is used.  So the frame is checked here first.
 * Every byte of a frame belongs to some part of it, so bytes left over are found, too.
 * Only the calls that take a context of their own are used: the others share one context,
 * and a lock.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "codec/codec.h"

#if HAVE_BLOSC
#include <blosc.h>
#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

#include "base/bytes.h"
#include "base/number.h"
#include "base/team.h"
#include "codec/parts.h"

#define HEADER BLOSC_MIN_HEADER_LENGTH

#define FLAG_RESERVED 0x08u
#define FLAG_DONT_SPLIT 0x10u
#define FLAGS_FORMAT_SHIFT 5

/* When a block is split: constants of libblosc that are part of the format. */
#define SPLITS_MAX 16u
#define SPLIT_MIN 128u /* elements */

/* The most stored bytes of a blosclz split: as many bytes of 255 cannot add up to
 * 2^31. */
#define BLOSCLZ_MAX ((size_t)8 << 20)

static const char *const formats[] = {
	BLOSC_BLOSCLZ_COMPNAME, BLOSC_LZ4_COMPNAME,  BLOSC_SNAPPY_COMPNAME,
	BLOSC_ZLIB_COMPNAME,    BLOSC_ZSTD_COMPNAME,
};

struct frame {
	const unsigned char *in;
	size_t len;
	size_t plain, block;
	unsigned typesize, flags, format;
	size_t used; /* bytes known to belong to the frame */
};

/* A frame that is decoded in parts. */
struct blosc_job {
	const struct frame *frame;
	unsigned char *out;
	size_t size; /* decoded bytes of each part but the last */
};

static int check_version(const unsigned char *in, size_t in_len,
			 struct error *err)
{
	if (in_len < HEADER)
		return error_set(err, -EBADMSG,
				 "blosc: %zu stored bytes are less than a "
				 "header",
				 in_len);
	if (in[0] > BLOSC_VERSION_FORMAT)
		return error_set(err, -EBADMSG,
				 "blosc: format version %u is newer than this "
				 "libblosc knows (%d)",
				 in[0], BLOSC_VERSION_FORMAT);
	if (in[0] < BLOSC_VERSION_FORMAT)
		return error_set(
			err, -EBADMSG,
			"blosc: not a Blosc 1 frame: its format version is %u",
			in[0]);
	return 0;
}

static int blosc_read_header(struct frame *f, struct error *err)
{
	int r = check_version(f->in, f->len, err);

	if (r < 0)
		return r;
	if (blosc_cbuffer_validate(f->in, f->len, &f->plain) < 0)
		return error_set(err, -EBADMSG,
				 "blosc: the header says %u stored bytes for "
				 "%u decoded ones, but %zu are stored",
				 load_le32(f->in + 12), load_le32(f->in + 4),
				 f->len);
	f->flags = f->in[2];
	f->typesize = f->in[3];
	f->block = load_le32(f->in + 8);
	f->format = f->flags >> FLAGS_FORMAT_SHIFT;
	f->used = HEADER;
	if (!f->plain)
		return 0;
	if (!f->typesize || !f->block || f->block > f->plain ||
	    f->flags & FLAG_RESERVED)
		return error_set(err, -EBADMSG,
				 "blosc: impossible header: flags 0x%02x, "
				 "elements of %u bytes, blocks of %zu",
				 f->flags, f->typesize, f->block);
	return 0;
}

static int blosc_check_compressor(const struct frame *f, struct error *err)
{
	if (f->format >= sizeof formats / sizeof *formats)
		return error_set(err, -EBADMSG, "blosc: unknown compressor %u",
				 f->format);
	if (blosc_compname_to_compcode(formats[f->format]) < 0)
		return error_set(err, -EBADMSG,
				 "blosc: compressed by %s, which this libblosc "
				 "was built without",
				 formats[f->format]);
	return 0;
}

/* Return false for bytes that the decompressor of this split must not be given. */
static bool split_is_safe(const struct frame *f, const unsigned char *in,
			  size_t len)
{
	switch (f->format) {
	case BLOSC_BLOSCLZ_FORMAT:
		return len < BLOSCLZ_MAX;
	case BLOSC_ZSTD_FORMAT:
		return len >= 4 && load_le32(in) == ZSTD_MAGICNUMBER &&
		       ZSTD_findFrameCompressedSize(in, len) == len;
	default:
		return true;
	}
}

/* Check the block that starts at `at` and has `size` plain bytes.  Return 0 or
 * -EBADMSG. */
static int blosc_check_block(struct frame *f, size_t at, size_t size)
{
	size_t splits = 1;

	/* A last, shorter block is never split. */
	if (!(f->flags & FLAG_DONT_SPLIT) && f->typesize <= SPLITS_MAX &&
	    size / f->typesize >= SPLIT_MIN && size == f->block)
		splits = f->typesize;
	if (size % splits)
		return -EBADMSG;
	for (size_t i = 0; i < splits; i++) {
		size_t n;

		if (at > f->len || f->len - at < 4)
			return -EBADMSG;
		n = load_le32(f->in + at);
		at += 4;
		if (n > f->len - at)
			return -EBADMSG;
		if (n != size / splits && !split_is_safe(f, f->in + at, n))
			return -EBADMSG;
		at += n;
		f->used += 4 + n;
	}
	return 0;
}

static int blosc_check_blocks(struct frame *f, struct error *err)
{
	size_t n = (f->plain - 1) / f->block + 1;

	if (n > (f->len - HEADER) / 4)
		return error_set(err, -EBADMSG,
				 "blosc: the frame is too short for the starts "
				 "of %zu blocks",
				 n);
	f->used += n * 4;
	for (size_t i = 0; i < n; i++) {
		size_t left = f->plain - i * f->block;

		if (blosc_check_block(f, load_le32(f->in + HEADER + i * 4),
				      left < f->block ? left : f->block) < 0)
			return error_set(err, -EBADMSG,
					 "blosc: block %zu of %zu is damaged",
					 i, n);
	}
	return 0;
}

static int blosc_check_frame(struct frame *f, struct error *err)
{
	int r = 0;

	if (f->plain && f->flags & BLOSC_MEMCPYED)
		f->used += f->plain;
	else if (f->plain)
		r = blosc_check_compressor(f, err);
	if (r == 0 && f->plain && !(f->flags & BLOSC_MEMCPYED))
		r = blosc_check_blocks(f, err);
	if (r == 0 && f->used != f->len)
		return error_set(err, -EBADMSG,
				 "blosc: %zu stored bytes, but the frame's "
				 "parts have %zu",
				 f->len, f->used);
	return r;
}

/* Return true if the memory that libblosc allocates is there: it does not check that
 * itself. */
static bool has_memory(const struct frame *f)
{
	void *p;

	if (posix_memalign(&p, 32, 2 * f->block + 4 * (size_t)f->typesize))
		return false;
	free(p);
	return true;
}

/* Return true if the frame can be decoded in parts.  Parts are whole blocks, asked for by
 * the numbers of their elements. */
static bool may_cut(const struct frame *f)
{
	return !(f->flags & BLOSC_MEMCPYED) && f->block % f->typesize == 0 &&
	       f->plain % f->typesize == 0;
}

static int blosc_decode_part(void *ctx, size_t i, struct error *err)
{
	const struct blosc_job *j = ctx;
	const struct frame *f = j->frame;
	size_t from = i * j->size, n = min_u64(j->size, f->plain - from);
	int r = -1;

	/* Other threads may have taken the memory meanwhile. */
	if (has_memory(f))
		r = blosc_getitem(f->in, (int)(from / f->typesize),
				  (int)(n / f->typesize), j->out + from);
	if (r >= 0 && (size_t)r == n)
		return 0;
	return error_set(err, -EBADMSG, "blosc: bytes %zu to %zu do not decode",
			 from, from + n);
}

/* Decode a frame that was checked and is not empty. */
static int blosc_decompress_frame(const struct frame *f, void *out,
				  struct error *err)
{
	int r;

	if (!has_memory(f))
		return error_set(err, -ENOMEM,
				 "blosc: out of memory for blocks of %zu bytes",
				 f->block);
	if (may_cut(f)) {
		struct blosc_job j = {.frame = f, .out = out};

		j.size = parts_blocks(f->plain, f->block) * f->block;
		if (j.size < f->plain)
			return team_run((f->plain - 1) / j.size + 1,
					blosc_decode_part, &j, err);
	}
	r = blosc_decompress_ctx(f->in, out, f->plain, 1);
	if (r < 0 || (size_t)r != f->plain)
		return error_set(err, -EBADMSG,
				 "blosc: %zu stored bytes do not decode to %zu",
				 f->len, f->plain);
	return 0;
}

static int blosc_decode(const struct codec_params *p, const void *in,
			size_t in_len, void *out, size_t out_cap,
			size_t *out_len, struct error *err)
{
	struct frame f = {.in = in, .len = in_len};
	int r = blosc_read_header(&f, err);

	(void)p;
	if (r < 0)
		return r;
	if (f.plain > out_cap)
		return error_set(err, -ENOSPC,
				 "blosc: the header promises %zu bytes, "
				 "expected at most %zu",
				 f.plain, out_cap);
	r = blosc_check_frame(&f, err);
	if (r == 0 && f.plain)
		r = blosc_decompress_frame(&f, out, err);
	if (r == 0)
		*out_len = f.plain;
	return r;
}

const struct codec codec_blosc = {
	.name = "blosc",
	.id = 32001,
	.kind = CODEC_COMPRESS,
	.decode = blosc_decode,
};
#endif
