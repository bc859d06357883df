/* SPDX-License-Identifier: BSD-2-Clause */
/* Filter 1, deflate: one zlib stream, by libdeflate. */
/*
 * HDF5 calls the filter gzip, but what is stored is a zlib stream (RFC 1950) with an
 * Adler-32 of the plain bytes at its end, which libdeflate checks.  Bytes after the
 * stream are ignored, as HDF5's own inflate does: some writers pad.  A stream may hold
 * fewer bytes than the caller has room for; only the pipeline can tell whether that is
 * right.
 *
 * libdeflate leaves its fast loop when fewer than about 32 bytes of input are left, and
 * copies matches byte by byte from there.  A shuffled chunk often ends in a plane of
 * zeros, and 64 KiB of them are compressed to just such a few bytes: half of all time was
 * spent there.  So small streams are copied to a place where more bytes follow.  Only a
 * success that did not use the following bytes counts; any other result is discarded, and
 * the stream is decoded again where it is.
 */
#include "codec/codec.h"

#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#define PADDED_MAX ((size_t)64 << 10)
#define PADDING 64u

struct state {
	struct libdeflate_decompressor *decompressor;
	unsigned char padded[PADDED_MAX + PADDING];
};
static _Thread_local struct state *state;

static void state_free(void)
{
	if (state)
		libdeflate_free_decompressor(state->decompressor);
	free(state);
	state = NULL;
}

static struct state *state_get(void)
{
	struct state *s;

	if (state)
		return state;
	if (codec_thread_at_exit(state_free) < 0)
		return NULL;
	s = malloc(sizeof *s);
	if (!s)
		return NULL;
	s->decompressor = libdeflate_alloc_decompressor();
	if (!s->decompressor) {
		free(s);
		return NULL;
	}
	state = s;
	return s;
}

/* Return true if the stream was good and ended within its own in_len bytes. */
static bool decode_padded(struct state *s, const void *in, size_t in_len,
			  void *out, size_t out_cap, size_t *out_len)
{
	size_t used;

	if (!in_len || in_len > PADDED_MAX)
		return false;
	memcpy(s->padded, in, in_len);
	memset(s->padded + in_len, 0, PADDING);
	return libdeflate_zlib_decompress_ex(
		       s->decompressor, s->padded, in_len + PADDING, out,
		       out_cap, &used, out_len) == LIBDEFLATE_SUCCESS &&
	       used <= in_len;
}

static int deflate_decode(const struct codec_params *p, const void *in,
			  size_t in_len, void *out, size_t out_cap,
			  size_t *out_len, struct error *err)
{
	struct state *s = state_get();
	enum libdeflate_result r;
	size_t used, made;

	(void)p;
	if (!s)
		return error_no_memory(err, "a deflate decompressor");
	if (decode_padded(s, in, in_len, out, out_cap, &made)) {
		*out_len = made;
		return 0;
	}
	r = libdeflate_zlib_decompress_ex(s->decompressor, in, in_len, out,
					  out_cap, &used, &made);
	/* libdeflate reads zeros behind the end of a stream that is cut off, which may
	 * give this result, too. */
	if (r == LIBDEFLATE_INSUFFICIENT_SPACE)
		return error_set(err, -ENOSPC,
				 "deflate: %zu stored bytes are cut off or "
				 "decode to more than %zu bytes",
				 in_len, out_cap);
	if (r != LIBDEFLATE_SUCCESS)
		return error_set(err, -EBADMSG,
				 "deflate: %zu stored bytes are not a whole "
				 "zlib stream with a correct checksum",
				 in_len);
	*out_len = made;
	return 0;
}

/* ---- encoding ------------------------------------------------------------ */

#define LEVEL_DEFAULT 6
#define LEVEL_MAX 12

static _Thread_local struct libdeflate_compressor *compressor;
static _Thread_local int compressor_level;

static void deflate_compressor_free(void)
{
	libdeflate_free_compressor(compressor);
	compressor = NULL;
}

static struct libdeflate_compressor *deflate_compressor_get(int level)
{
	if (compressor && compressor_level == level)
		return compressor;
	if (codec_thread_at_exit(deflate_compressor_free) < 0)
		return NULL;
	deflate_compressor_free();
	compressor = libdeflate_alloc_compressor(level);
	compressor_level = level;
	return compressor;
}

/* The first client value is zlib's level, 0 to 9; libdeflate's levels are about the
 * same. */
static int deflate_encode(const struct codec_params *p, const void *in,
			  size_t in_len, void *out, size_t out_cap,
			  size_t *out_len, struct error *err)
{
	uint32_t level = p->n ? p->cd[0] : LEVEL_DEFAULT;
	struct libdeflate_compressor *c = deflate_compressor_get(
		level < LEVEL_MAX ? (int)level : LEVEL_MAX);
	size_t n;

	if (!c)
		return error_no_memory(err, "a deflate compressor");
	n = libdeflate_zlib_compress(c, in, in_len, out, out_cap);
	*out_len = n;
	return n ? 0 : 1;
}

/* The memory that libdeflate 1.14 takes for a compressor, rounded up. */
static size_t deflate_encode_memory(const struct codec_params *p, size_t size)
{
	(void)size;
	return p->n && p->cd[0] > 9 ? (size_t)10 << 20 : (size_t)2 << 20;
}

const struct codec codec_deflate = {
	.name = "deflate",
	.has_checksum = true,
	.id = 1,
	.kind = CODEC_COMPRESS,
	.decode = deflate_decode,
	.encode = deflate_encode,
	.encode_memory = deflate_encode_memory,
};
