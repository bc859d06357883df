/* SPDX-License-Identifier: BSD-2-Clause */
/* gzip streams: zlib's opinion of a file, and windows that are like the whole. */
/*
 * The input is a number of seek points, their fields and a few bytes of state, and
 * then a file.  The file is decoded from its beginning: what is called intact must
 * be so for zlib, too, with the same bytes, and what zlib reads to its end must be
 * called intact.  Each window then has to have the bytes of the whole, also where a
 * checksum of the file is wrong.  Last, the points of the input are taken for an
 * index of the file, and may lead anywhere but out of bounds.
 */
#include <zlib.h>

#include "fuzz_stream.h"

#define MOST ((size_t)6 << 20)

static unsigned char whole[MOST + 1], other[MOST + 1];

/* Does zlib read it from the first to the last byte, with or without comparing
 * checksums?  *have is what it decodes to, so far. */
static bool zlib_reads(const uint8_t *data, size_t size, bool validate,
		       size_t *have)
{
	z_stream z = {0};
	int r = Z_OK;

	FUZZ_CHECK(inflateInit2(&z, 31) == Z_OK);
	FUZZ_CHECK(inflateValidate(&z, validate) == Z_OK);
	z.next_in = (unsigned char *)data;
	z.avail_in = (unsigned)size;
	*have = 0;
	do {
		z.next_out = other + *have;
		z.avail_out = (unsigned)(sizeof other - *have);
		r = inflate(&z, Z_NO_FLUSH);
		*have = sizeof other - z.avail_out;
		if (r == Z_STREAM_END && z.avail_in) {
			while (z.avail_in && !*z.next_in)
				z.next_in++, z.avail_in--;
			if (z.avail_in)
				r = inflateReset(&z);
		}
	} while (r == Z_OK && *have < sizeof other);
	inflateEnd(&z);
	return r == Z_STREAM_END;
}

/* As an index would have it, but every window is believed. */
static void check_all_windows(struct stream *s, uint32_t start)
{
	struct stream_point *points;
	struct error err = {0};
	struct stream *again;
	struct blob *states;
	uint64_t n, size = blob_size(stream_states(s));
	const struct stream_point *p = stream_points(s, &n);
	unsigned char *bytes = malloc(size + 1);

	points = malloc((n + 1) * sizeof *points);
	FUZZ_CHECK(bytes && points);
	FUZZ_CHECK(blob_read(stream_states(s), 0, bytes, size, &err) == 0);
	FUZZ_CHECK(blob_of_memory(&states, bytes, size, &err) == 0);
	for (uint64_t i = 0; i < n; i++) {
		points[i] = p[i];
		points[i].flags &= (uint8_t)~POINT_BAD;
	}
	FUZZ_CHECK(stream_of_points(&again, stream_format_of(s), stream_from(s),
				    points, n, states, &err) == 0);
	for (uint64_t i = 0; i < n; i++)
		fuzz_window(again, (i + start) % n, whole, false);
	stream_free(again);
	free(points);
	free(bytes);
}

static void check_file(const struct backing *b, const uint8_t *data,
		       uint32_t seed)
{
	struct stream_scan *scan;
	struct error err = {0};
	struct stream *s;
	bool ends, right;
	size_t had, have;
	int r;

	FUZZ_CHECK(stream_scan_new(&scan, &stream_gzip, b, 1, &err) == 0);
	scan_limit(scan, 33 << 10, 64 << 10, 4 << 10);
	had = fuzz_read(scan, whole, MOST, seed, 100000, &err);
	if (had == MOST) {
		stream_scan_free(scan);
		return;
	}
	r = stream_scan_finish(scan, &s, &err);
	FUZZ_CHECK(s && stream_size(s) == had);
	FUZZ_CHECK(r == 0 || (r == -EBADMSG && *err.text));
	ends = zlib_reads(data, b->size, false, &have);
	FUZZ_CHECK(!ends || !strstr(err.text, "making sense"));
	right = zlib_reads(data, b->size, true, &have);
	FUZZ_CHECK(!right || r == 0);
	FUZZ_CHECK(r < 0 || (had == have && !memcmp(whole, other, had)));
	check_all_windows(s, seed);
	stream_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	uint8_t n = fuzz_u8(&in) % FUZZ_POINTS, state = fuzz_u8(&in);
	size_t head = n * FUZZ_POINT + state;
	struct fuzz_file f;

	if (in.size < head)
		return 0;
	fuzz_file_open(&f, in.data + head, in.size - head);
	check_file(&f.backing, in.data + head, (uint32_t)size);
	if (n)
		fuzz_index(&stream_gzip, &f.backing, &in, n,
			   in.data + n * FUZZ_POINT, state, false);
	fuzz_file_close(&f);
	return 0;
}
