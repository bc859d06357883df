/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams of bzip2, xz, zstd and lz4: the library's opinion, and windows. */
/*
 * The input is a format, a size of windows, a number of seek points with a few bytes
 * of state, and then a file.  The file is decoded on one thread and on three: both
 * must say the same.  What is called intact must be so for the library that wrote the
 * format, with the same bytes.  Windows that are not bad must have the bytes of the
 * whole.  Last, the points of the input are taken for an index of the file, and may
 * lead anywhere but out of bounds.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include <lz4frame.h>
#include <zstd.h>
#if HAVE_LZMA
#include <lzma.h>
#endif
#if HAVE_BZIP2
#include <bzlib.h>
#endif

#include "fuzz_stream.h"

#define MOST ((size_t)4 << 20)

static unsigned char whole[MOST + 1], other[MOST + 1];

/* ---- what libraries say: decoded bytes in `other`, or -1, -2: who knows -------- */

static int64_t zstd_says(const uint8_t *data, size_t size)
{
	ZSTD_DCtx *d = ZSTD_createDCtx();
	ZSTD_inBuffer in = {data, size, 0};
	ZSTD_outBuffer out = {other, MOST, 0};
	size_t r = 0;

	while (in.pos < size) {
		r = ZSTD_decompressStream(d, &out, &in);
		if (ZSTD_isError(r) || out.pos == MOST)
			break;
	}
	ZSTD_freeDCtx(d);
	if (out.pos == MOST ||
	    (ZSTD_isError(r) && strstr(ZSTD_getErrorName(r), "memory")))
		return -2;
	return r ? -1 : (int64_t)out.pos;
}

static int64_t lz4_says(const uint8_t *data, size_t size)
{
	LZ4F_dctx *d;
	size_t in = 0, out = 0, r = 0;

	FUZZ_CHECK(!LZ4F_isError(
		LZ4F_createDecompressionContext(&d, LZ4F_VERSION)));
	while (in < size && out < MOST) {
		size_t n = size - in, room = MOST - out;

		/* It knows nothing of legacy frames. */
		if (!r && n >= 4 && !memcmp(data + in, "\x02\x21\x4c\x18", 4))
			break;
		r = LZ4F_decompress(d, other + out, &room, data + in, &n, NULL);
		if (LZ4F_isError(r))
			break;
		in += n;
		out += room;
	}
	LZ4F_freeDecompressionContext(d);
	if (in < size && !LZ4F_isError(r))
		return -2;
	return r ? -1 : (int64_t)out;
}

static int64_t xz_says(const uint8_t *data, size_t size)
{
#if HAVE_LZMA
	lzma_stream z = LZMA_STREAM_INIT;
	lzma_ret r =
		lzma_stream_decoder(&z, UINT64_C(1) << 28, LZMA_CONCATENATED);

	z.next_in = data;
	z.avail_in = size;
	z.next_out = other;
	z.avail_out = MOST;
	while (r == LZMA_OK)
		r = lzma_code(&z, LZMA_FINISH);
	lzma_end(&z);
	if (!z.avail_out)
		return -2;
	return r == LZMA_STREAM_END ? (int64_t)z.total_out : -1;
#else
	(void)data;
	(void)size;
	return -2;
#endif
}

static int64_t bzip2_says(const uint8_t *data, size_t size)
{
#if HAVE_BZIP2
	size_t in = 0, out = 0;
	unsigned streams = 0;
	int r = BZ_OK;

	while (in < size) {
		bz_stream z = {.bzalloc = NULL};

		FUZZ_CHECK(BZ2_bzDecompressInit(&z, 0, 0) == BZ_OK);
		z.next_in = (char *)data + in;
		z.avail_in = (unsigned)(size - in);
		z.next_out = (char *)other + out;
		z.avail_out = (unsigned)(MOST - out);
		r = BZ2_bzDecompress(&z);
		in = size - z.avail_in;
		out = MOST - z.avail_out;
		BZ2_bzDecompressEnd(&z);
		if (r == BZ_DATA_ERROR_MAGIC && streams)
			r = BZ_STREAM_END; /* garbage, as bzip2 says, or damage */
		else if (r == BZ_STREAM_END && ++streams)
			continue;
		break;
	}
	if (out == MOST)
		return -2;
	return r == BZ_STREAM_END ? (int64_t)out : -1;
#else
	(void)data;
	(void)size;
	return -2;
#endif
}

struct format {
	const char *name;
	int64_t (*says)(const uint8_t *data, size_t size);
};
static const struct format formats[] = {{"bzip2", bzip2_says},
					{"xz", xz_says},
					{"zstd", zstd_says},
					{"lz4", lz4_says}};

/* ---- what must hold ------------------------------------------------------ */

/* What a pass ends with; *had bytes are in `to`. */
static int pass(const struct stream_format *f, const struct backing *b,
		unsigned threads, uint32_t window, unsigned char *to,
		size_t *had, struct stream **s)
{
	struct stream_scan *scan;
	struct error err = {0};

	*s = NULL;
	FUZZ_CHECK(stream_scan_new(&scan, f, b, threads, &err) == 0);
	scan_limit(scan, window, 4 * window, 64 << 10);
	*had = fuzz_read(scan, to, MOST, window, 50000, &err);
	if (*had == MOST) {
		stream_scan_free(scan);
		return 1;
	}
	return stream_scan_finish(scan, s, &err);
}

static void check_file(const struct format *format, const struct backing *b,
		       const uint8_t *data, uint32_t window)
{
	const struct stream_format *f = stream_find(format->name);
	struct stream *s, *again;
	size_t had, have;
	uint64_t n;
	int r, r3;

	r3 = pass(f, b, 3, window, other, &have, &again);
	stream_free(again);
	r = pass(f, b, 1, window, whole, &had, &s);
	FUZZ_CHECK((r == 1) == (r3 == 1));
	FUZZ_CHECK(r == 1 || (r == r3 && had == have));
	FUZZ_CHECK(!memcmp(whole, other, had));
	if (s) {
		stream_points(s, &n);
		FUZZ_CHECK(stream_size(s) == had);
		for (uint64_t i = 0; i < n && i < 50; i++)
			fuzz_window(s, i * 7 % n, whole, true);
		for (uint64_t i = 0; i < n && i < 50; i++)
			fuzz_window(s, i, whole, true);
	}
	if (r == 0) {
		int64_t says = format->says(data, (size_t)b->size);

		FUZZ_CHECK(says == -2 || says == (int64_t)had);
		FUZZ_CHECK(says == -2 || !memcmp(whole, other, had));
	}
	stream_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	const struct format *format = &formats[fuzz_u8(&in) % 4];
	uint32_t window = 256u << fuzz_u8(&in) % 9;
	uint8_t n = fuzz_u8(&in) % FUZZ_POINTS, state = fuzz_u8(&in);
	size_t head = n * FUZZ_POINT + state;
	struct fuzz_file f;

	if (in.size < head || !stream_find(format->name))
		return 0;
	fuzz_file_open(&f, in.data + head, in.size - head);
	check_file(format, &f.backing, in.data + head, window);
	if (n)
		fuzz_index(stream_find(format->name), &f.backing, &in, n,
			   in.data + n * FUZZ_POINT, state, true);
	fuzz_file_close(&f);
	return 0;
}
