/* SPDX-License-Identifier: BSD-2-Clause */
/* Compressing blocks of squashfs, and finding blocks that are not worth compressing. */

/*
 * Blocks are compressed by libsquashfs' compressors, so that they are what mksquashfs
 * makes; except gzip, where libdeflate is several times as fast as zlib at the same
 * ratio.
 *
 * With `choose`, a block that would not shrink by a tenth is stored: readers get it
 * without decoding, as a range of the file.  Finding such blocks costs less than
 * compressing them.  It takes two steps:
 *
 *	equality of two bytes   in 4 KiB of the block.  In JPEG, PNG and compressed data it is
 *	                        as rare as in noise; in arrays and text it is far more
 *	                        frequent, and the block is compressed
 *	zstd's fastest level    of the whole block.  It finds repetitions, and passes over
 *	                        incompressible data at 1 to 2 GB/s
 */
#include <errno.h>
#include <libdeflate.h>
#include <stdio.h>
#include <string.h>
#include <zstd.h>

#include "pack/squashfs/private.h"

#define ZSTD_LEVEL 9
#define GZIP_LEVEL 9
#define XZ_LEVEL 6
/* Highest level of zlib, which libsquashfs uses for metadata. */
#define GZIP_MOST 9
#define SAMPLE 1024
#define SAMPLES 4
#define WORTH(n) ((n) - (n) / 10)

struct image_press {
	const struct image_codec *codec;
	sqfs_compressor_t *with;
	struct libdeflate_compressor *deflate;
	ZSTD_CCtx *probe;
	unsigned char *scratch;
	size_t scratch_size;
};

/* ---- the codecs ------------------------------------------------------------------ */

static const struct row {
	enum pack_codec codec;
	const char *name;
	SQFS_COMPRESSOR id;
	int usual, least, most;
} rows[] = {
	{PACK_AUTO, "zstd", SQFS_COMP_ZSTD, ZSTD_LEVEL, 1, 22},
	{PACK_ZSTD, "zstd", SQFS_COMP_ZSTD, ZSTD_LEVEL, 1, 22},
	{PACK_GZIP, "gzip", SQFS_COMP_GZIP, GZIP_LEVEL, 1, 12},
	{PACK_LZ4, "lz4", SQFS_COMP_LZ4, 1, 1, 12},
	{PACK_XZ, "xz", SQFS_COMP_XZ, XZ_LEVEL, 1, 9},
	/* The superblock must name a compressor: zlib, which every reader has and none
	 * will use. */
	{PACK_NONE, "none", SQFS_COMP_GZIP, GZIP_LEVEL, 0, 12},
};

static const struct row *codec_find_row(enum pack_codec codec)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (rows[i].codec == codec)
			return &rows[i];
	return NULL;
}

static int codec_configure(struct image_codec *c, const struct row *row,
			   int level, uint32_t block)
{
	sqfs_compressor_config_t *cfg = &c->config;
	int r = sqfs_compressor_config_init(cfg, row->id, block, 0);

	if (r)
		return r;
	switch (row->codec) {
	case PACK_LZ4: /* lz4 has only these two levels */
		cfg->flags |= level > 1 ? SQFS_COMP_FLAG_LZ4_HC : 0;
		break;
	case PACK_GZIP:
	case PACK_NONE:
		cfg->level = (sqfs_u32)(level < GZIP_MOST ? level : GZIP_MOST);
		break;
	default:
		cfg->level = (sqfs_u32)level;
	}
	return 0;
}

/*
 * The compressor of metadata.  libsquashfs 1.2 uses whatever its lz4 returns, which for a
 * few bytes may be longer than the input; readers refuse that.  This wrapper stores such
 * blocks.
 */
static struct image_meta *meta_of(const sqfs_compressor_t *base)
{
	return (struct image_meta *)(uintptr_t)base;
}

static void meta_configuration(const sqfs_compressor_t *base,
			       sqfs_compressor_config_t *cfg)
{
	const struct image_meta *m = meta_of(base);

	memset(cfg, 0, sizeof *cfg);
	cfg->id = SQFS_COMP_GZIP;
	if (m->with)
		m->with->get_configuration(m->with, cfg);
}

static int meta_write_options(sqfs_compressor_t *base, sqfs_file_t *file)
{
	struct image_meta *m = meta_of(base);

	return m->with ? m->with->write_options(m->with, file) : 0;
}

static int meta_read_options(sqfs_compressor_t *base, sqfs_file_t *file)
{
	(void)base, (void)file;
	return SQFS_ERROR_UNSUPPORTED;
}

static sqfs_s32 meta_block(sqfs_compressor_t *base, const sqfs_u8 *in,
			   sqfs_u32 size, sqfs_u8 *out, sqfs_u32 outsize)
{
	struct image_meta *m = meta_of(base);
	sqfs_s32 r =
		m->with ? m->with->do_block(m->with, in, size, out, outsize)
			: 0;

	return r > 0 && (sqfs_u32)r >= size ? 0 : r;
}

static int codec_make(struct image_codec *c, const char *name,
		      struct error *err)
{
	sqfs_compressor_config_t undo = c->config;
	int r;

	c->meta.base =
		(sqfs_compressor_t){.get_configuration = meta_configuration,
				    .write_options = meta_write_options,
				    .read_options = meta_read_options,
				    .do_block = meta_block};
	if (c->none)
		return 0;
	undo.flags |= SQFS_COMP_FLAG_UNCOMPRESS;
	r = sqfs_compressor_create(&c->config, &c->meta.with);
	if (r)
		c->meta.with = NULL;
	else if ((r = sqfs_compressor_create(&undo, &c->undo)))
		c->undo = NULL;
	if (r == SQFS_ERROR_ALLOC)
		return error_no_memory(err, "a compressor");
	if (r)
		return error_set(err, -EINVAL,
				 "libsquashfs was built without %s; choose "
				 "another --comp",
				 name);
	return 0;
}

int image_codec_open(struct image_codec *c, const struct pack_comp *comp,
		     uint32_t block, struct error *err)
{
	const struct row *row = codec_find_row(comp->codec);
	int level;

	memset(c, 0, sizeof *c);
	if (!row)
		return error_set(err, -EINVAL,
				 "squashfs does not support lzf; use zstd, "
				 "lz4, gzip, xz, none or auto");
	level = comp->level ? comp->level : row->usual;
	if (level < row->least || level > row->most)
		return error_set(err, -EINVAL,
				 "%s has levels %d to %d in squashfs, not %d",
				 row->name, row->least, row->most, level);
	c->none = comp->codec == PACK_NONE;
	c->choose = comp->codec == PACK_AUTO;
	if (c->none)
		snprintf(c->name, sizeof c->name, "none");
	else
		snprintf(c->name, sizeof c->name, "%s:%d", row->name, level);
	if (codec_configure(c, row, level, block))
		return error_set(err, -EINVAL,
				 "libsquashfs does not accept %s with blocks "
				 "of %u bytes",
				 c->name, block);
	return codec_make(c, row->name, err);
}

void image_codec_close(struct image_codec *c)
{
	if (c->meta.with)
		sqfs_destroy(c->meta.with);
	if (c->undo)
		sqfs_destroy(c->undo);
}

uint64_t image_codec_memory(const struct image_codec *c)
{
	uint64_t block = c->config.block_size;

	switch (c->none ? 0 : c->config.id) {
	case SQFS_COMP_XZ:
		return 12 * block + (UINT64_C(4) << 20);
	case SQFS_COMP_ZSTD: /* windows are no larger than the block */
		return 10 * block + (UINT64_C(3) << 20);
	case SQFS_COMP_GZIP:
		return UINT64_C(10) << 20;
	default:
		return UINT64_C(1) << 20;
	}
}

/* ---- state of one thread --------------------------------------------------------- */

static bool press_make(struct image_press *p, uint32_t block)
{
	const struct image_codec *c = p->codec;

	if (c->choose) {
		p->scratch_size = ZSTD_compressBound(block);
		p->scratch = malloc(p->scratch_size);
		p->probe = ZSTD_createCCtx();
		if (!p->scratch || !p->probe)
			return false;
	}
	if (c->none)
		return true;
	if (c->config.id == SQFS_COMP_GZIP)
		return (p->deflate = libdeflate_alloc_compressor(
				atoi(strchr(c->name, ':') + 1)));
	return (p->with = sqfs_copy(c->meta.with));
}

int image_press_new(struct image_press **out, const struct image_codec *c,
		    uint32_t block, struct error *err)
{
	struct image_press *p = calloc(1, sizeof *p);

	*out = NULL;
	if (!p)
		return error_no_memory(err, "a compressor");
	p->codec = c;
	if (!press_make(p, block)) {
		image_press_free(p);
		return error_no_memory(err, "a compressor");
	}
	*out = p;
	return 0;
}

void image_press_free(struct image_press *p)
{
	if (!p)
		return;
	if (p->with)
		sqfs_destroy(p->with);
	if (p->deflate)
		libdeflate_free_compressor(p->deflate);
	ZSTD_freeCCtx(p->probe);
	free(p->scratch);
	free(p);
}

/* ---- does compression save enough? ----------------------------------------------- */

/* Are two random bytes of a sample equal hardly more often than in noise (1 in 256)? */
static bool looks_like_noise(const unsigned char *data, size_t n)
{
	size_t piece = n < SAMPLE * SAMPLES ? n / SAMPLES : SAMPLE;
	size_t step = n / SAMPLES;
	uint64_t count[256] = {0}, pairs = 0, total = piece * SAMPLES;

	if (total < SAMPLE / 2)
		return false;
	for (unsigned s = 0; s < SAMPLES; s++) {
		/* Sample the end of each quarter, because the beginning of a file is its
		 * header. */
		const unsigned char *at = data + (s + 1) * step - piece;

		for (size_t i = 0; i < piece; i++)
			count[at[i]]++;
	}
	for (unsigned i = 0; i < 256; i++)
		pairs += count[i] * (count[i] - (count[i] > 0));
	return pairs * 256 * 4 < total * (total - 1) * 5;
}

bool image_dense(struct image_press *p, const unsigned char *data, size_t n)
{
	size_t made;

	if (!looks_like_noise(data, n))
		return false;
	made = ZSTD_compressCCtx(p->probe, p->scratch, p->scratch_size, data, n,
				 1);
	return !ZSTD_isError(made) && made > WORTH(n);
}

int image_press(struct image_press *p, const void *in, size_t n, void *out,
		size_t *made, struct error *err)
{
	sqfs_s32 r;

	*made = 0;
	if (p->codec->none || n < 2)
		return 0;
	if (p->codec->choose && image_dense(p, in, n))
		return 0;
	if (p->deflate) {
		*made = libdeflate_zlib_compress(p->deflate, in, n, out, n - 1);
	} else {
		r = p->with->do_block(p->with, in, (sqfs_u32)n, out,
				      (sqfs_u32)n);
		if (r == SQFS_ERROR_ALLOC)
			return error_no_memory(err, "a compressor");
		if (r < 0)
			return error_set(err, -EIO,
					 "%s failed to compress a block",
					 p->codec->name);
		*made = (size_t)r;
	}
	if (*made >= n || (p->codec->choose && *made > WORTH(n)))
		*made = 0;
	return 0;
}
