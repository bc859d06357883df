/* SPDX-License-Identifier: BSD-2-Clause */
/* gzip streams: every window alone, against zlib; damage, cut-off files. */
#include <libdeflate.h>
#include <zlib.h>

#include "base/log.h"
#include "stream_test.h"

#define SIZE ((size_t)1200000)
/* Bytes of what is only one of many ways to write them. */
#define SOME (test_full() ? SIZE : SIZE / 4)

static const struct scan_sizes small = {32 << 10, 256 << 10, 1 << 20};
static unsigned char *data; /* SIZE bytes of the kind at hand */

enum kind { ZEROS, NOISE, TEXT, NUMBERS, MIXED, KINDS };

static void make(enum kind kind, unsigned char *to, size_t n)
{
	static const char *words[] = {"tensor ", "archive ",  "window ",
				      "a ",      "decoder\n", "of the ",
				      "42, ",    "state "};

	for (size_t i = 0; i < n;) {
		uint64_t v = test_random();
		size_t len = 1;

		switch (kind) {
		case ZEROS:
			memset(to, 0, n);
			return;
		case NOISE:
			to[i] = (unsigned char)v;
			break;
		case TEXT:
			len = strlen(words[v % 8]);
			len = len < n - i ? len : n - i;
			memcpy(to + i, words[v % 8], len);
			break;
		case NUMBERS:
			to[i] = (unsigned char)(i % 2 ? 3
						      : 100 + v % 5 *
									(v >> 8 &
									 7));
			break;
		default:
			len = 1 + (v >> 8) % 60000;
			len = len < n - i ? len : n - i;
			if (v % 8 == 0 && i > len)
				memmove(to + i, to + i - len, len);
			else
				make(v % (KINDS - 1), to + i, len);
		}
		i += len;
	}
}

struct bytes {
	unsigned char *at;
	size_t n, room;
};

static void put(struct bytes *b, const void *p, size_t n)
{
	if (n > b->room - b->n) {
		b->room = 2 * (b->room + n);
		b->at = realloc(b->at, b->room);
		CHECK(b->at);
	}
	if (n)
		memcpy(b->at + b->n, p, n);
	b->n += n;
}

/* How zlib is to write. */
struct way {
	int level, strategy, mem, bits;
	size_t flush; /* each so many bytes; 0: never */
	int how;
};

static void put_member(struct bytes *b, const unsigned char *p, size_t n,
		       const struct way *w, gz_header *head)
{
	static unsigned char out[1 << 16];
	z_stream z = {0};
	size_t done = 0;
	int r;

	CHECK_EQ_I(deflateInit2(&z, w->level, Z_DEFLATED, 16 + w->bits, w->mem,
				w->strategy),
		   Z_OK);
	if (head)
		CHECK_EQ_I(deflateSetHeader(&z, head), Z_OK);
	do {
		size_t take =
			w->flush && w->flush < n - done ? w->flush : n - done;

		z.next_in = (unsigned char *)p + done;
		z.avail_in = (unsigned)take;
		done += take;
		do {
			z.next_out = out;
			z.avail_out = sizeof out;
			r = deflate(&z, done == n ? Z_FINISH : w->how);
			put(b, out, sizeof out - z.avail_out);
		} while (z.avail_out == 0);
	} while (done < n);
	CHECK_EQ_I(r, Z_STREAM_END);
	deflateEnd(&z);
}

static const struct way usual = {6, Z_DEFAULT_STRATEGY, 8, 15, 0, 0};

static void check_way(const struct way *w, size_t n)
{
	struct bytes b = {0};

	put_member(&b, data, n, w, NULL);
	check_stream(&stream_gzip, b.at, b.n, data, n, &small);
	free(b.at);
}

/* ---- what is written ----------------------------------------------------- */

TEST(each_level)
{
	for (enum kind k = 0; k < KINDS; k++) {
		make(k, data, SIZE);
		for (int level = 0; level <= 9; level += 3) {
			struct way w = usual;

			w.level = level;
			check_way(&w, SOME);
		}
	}
}

TEST(each_strategy)
{
	static const int strategies[] = {Z_FILTERED, Z_HUFFMAN_ONLY, Z_RLE,
					 Z_FIXED};

	make(MIXED, data, SIZE);
	for (unsigned i = 0; i < 4; i++) {
		struct way w = usual;

		w.strategy = strategies[i];
		check_way(&w, SOME);
		w.mem = 1;
		w.bits = 9;
		check_way(&w, SIZE / 4);
	}
}

TEST(flushes)
{
	static const int hows[] = {Z_SYNC_FLUSH, Z_FULL_FLUSH, Z_BLOCK,
				   Z_PARTIAL_FLUSH};

	make(MIXED, data, SIZE);
	for (unsigned i = 0; i < 4; i++) {
		struct way w = usual;

		w.how = hows[i];
		w.flush = 131072;
		check_way(&w, SOME);
		w.flush = 1000;
		check_way(&w, SIZE / 4);
	}
}

/* libdeflate makes other blocks than zlib does. */
TEST(another_encoder)
{
	size_t room = SIZE * 2;
	unsigned char *out = malloc(room);

	CHECK(out);
	for (enum kind k = 0; k < KINDS; k++)
		for (int level = 1; level <= 12; level += 11) {
			struct libdeflate_compressor *c =
				libdeflate_alloc_compressor(level);
			size_t n;

			make(k, data, SIZE);
			CHECK(c);
			n = libdeflate_gzip_compress(c, data, SOME, out, room);
			CHECK(n);
			check_stream(&stream_gzip, out, n, data, SOME, &small);
			libdeflate_free_compressor(c);
		}
	free(out);
}

TEST(small_ones)
{
	make(TEXT, data, SIZE);
	for (size_t n = 0; n < 40; n++)
		check_way(&usual, n);
	for (size_t n = 32700; n < 33100; n += 37)
		check_way(&usual, n);
}

/* One block for everything: windows begin in the middle of it. */
TEST(one_long_block)
{
	size_t n = 600000;
	struct bytes b = {0};
	struct way w = {1, Z_HUFFMAN_ONLY, 9, 15, 0, 0};
	struct place place;
	struct error err = {0};
	struct stream *s;
	uint64_t had, windows;
	const struct stream_point *p;

	make(ZEROS, data, n);
	for (size_t i = 0; i < n; i++)
		data[i] = i % 97 == 0;
	w.strategy = Z_DEFAULT_STRATEGY;
	w.level = 9;
	put_member(&b, data, n, &w, NULL);
	CHECK(b.n < 5000); /* few codes, so few blocks */
	place_new(&place, b.at, b.n);
	CHECK_OK(scan_compare(&s, &stream_gzip, &place.backing, &small, data, n,
			      &had, &err));
	p = stream_points(s, &windows);
	CHECK(windows > 10);
	for (uint64_t i = 1; i < windows; i++)
		CHECK(p[i].size <= small.most + (256 << 10));
	check_windows(s, data);
	stream_free(s);
	place_free(&place);
	free(b.at);
}

/* ---- members ------------------------------------------------------------- */

TEST(header_fields)
{
	struct bytes b = {0};
	gz_header h = {0};
	unsigned char extra[700];

	make(TEXT, data, SIZE);
	make(NOISE, extra, sizeof extra);
	for (unsigned i = 0; i < 16; i++) {
		h.text = 1;
		h.time = 1234567;
		h.os = 3;
		h.extra = i & 1 ? extra : NULL;
		h.extra_len = sizeof extra;
		h.name = i & 2 ? (unsigned char *)"a name" : NULL;
		h.comment = i & 4 ? (unsigned char *)"a comment" : NULL;
		h.hcrc = i >> 3;
		put_member(&b, data + i * 50000, 50000, &usual, &h);
	}
	check_stream(&stream_gzip, b.at, b.n, data, (size_t)16 * 50000, &small);
	free(b.at);
}

/* Members of all sizes, empty ones among them; zeros between and behind. */
TEST(many_members)
{
	for (unsigned padded = 0; padded < 2; padded++) {
		struct bytes b = {0};
		size_t at = 0;

		make(MIXED, data, SIZE);
		while (at < SIZE) {
			static const unsigned char zeros[512];
			uint64_t v = test_random();
			size_t n = v % 5 == 0   ? 0
				   : v % 5 == 1 ? v % 200000
						: v % 70000;

			n = n < SIZE - at ? n : SIZE - at;
			put_member(&b, data + at, n, &usual, NULL);
			put(&b, zeros, padded ? v >> 8 & 511 : 0);
			at += n;
		}
		check_stream(&stream_gzip, b.at, b.n, data, SIZE, &small);
		free(b.at);
	}
}

/* Windows between members need no state, and are joined. */
TEST(like_bgzip)
{
	struct bytes b = {0};
	struct place place;
	struct error err = {0};
	struct stream *s;
	uint64_t had, n;
	const struct stream_point *p;

	make(TEXT, data, SIZE);
	for (size_t at = 0; at < SIZE; at += 1000)
		put_member(&b, data + at, 1000, &usual, NULL);
	place_new(&place, b.at, b.n);
	CHECK_OK(scan_compare(&s, &stream_gzip, &place.backing, NULL, data,
			      SIZE, &had, &err));
	p = stream_points(s, &n);
	CHECK_EQ_U(n, 2);
	CHECK_EQ_U(p[0].size, 1048000);
	CHECK_EQ_U(p[1].flags, POINT_START);
	CHECK_EQ_U(blob_size(stream_states(s)), 0);
	CHECK_EQ_U(stream_worst(s), 1048000);
	check_windows(s, data);
	stream_free(s);
	place_free(&place);
	free(b.at);
}

TEST(garbage_behind)
{
	struct error err = {0};
	struct bytes b = {0};
	struct place place;
	struct stream *s;
	uint64_t had;
	size_t whole;

	make(TEXT, data, SIZE);
	put_member(&b, data, 5000, &usual, NULL);
	whole = b.n;
	put(&b, "and now for something else", 26);
	place_new(&place, b.at, b.n);
	CHECK_OK(scan_compare(&s, &stream_gzip, &place.backing, &small, data,
			      5000, &had, &err));
	CHECK_EQ_U(stream_size(s), 5000);
	check_windows(s, data);
	stream_free(s);
	place_free(&place);
	/* This might have been a member. */
	memcpy(b.at + whole, "\x1f\x8b\x09\x00", 4);
	place_new(&place, b.at, b.n);
	CHECK_EQ_I(scan_compare(&s, &stream_gzip, &place.backing, &small, data,
				5000, &had, &err),
		   -EBADMSG);
	CHECK_EQ_U(stream_size(s), 5000);
	check_windows(s, data);
	stream_free(s);
	place_free(&place);
	free(b.at);
}

TEST(no_gzip)
{
	static const char *heads[] = {"",       "x",
				      "\x1f",   "\x1f\x8b",
				      "PK\3\4", "\x1f\x8b\x08\xff and so on"};
	struct error err = {0};
	struct place place;
	struct stream *s;
	uint64_t had;

	for (unsigned i = 0; i < 6; i++) {
		place_new(&place, heads[i], strlen(heads[i]));
		CHECK_EQ_I(scan_compare(&s, &stream_gzip, &place.backing, NULL,
					data, 0, &had, &err),
			   -EBADMSG);
		CHECK(s);
		CHECK_EQ_U(stream_size(s), 0);
		stream_free(s);
		place_free(&place);
	}
}

/* ---- damage -------------------------------------------------------------- */

/* Decode window `i`, whatever comes of it. */
static void check_no_harm(struct stream *s, uint64_t i)
{
	struct chunk_set *set = stream_set(s);
	_Atomic uint64_t gauge = 0;
	struct error err = {0};
	struct buf *b;

	if (set->ops->fetch(set, i, &gauge, &b, &err) == 0)
		buf_unref(b);
	CHECK_EQ_U(gauge, 0);
}

/* What is decoded of a damaged file is `data`, or an error.  Not where the damage makes
 * the file look as if it were cut off (-EIO): nothing says whether bytes of a member
 * without its checksum are right; cut_at_every_byte has those that are. */
static void check_damaged(const unsigned char *stored, size_t n, size_t size)
{
	struct error err = {0}, bad = {0};
	struct place place;
	struct stream *s;
	uint64_t had, windows, good = 0;
	const struct stream_point *p;
	int r;

	place_new(&place, stored, n);
	r = scan_compare(&s, &stream_gzip, &place.backing, &small, data,
			 UINT64_MAX, &had, &err);
	CHECK(r == 0 || r == -EBADMSG);
	CHECK(r < 0 || err.code == 0);
	CHECK(s);
	check_row(s, had);
	p = stream_points(s, &windows);
	for (uint64_t i = 0; i < windows; i++) {
		if (err.code == -EIO)
			check_no_harm(s, i);
		else if (p[i].out + p[i].size > size)
			CHECK(p[i].flags & POINT_BAD);
		else
			good += check_window(s, i, data, &bad) == 0;
	}
	if (r == 0)
		CHECK(had == size && good == windows);
	stream_free(s);
	place_free(&place);
}

TEST(every_byte_flipped)
{
	struct bytes b = {0};

	make(MIXED, data, SIZE);
	for (unsigned i = 0; i < 3; i++)
		put_member(&b, data + (size_t)i * 400, 400, &usual, NULL);
	for (size_t i = 0; i < b.n; i++) {
		unsigned char was = b.at[i];

		for (unsigned k = 0; k < 3; k++) {
			b.at[i] = was ^ (unsigned char)(1 << (i + 3 * k) % 8);
			check_damaged(b.at, b.n, 1200);
		}
		b.at[i] = was;
	}
	check_damaged(b.at, b.n, 1200);
	free(b.at);
}

TEST(flips_in_large_ones)
{
	struct bytes b = {0};

	make(MIXED, data, SIZE);
	for (unsigned i = 0; i < 3; i++)
		put_member(&b, data + i * (SIZE / 3), SIZE / 3, &usual, NULL);
	for (unsigned i = 0; i < test_rounds(60); i++) {
		size_t at = test_random() % b.n;

		b.at[at] ^= 0x10;
		check_damaged(b.at, b.n, SIZE);
		b.at[at] ^= 0x10;
	}
	free(b.at);
}

/* Intact members around one whose checksum is wrong can be read. */
TEST(one_bad_member)
{
	struct error err = {0};
	struct bytes b = {0};
	struct place place;
	struct stream *s;
	uint64_t had, n, bad = 0;
	const struct stream_point *p;

	make(MIXED, data, SIZE);
	for (unsigned i = 0; i < 8; i++) {
		put_member(&b, data + (size_t)i * 100000, 100000, &usual, NULL);
		if (i == 3)
			b.at[b.n - 6] ^= 1;
	}
	place_new(&place, b.at, b.n);
	CHECK_EQ_I(scan_compare(&s, &stream_gzip, &place.backing, &small, data,
				800000, &had, &err),
		   -EBADMSG);
	CHECK(strstr(err.text, "checksum"));
	p = stream_points(s, &n);
	for (uint64_t i = 0; i < n; i++) {
		bool is = p[i].flags & POINT_BAD;

		CHECK_EQ_U(is,
			   p[i].out + p[i].size > 300000 && p[i].out < 400000);
		CHECK_EQ_I(check_window(s, i, data, &err), is ? -EBADMSG : 0);
		bad += is ? p[i].size : 0;
	}
	CHECK_EQ_U(bad, 100000);
	stream_free(s);
	place_free(&place);
	free(b.at);
}

TEST(cut_at_every_byte)
{
	struct bytes b = {0};
	size_t whole[4] = {0};

	make(MIXED, data, SIZE);
	for (unsigned i = 0; i < 3; i++) {
		put_member(&b, data + (size_t)i * 400, 400, &usual, NULL);
		whole[i + 1] = b.n;
	}
	for (size_t n = 0; n < b.n; n++) {
		bool ends = n && (n == whole[1] || n == whole[2]);
		struct error err = {0};
		struct place place;
		struct stream *s;
		uint64_t had;
		int r;

		place_new(&place, b.at, n);
		r = scan_compare(&s, &stream_gzip, &place.backing, &small, data,
				 1200, &had, &err);
		CHECK_EQ_I(r, ends ? 0 : -EBADMSG);
		CHECK_EQ_I(err.code, ends ? 0 : -EIO);
		check_row(s, had);
		CHECK(had >= (n >= whole[2]   ? 800u
			      : n >= whole[1] ? 400u
					      : 0u));
		check_windows(s, data);
		stream_free(s);
		place_free(&place);
	}
	free(b.at);
}

/* An index whose states or points were changed: an error, or the same bytes. */
TEST(damaged_index)
{
	struct error err = {0};
	struct bytes b = {0};
	struct place place;
	struct stream *s, *other;
	uint64_t had, n, size;
	struct stream_point *points;
	unsigned char *states;

	make(TEXT, data, SIZE);
	put_member(&b, data, 400000, &usual, NULL);
	place_new(&place, b.at, b.n);
	CHECK_OK(scan_compare(&s, &stream_gzip, &place.backing, &small, data,
			      400000, &had, &err));
	stream_points(s, &n);
	size = blob_size(stream_states(s));
	points = malloc(n * sizeof *points);
	states = malloc(size);
	CHECK(n > 3 && size > 100 && points && states);
	for (unsigned k = 0; k < test_rounds(4000); k++) {
		unsigned bit = 1u << test_random() % 8;
		struct blob *blob;
		size_t at = test_random() % size;

		memcpy(points, stream_points(s, &n), n * sizeof *points);
		CHECK_OK(blob_read(stream_states(s), 0, states, size, &err));
		if (k % 2)
			states[at] ^= bit;
		else
			((unsigned char *)points)[at % (n * sizeof *points)] ^=
				bit;
		CHECK_OK(blob_of_memory(&blob, states, size, &err));
		if (stream_of_points(&other, &stream_gzip, &place.backing,
				     points, n, blob, &err) < 0)
			continue;
		for (uint64_t i = 0; i < n; i++)
			check_window(other, i, data, &err);
		stream_free(other);
	}
	free(points);
	free(states);
	stream_free(s);
	place_free(&place);
	free(b.at);
}

/* ---- sizes --------------------------------------------------------------- */

/* Great expansion: windows stay bounded, and states do. */
TEST(expansion)
{
	size_t n = (size_t)(test_full() ? 96 : 24) << 20;
	unsigned char *zeros = calloc(1, n);
	struct error err = {0};
	struct bytes b = {0};
	struct place place;
	struct stream *s;
	struct way w = usual;
	uint64_t had, windows;
	const struct stream_point *p;

	CHECK(zeros);
	w.level = 9;
	put_member(&b, zeros, n, &w, NULL);
	place_new(&place, b.at, b.n);
	CHECK_OK(scan_compare(&s, &stream_gzip, &place.backing, NULL, zeros, n,
			      &had, &err));
	check_row(s, n);
	p = stream_points(s, &windows);
	for (uint64_t i = 0; i < windows; i++)
		CHECK(p[i].size <= 2 * STREAM_WINDOW);
	CHECK(blob_size(stream_states(s)) < windows * 64);
	check_windows(s, zeros);
	stream_free(s);
	place_free(&place);
	free(b.at);
	free(zeros);
}

/* States are confined to memory: there are fewer of them then. */
TEST(no_temporary_file)
{
	struct scan_sizes sizes = {34 << 10, 256 << 10, 4000};
	struct bytes b = {0};
	struct way w = usual;

	CHECK_OK(setenv("TMPDIR", "/nonexistent", 1));
	make(MIXED, data, SIZE);
	put_member(&b, data, SIZE, &w, NULL);
	check_stream(&stream_gzip, b.at, b.n, data, SIZE, &sizes);
	CHECK_OK(unsetenv("TMPDIR"));
	check_stream(&stream_gzip, b.at, b.n, data, SIZE, &sizes);
	free(b.at);
}

int main(void)
{
	log_set_level(LOG_LEVEL_ERROR);
	data = malloc(SIZE);
	if (!data)
		return 1;
	RUN(each_level);
	RUN(each_strategy);
	RUN(flushes);
	RUN(another_encoder);
	RUN(small_ones);
	RUN(one_long_block);
	RUN(header_fields);
	RUN(many_members);
	RUN(like_bgzip);
	RUN(garbage_behind);
	RUN(no_gzip);
	RUN(every_byte_flipped);
	RUN(flips_in_large_ones);
	RUN(one_bad_member);
	RUN(cut_at_every_byte);
	RUN(damaged_index);
	RUN(expansion);
	RUN(no_temporary_file);
	free(data);
	return test_done();
}
