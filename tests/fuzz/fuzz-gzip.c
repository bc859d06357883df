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
#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "archive/stream_private.h"
#include "base/log.h"
#include "fuzz.h"

#define MOST ((size_t)6 << 20)

static unsigned char whole[MOST + 1], other[MOST + 1];

static void check_error(int r, const struct error *err)
{
	FUZZ_CHECK(r == err->code && *err->text);
	FUZZ_CHECK(r == -EBADMSG || r == -EIO || r == -ENOTSUP);
}

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
		check_error(r, &err);
	FUZZ_CHECK(!known || r == 0);
	if (known)
		FUZZ_CHECK(!memcmp(b->data, whole + p[i].out, p[i].size));
	buf_unref(b);
	FUZZ_CHECK(gauge == 0);
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
		check_window(again, (i + start) % n, true);
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
	size_t had = 0, have;
	ssize_t got;
	int r;

	FUZZ_CHECK(stream_scan_new(&scan, &stream_gzip, b, 1, &err) == 0);
	scan_limit(scan, 33 << 10, 64 << 10, 4 << 10);
	do {
		size_t n = 1 + (seed ^ had * 31) % 100000;

		n = n < MOST - had ? n : MOST - had;
		got = input_read(stream_scan_input(scan), whole + had, n, &err);
		had += got > 0 ? (size_t)got : 0;
	} while (got > 0);
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

static void check_index(const struct backing *b, struct fuzz_input *in,
			uint8_t n, const uint8_t *state, size_t state_size)
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
		p->crc = (uint32_t)crc32(0, NULL, 0);
		out += p->size;
	}
	FUZZ_CHECK(blob_of_memory(&states, state, state_size, &err) == 0);
	if (stream_of_points(&s, &stream_gzip, b, points, n, states, &err) < 0)
		return;
	for (unsigned i = 0; i < n; i++)
		check_window(s, i, false);
	stream_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	uint8_t n = fuzz_u8(&in) % 16, state = fuzz_u8(&in);
	size_t head = n * 11u + state;
	struct error err = {0};
	struct handles *h;
	struct backing b;
	char path[64];
	int fd;

	if (in.size < head)
		return 0;
	log_set_level(LOG_LEVEL_ERROR);
	fd = memfd_create("gzip", MFD_CLOEXEC);
	FUZZ_CHECK(fd >= 0);
	FUZZ_CHECK(write(fd, in.data + head, in.size - head) ==
		   (ssize_t)(in.size - head));
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	FUZZ_CHECK(handles_new(&h, 4, 1, &err) == 0);
	FUZZ_CHECK(backing_file(&b, h, NULL, handles_add(h, path), 0, &err) ==
		   0);
	check_file(&b, in.data + head, (uint32_t)size);
	in.size -= head;
	if (n)
		check_index(&b, &(struct fuzz_input){in.data, n * 11u}, n,
			    in.data + n * 11u, state);
	handles_free(h);
	close(fd);
	return 0;
}
