/* SPDX-License-Identifier: BSD-2-Clause */
/* squashfs: data blocks and fragment blocks as a set of chunks. */
/*
 * Chunk i is entry i of the table of blocks.  Holes are absent chunks.  Blocks that
 * are not compressed are read from the source directly.  All others are read and
 * decoded here, by the thread that asks for one; the cache makes sure that only one
 * thread decodes a block.
 *
 * The next chunk of an order is the next block of the file, or, for small files
 * that are read in the order in which they were packed, the next fragment block.
 *
 * A block is a zlib stream, an xz stream (perhaps with filters for machine code), a
 * zstd frame, or a raw block of LZ4 or LZO1X.  HDF5 filters use the zlib stream and
 * the zstd frame, too.  Raw blocks do not say where they end: their decoders fail
 * when `room` is too small, and no decoder writes beyond it.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "formats/squashfs/private.h"

#include <errno.h>
#include <limits.h>
#include <lz4.h>
#if HAVE_LZMA
#include <lzma.h>
#endif
#if HAVE_LZO
#include <lzo/lzo1x.h>
#endif
#include <stdio.h>
#include <stdlib.h>

#include "base/counters.h"
#include "base/number.h"

/* Entries that are searched for the next one to decode. */
#define LOOK_AHEAD 64
/* Limit of memory in bytes: a dictionary is no larger than a block, the rest is the
 * decoder. */
#define XZ_MEMORY (UINT64_C(8) << 20)

/* ---- compressors --------------------------------------------------------- */

static int decode_raw_lz4(const struct codec_params *p, const void *in,
			  size_t in_len, void *out, size_t out_cap,
			  size_t *out_len, struct error *err)
{
	int n;

	(void)p;
	if (in_len > INT_MAX || out_cap > INT_MAX)
		return error_set(err, -EBADMSG, "lz4: the block is too long");
	n = LZ4_decompress_safe(in, out, (int)in_len, (int)out_cap);
	if (n < 0)
		return error_set(err, -EBADMSG,
				 "lz4: %zu stored bytes do not decode to at "
				 "most %zu",
				 in_len, out_cap);
	*out_len = (size_t)n;
	return 0;
}
static const struct codec raw_lz4 = {.name = "lz4", .decode = decode_raw_lz4};

#if HAVE_LZMA
static int decode_xz_stream(const struct codec_params *p, const void *in,
			    size_t in_len, void *out, size_t out_cap,
			    size_t *out_len, struct error *err)
{
	uint64_t memory = XZ_MEMORY;
	size_t at = 0, made = 0;

	(void)p;
	switch (lzma_stream_buffer_decode(&memory, 0, NULL, in, &at, in_len,
					  out, &made, out_cap)) {
	case LZMA_OK:
		break;
	case LZMA_MEM_ERROR:
		return error_set(err, -ENOMEM, "out of memory for decoding xz");
	case LZMA_BUF_ERROR:
		return error_set(err, -ENOSPC,
				 "xz: %zu stored bytes decode to more than %zu",
				 in_len, out_cap);
	case LZMA_MEMLIMIT_ERROR:
		return error_set(err, -EBADMSG,
				 "xz: decoding would take %llu bytes of memory",
				 (unsigned long long)memory);
	case LZMA_OPTIONS_ERROR:
		return error_set(err, -ENOTSUP,
				 "xz: the block uses a filter that liblzma "
				 "does not have");
	default:
		return error_set(err, -EBADMSG,
				 "xz: %zu stored bytes are not a complete "
				 "stream with the right checksum",
				 in_len);
	}
	*out_len = made;
	return 0;
}
static const struct codec xz = {
	.name = "xz", .has_checksum = true, .decode = decode_xz_stream};
#define XZ_CODEC &xz
#else
#define XZ_CODEC NULL
#endif

#if HAVE_LZO
static int decode_raw_lzo(const struct codec_params *p, const void *in,
			  size_t in_len, void *out, size_t out_cap,
			  size_t *out_len, struct error *err)
{
	lzo_uint made = out_cap;

	(void)p;
	switch (lzo1x_decompress_safe(in, in_len, out, &made, NULL)) {
	case LZO_E_OK:
		*out_len = made;
		return 0;
	case LZO_E_OUTPUT_OVERRUN:
		return error_set(err, -ENOSPC,
				 "lzo: %zu stored bytes decode to more than "
				 "%zu",
				 in_len, out_cap);
	default:
		return error_set(err, -EBADMSG,
				 "lzo: %zu stored bytes are not a valid block",
				 in_len);
	}
}
static const struct codec lzo = {.name = "lzo", .decode = decode_raw_lzo};
#define LZO_CODEC &lzo
#else
#define LZO_CODEC NULL
#endif

static const struct squashfs_codec table[] = {
	{1, "gzip", &codec_deflate}, {2, "lzma", NULL},
	{3, "lzo", LZO_CODEC},       {4, "xz", XZ_CODEC},
	{5, "lz4", &raw_lz4},        {6, "zstd", &codec_zstd},
};

const struct squashfs_codec *squashfs_codec(unsigned id)
{
	return id >= 1 && id <= sizeof table / sizeof table[0] ? &table[id - 1]
							       : NULL;
}

const char *squashfs_compressor_name(unsigned compressor)
{
	const struct squashfs_codec *c = squashfs_codec(compressor);

	return c ? c->name : "unknown";
}

const struct codec *squashfs_block_codec(const struct squashfs_info *info)
{
	const struct squashfs_codec *c = squashfs_codec(info->compressor);

	return c ? c->codec : NULL;
}

int squashfs_block_decode(const struct squashfs_info *info,
			  const struct member_block *b, const void *stored,
			  void *out, size_t room, size_t *made,
			  struct error *err)
{
	const struct squashfs_codec *c = squashfs_codec(info->compressor);
	int r;

	if (!c || !c->codec)
		return error_set(err, -ENOTSUP,
				 "this tensorfs has no decoder for %s",
				 squashfs_compressor_name(info->compressor));
	r = c->codec->decode(NULL, stored, b->stored, out, room, made, err);
	if (r == -ENOSPC)
		return error_set(err, -EBADMSG,
				 "%s: %u stored bytes decode to more than %zu",
				 c->name, b->stored, room);
	if (r < 0)
		return r;
	if (*made < b->size || (*made > b->size && !(b->flags & MEMBER_SHARED)))
		return error_set(err, -EBADMSG,
				 "%s: decodes to %zu bytes instead of %u",
				 c->name, *made, b->size);
	return 0;
}

/* ---- the set of chunks --------------------------------------------------- */

struct block_set {
	struct chunk_set set; /* first member */
	const struct members *m;
	struct backing from;
	struct squashfs_info info;
};

static struct block_set *block_set_of(const struct chunk_set *s)
{
	return (struct block_set *)s;
}

static const struct member_block *block_set_entry(const struct chunk_set *s,
						  uint64_t index)
{
	const struct members *m = block_set_of(s)->m;

	if (index >= m->n_blocks || (m->blocks[index].flags & MEMBER_TAIL))
		return NULL;
	return &m->blocks[index];
}

static uint64_t block_set_segment_of(const struct chunk_set *s, uint64_t index)
{
	(void)s;
	(void)index;
	return UINT64_MAX;
}

static int no_squashfs_block(uint64_t index, struct error *err)
{
	return error_set(err, -EINVAL, "there is no block %llu",
			 (unsigned long long)index);
}

static int block_set_locate(const struct chunk_set *s, uint64_t index,
			    const struct buf *segment, struct chunk *out,
			    struct error *err)
{
	static const unsigned char zero;
	const struct member_block *b = block_set_entry(s, index);

	(void)segment;
	if (!b)
		return no_squashfs_block(index, err);
	*out = (struct chunk){.state = CHUNK_FETCH,
			      .file = block_set_of(s)->from.file,
			      .stored = b->stored,
			      .size = b->size,
			      .fill = {&zero, 1}};
	if (!b->stored) {
		out->state = CHUNK_ABSENT;
	} else if ((b->flags & MEMBER_STORED) &&
		   backing_is_plain(&block_set_of(s)->from)) {
		out->state = CHUNK_STORED;
		out->pos = block_set_of(s)->from.pos + b->pos;
	}
	return 0;
}

/* ---- decoding ------------------------------------------------------------ */

/* Decode to a new buffer of `size` bytes.  Return -EAGAIN if that was too small for
 * a fragment block, whose decoded size is not stored. */
static int decode_squashfs_block(const struct block_set *s,
				 const struct member_block *b,
				 const void *stored, size_t size,
				 _Atomic uint64_t *gauge, struct buf **out,
				 struct error *err)
{
	struct buf *to = buf_new(size ? size : 1, gauge);
	size_t made = 0;
	int r;

	if (!to)
		return error_set(err, -ENOMEM,
				 "out of memory for a block of %zu bytes",
				 size);
	r = squashfs_block_decode(&s->info, b, stored, to->data, size, &made,
				  err);
	if (r < 0) {
		buf_unref(to);
		return r == -EBADMSG && (b->flags & MEMBER_SHARED) &&
				       size < s->info.block_size
			       ? -EAGAIN
			       : r;
	}
	to->size = made;
	counter_add(COUNT_CHUNKS_DECODED, 1);
	counter_add(COUNT_BYTES_STORED, b->stored);
	counter_add(COUNT_BYTES_DECODED, made);
	*out = to;
	return 0;
}

static int block_set_fetch(struct chunk_set *set, uint64_t index,
			   _Atomic uint64_t *gauge, struct buf **out,
			   struct error *err)
{
	const struct block_set *s = block_set_of(set);
	const struct member_block *b = block_set_entry(set, index);
	struct buf *stored;
	int r;

	if (!b || !b->stored)
		return no_squashfs_block(index, err);
	if (b->pos > s->info.bytes_used ||
	    b->stored > s->info.bytes_used - b->pos)
		return error_set(err, -EBADMSG,
				 "the image's entry of this block is damaged");
	stored = buf_new(b->stored, b->flags & MEMBER_STORED ? gauge : NULL);
	if (!stored)
		return error_set(err, -ENOMEM,
				 "out of memory for %u stored bytes",
				 b->stored);
	r = backing_read(&s->from, b->pos, stored->data, b->stored, err);
	/* A block that is not compressed, of an image in a decoded stream. */
	if (r == 0 && (b->flags & MEMBER_STORED)) {
		*out = stored;
		return 0;
	}
	if (r == 0)
		r = decode_squashfs_block(s, b, stored->data, b->size, gauge,
					  out, err);
	if (r == -EAGAIN)
		r = decode_squashfs_block(s, b, stored->data,
					  s->info.block_size, gauge, out, err);
	buf_unref(stored);
	return r;
}

/* ---- order --------------------------------------------------------------- */

static bool block_set_next(const struct chunk_set *s, uint64_t index,
			   uint64_t *out, unsigned *carry)
{
	const struct members *m = block_set_of(s)->m;
	uint32_t shared = index < m->n_blocks
				  ? m->blocks[index].flags & MEMBER_SHARED
				  : 0;

	for (unsigned i = 0; i < LOOK_AHEAD && index < m->n_blocks; i++) {
		const struct member_block *b = &m->blocks[index];

		if (!shared && (b->flags & (MEMBER_LAST | MEMBER_TAIL)))
			return false;
		if (++index >= m->n_blocks)
			return false;
		b++;
		if ((b->flags & MEMBER_SHARED) != shared)
			continue;
		if (!b->stored || (b->flags & (MEMBER_STORED | MEMBER_TAIL)))
			continue;
		*out = index;
		*carry = 0;
		return true;
	}
	return false;
}

static bool block_set_origin(const struct chunk_set *s, uint64_t index,
			     const struct chunk *c, char *text, size_t n)
{
	const struct squashfs_info *info = &block_set_of(s)->info;
	const struct member_block *b = block_set_entry(s, index);
	int len;

	if (!b || (b->flags & MEMBER_STORED))
		return false;
	len = snprintf(text, n,
		       "squashfs %u, blocks of %u, %llu bytes long: %u bytes, "
		       "flags %x, stored as %u at %llu of ",
		       info->compressor, (unsigned)info->block_size,
		       (unsigned long long)info->bytes_used, (unsigned)c->size,
		       (unsigned)b->flags, (unsigned)b->stored,
		       (unsigned long long)b->pos);
	return len > 0 && (size_t)len < n &&
	       backing_origin(&block_set_of(s)->from, text + len,
			      n - (size_t)len);
}

static void block_set_describe(const struct chunk_set *s, uint64_t index,
			       char *buf, size_t n)
{
	const struct member_block *b = block_set_entry(s, index);

	if (!b || b->pos > block_set_of(s)->info.bytes_used)
		snprintf(buf, n, "%s: block %llu",
			 backing_name(&block_set_of(s)->from),
			 (unsigned long long)index);
	else
		snprintf(buf, n, "%s: %sblock at byte %llu",
			 backing_name(&block_set_of(s)->from),
			 b->flags & MEMBER_SHARED ? "fragment " : "",
			 (unsigned long long)b->pos);
}

int squashfs_blocks_new(struct chunk_set **out, const struct members *m,
			const struct backing *b,
			const struct squashfs_info *info, struct error *err)
{
	static const struct chunk_set_ops ops = {
		.index_page_of = block_set_segment_of,
		.locate = block_set_locate,
		.fetch = block_set_fetch,
		.next = block_set_next,
		.origin = block_set_origin,
		.describe = block_set_describe,
	};
	struct block_set *s = calloc(1, sizeof *s);

	*out = NULL;
	if (!s)
		return error_no_memory(err, "the blocks of the image");
	s->set.ops = &ops;
	s->set.id = chunk_set_new_id();
	s->set.unit = info->block_size;
	s->m = m;
	s->from = *b;
	s->info = *info;
	*out = &s->set;
	return 0;
}

void squashfs_blocks_free(struct chunk_set *s)
{
	free(s ? block_set_of(s) : NULL);
}
