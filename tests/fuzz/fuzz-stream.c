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
#include <errno.h>
#include <lz4frame.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>
#if HAVE_LZMA
#include <lzma.h>
#endif
#if HAVE_BZIP2
#include <bzlib.h>
#endif

#include "archive/stream_private.h"
#include "base/log.h"
#include "fuzz.h"

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

static void check_window(struct stream *s, uint64_t i, bool known)
{
	struct chunk_set *set = stream_set(s);
	_Atomic uint64_t gauge = 0;
	struct error err = {0};
	struct buf *b = NULL;
	uint64_t n;
	const struct stream_point *p = stream_points(s, &n);
	int r;

	FUZZ_CHECK(i < n);
	r = set->ops->fetch(set, i, &gauge, &b, &err);
	if (r < 0)
		FUZZ_CHECK(r == err.code && *err.text);
	if (r < 0 && !known)
		FUZZ_CHECK(r == -EBADMSG || r == -EIO || r == -ENOTSUP ||
			   r == -ENOMEM);
	if (known && !(p[i].flags & POINT_BAD))
		FUZZ_CHECK(r == 0 &&
			   !memcmp(b->data, whole + p[i].out, p[i].size));
	buf_unref(b);
	FUZZ_CHECK(gauge == 0);
}

/* What a pass ends with; *had bytes are in `to`. */
static int pass(const struct stream_format *f, const struct backing *b,
		unsigned threads, uint32_t window, unsigned char *to,
		size_t *had, struct stream **s)
{
	struct stream_scan *scan;
	struct error err = {0};
	ssize_t got;

	*s = NULL;
	*had = 0;
	FUZZ_CHECK(stream_scan_new(&scan, f, b, threads, &err) == 0);
	scan_limit(scan, window, 4 * window, 64 << 10);
	do {
		size_t n = 1 + (*had * 31 + window) % 50000;

		n = n < MOST - *had ? n : MOST - *had;
		got = input_read(stream_scan_input(scan), to + *had, n, &err);
		*had += got > 0 ? (size_t)got : 0;
	} while (got > 0);
	if (*had == MOST) {
		stream_scan_free(scan);
		return 1;
	}
	err = (struct error){0};
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
			check_window(s, i * 7 % n, true);
		for (uint64_t i = 0; i < n && i < 50; i++)
			check_window(s, i, true);
	}
	if (r == 0) {
		int64_t says = format->says(data, (size_t)b->size);

		FUZZ_CHECK(says == -2 || says == (int64_t)had);
		FUZZ_CHECK(says == -2 || !memcmp(whole, other, had));
	}
	stream_free(s);
}

static void check_index(const struct format *format, const struct backing *b,
			struct fuzz_input *in, uint8_t n, const uint8_t *state,
			size_t state_size)
{
	struct stream_point points[16] = {{0}};
	struct error err = {0};
	struct blob *states;
	struct stream *s;
	uint64_t out = 0;

	for (unsigned i = 0; i < n; i++) {
		struct stream_point *p = &points[i];

		p->out = out;
		p->in = fuzz_u16(in);
		p->state = fuzz_u8(in);
		p->state_size = fuzz_u16(in);
		p->size = 1 + fuzz_u32(in) % 200000;
		p->bits = fuzz_u8(in);
		p->flags = fuzz_u8(in) & ~POINT_BAD;
		out += p->size;
	}
	FUZZ_CHECK(blob_of_memory(&states, state, state_size, &err) == 0);
	if (stream_of_points(&s, stream_find(format->name), b, points, n,
			     states, &err) < 0)
		return;
	for (unsigned i = 0; i < n; i++)
		check_window(s, i, false);
	stream_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	const struct format *format = &formats[fuzz_u8(&in) % 4];
	uint32_t window = 256u << fuzz_u8(&in) % 9;
	uint8_t n = fuzz_u8(&in) % 16, state = fuzz_u8(&in);
	size_t head = n * 11u + state;
	struct error err = {0};
	struct handles *h;
	struct backing b;
	char path[64];
	int fd;

	if (in.size < head || !stream_find(format->name))
		return 0;
	log_set_level(LOG_LEVEL_ERROR);
	fd = memfd_create("stream", MFD_CLOEXEC);
	FUZZ_CHECK(fd >= 0);
	FUZZ_CHECK(write(fd, in.data + head, in.size - head) ==
		   (ssize_t)(in.size - head));
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	FUZZ_CHECK(handles_new(&h, 4, 1, &err) == 0);
	FUZZ_CHECK(backing_file(&b, h, NULL, handles_add(h, path), 0, &err) ==
		   0);
	check_file(format, &b, in.data + head, window);
	if (n)
		check_index(format, &b, &(struct fuzz_input){in.data, n * 11u},
			    n, in.data + n * 11u, state);
	handles_free(h);
	close(fd);
	return 0;
}
