/* SPDX-License-Identifier: BSD-2-Clause */
/* Compressors of numcodecs that HDF5 does not have, or frames in another way. */
/*
 * gzip: Python's gzip module writes one member and reads several; so do we. libdeflate
 * checks the CRC and the length of each (RFC 1952).
 * lz4: the plain size as 4 bytes, little-endian, then one raw LZ4 block, which itself
 * says where it ends.
 * lzma: what Python's lzma writes with FORMAT_XZ (numcodecs' default) or FORMAT_ALONE.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "codec/numcodecs.h"

#include <errno.h>
#include <libdeflate.h>
#include <limits.h>
#include <lz4.h>

#include "base/bytes.h"
#if HAVE_LZMA
#include <lzma.h>
#endif

/* ---- gzip ---------------------------------------------------------------- */

static _Thread_local struct libdeflate_decompressor *decompressor;

static void decompressor_free(void)
{
	libdeflate_free_decompressor(decompressor);
	decompressor = NULL;
}

static struct libdeflate_decompressor *decompressor_get(void)
{
	if (!decompressor && codec_thread_at_exit(decompressor_free) == 0)
		decompressor = libdeflate_alloc_decompressor();
	return decompressor;
}

static int gzip_decode(const struct codec_params *p, const void *in,
		       size_t in_len, void *out, size_t out_cap,
		       size_t *out_len, struct error *err)
{
	struct libdeflate_decompressor *d = decompressor_get();
	const unsigned char *from = in;
	size_t done = 0;

	(void)p;
	if (!d)
		return error_no_memory(err, "a gzip decompressor");
	do {
		size_t used, made;
		enum libdeflate_result r = libdeflate_gzip_decompress_ex(
			d, from, in_len, (unsigned char *)out + done,
			out_cap - done, &used, &made);

		if (r == LIBDEFLATE_INSUFFICIENT_SPACE)
			return error_set(
				err, -ENOSPC,
				"gzip: the stored bytes are cut off or "
				"decode to more than %zu bytes",
				out_cap);
		if (r != LIBDEFLATE_SUCCESS)
			return error_set(
				err, -EBADMSG,
				"gzip: %zu of the stored bytes are not a whole "
				"gzip member with a correct checksum",
				in_len);
		from += used;
		in_len -= used;
		done += made;
	} while (in_len);
	*out_len = done;
	return 0;
}

const struct codec codec_gzip = {
	.name = "gzip",
	.has_checksum = true,
	.kind = CODEC_COMPRESS,
	.decode = gzip_decode,
};

/* ---- lz4 ----------------------------------------------------------------- */

static int lz4_sized_decode(const struct codec_params *p, const void *in,
			    size_t in_len, void *out, size_t out_cap,
			    size_t *out_len, struct error *err)
{
	uint32_t plain;
	int n;

	(void)p;
	if (in_len < 4 || in_len - 4 > INT_MAX)
		return error_set(
			err, -EBADMSG,
			"lz4: %zu stored bytes are not a size and a block",
			in_len);
	plain = load_le32(in);
	if (plain > out_cap)
		return error_set(
			err, -ENOSPC,
			"lz4: the header promises %u bytes, expected at most "
			"%zu",
			plain, out_cap);
	if (plain > INT_MAX)
		return error_set(err, -EBADMSG,
				 "lz4: a block cannot have %u bytes", plain);
	n = LZ4_decompress_safe((const char *)in + 4, out, (int)(in_len - 4),
				(int)plain);
	if (n < 0 || (uint32_t)n != plain)
		return error_set(err, -EBADMSG,
				 "lz4: a block of %zu bytes does not decode to "
				 "%u bytes",
				 in_len - 4, plain);
	*out_len = plain;
	return 0;
}

const struct codec codec_lz4_sized = {
	.name = "lz4",
	.kind = CODEC_COMPRESS,
	.decode = lz4_sized_decode,
};

/* ---- lzma ---------------------------------------------------------------- */

#if HAVE_LZMA
/* Bytes: enough for the dictionaries of the highest preset. */
#define LZMA_MEMORY (UINT64_C(256) << 20)

static int lzma_fail(lzma_ret r, size_t in_len, size_t out_cap,
		     struct error *err)
{
	switch (r) {
	case LZMA_MEM_ERROR:
	case LZMA_MEMLIMIT_ERROR:
		return error_no_memory(err, "an lzma decompressor");
	case LZMA_BUF_ERROR:
		return error_set(err, -EBADMSG,
				 "lzma: the stored bytes are cut off or decode "
				 "to more than %zu bytes",
				 out_cap);
	default:
		return error_set(err, -EBADMSG,
				 "lzma: %zu stored bytes are not a whole "
				 "stream with a correct checksum",
				 in_len);
	}
}

static int lzma_decode(const struct codec_params *p, const void *in,
		       size_t in_len, void *out, size_t out_cap,
		       size_t *out_len, struct error *err)
{
	lzma_stream s = LZMA_STREAM_INIT;
	lzma_ret r = p->n && p->cd[0] == 2
			     ? lzma_alone_decoder(&s, LZMA_MEMORY)
			     : lzma_stream_decoder(&s, LZMA_MEMORY,
						   LZMA_CONCATENATED);

	s.next_in = in;
	s.avail_in = in_len;
	s.next_out = out;
	s.avail_out = out_cap;
	while (r == LZMA_OK)
		r = lzma_code(&s, LZMA_FINISH);
	*out_len = out_cap - s.avail_out;
	lzma_end(&s);
	if (r != LZMA_STREAM_END)
		return lzma_fail(r, in_len, out_cap, err);
	if (s.avail_in)
		return error_set(err, -EBADMSG,
				 "lzma: %zu bytes follow the stream",
				 s.avail_in);
	return 0;
}

const struct codec codec_lzma = {
	.name = "lzma",
	.kind = CODEC_COMPRESS,
	.decode = lzma_decode,
};
#endif
