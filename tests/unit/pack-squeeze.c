/* SPDX-License-Identifier: BSD-2-Clause */
/* Squeeze: what comes out decodes with zlib and libzstd; order, cuts, failures. */
#include <errno.h>
#include <stdatomic.h>
#include <time.h>
#include <zlib.h>
#include <zstd.h>

#include "base/vec.h"
#include "pack/squeeze.h"
#include "tests/unit/test.h"

struct got {
	vec(unsigned char) bytes;
	vec(struct squeeze_block) blocks;
	uint64_t fail_at; /* block that is refused; UINT64_MAX: none */
	bool slow;
	_Atomic int inside;
	unsigned after; /* blocks that came behind the one refused */
};

static uint64_t random_state = 1;
static uint64_t next_random(void)
{
	random_state = random_state * UINT64_C(6364136223846793005) +
		       UINT64_C(1442695040888963407);
	return random_state >> 33;
}

static void fill_random(unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)next_random();
}

static void fill_text(unsigned char *p, size_t n)
{
	static const char *const words[] = {"tensor", " of ", "float\n", "12",
					    "345,"};

	for (size_t i = 0; i < n;) {
		const char *w = words[next_random() % 5];

		for (; *w && i < n; w++)
			p[i++] = (unsigned char)*w;
	}
}

static int take(void *ctx, const struct squeeze_block *b, struct error *err)
{
	struct got *g = ctx;

	CHECK_EQ_I(atomic_fetch_add(&g->inside, 1), 0);
	if (g->blocks.n > g->fail_at)
		g->after++;
	/* Only makes it likelier that blocks queue up; what must hold holds anyway. */
	if (g->slow)
		nanosleep(&(struct timespec){0, 300000}, NULL);
	for (size_t i = 0; i < b->size; i++)
		CHECK(vec_push(&g->bytes, ((const unsigned char *)b->data)[i]));
	CHECK(vec_push(&g->blocks, *b));
	atomic_fetch_sub(&g->inside, 1);
	if (g->blocks.n == g->fail_at + 1)
		return error_set(err, -ENOSPC, "no room for block %u",
				 (unsigned)g->fail_at);
	return 0;
}

static void got_free(struct got *g)
{
	vec_free(&g->bytes);
	vec_free(&g->blocks);
}

/* One after the other; the bytes, and how many streams there were. */
static unsigned decode_gzip(const struct got *g, unsigned char *to, size_t n)
{
	z_stream z = {.next_in = g->bytes.at,
		      .avail_in = (unsigned)g->bytes.n,
		      .next_out = to,
		      .avail_out = (unsigned)n + 1};
	unsigned members = 0;

	CHECK_EQ_I(inflateInit2(&z, 16 + 15), Z_OK);
	while (z.avail_in) {
		CHECK_EQ_I(inflate(&z, Z_FINISH), Z_STREAM_END);
		CHECK_EQ_I(inflateReset(&z), Z_OK);
		members++;
	}
	CHECK_EQ_U((size_t)(z.next_out - to), n);
	inflateEnd(&z);
	return members;
}

static unsigned decode_zstd(const struct got *g, unsigned char *to, size_t n)
{
	const unsigned char *at = g->bytes.at;
	size_t left = g->bytes.n, done = 0;
	unsigned frames = 0;

	while (left) {
		size_t size = ZSTD_findFrameCompressedSize(at, left);
		unsigned long long len = ZSTD_getFrameContentSize(at, left);

		CHECK(!ZSTD_isError(size));
		CHECK(len != ZSTD_CONTENTSIZE_ERROR &&
		      len != ZSTD_CONTENTSIZE_UNKNOWN);
		CHECK_EQ_U(at[4] & 4, 4); /* a checksum */
		CHECK_EQ_U(ZSTD_decompress(to + done, n + 1 - done, at, size),
			   len);
		done += len;
		at += size;
		left -= size;
		frames++;
	}
	CHECK_EQ_U(done, n);
	return frames;
}

static void check_blocks(const struct got *g, const unsigned char *data,
			 size_t n)
{
	uint64_t at = 0;

	for (size_t i = 0; i < g->blocks.n; i++) {
		const struct squeeze_block *b = &g->blocks.at[i];

		CHECK_EQ_U(b->at, at);
		CHECK_EQ_U(b->crc, crc32(0, data + at, (unsigned)b->len));
		at += b->len;
	}
	CHECK_EQ_U(at, n);
}

static void check_all(const struct got *g, enum squeeze_codec codec,
		      const unsigned char *data, size_t n)
{
	unsigned char *back = malloc(n + 1);
	unsigned streams = (unsigned)g->blocks.n;

	CHECK(back != NULL);
	check_blocks(g, data, n);
	if (codec == SQUEEZE_GZIP)
		CHECK_EQ_U(decode_gzip(g, back, n), streams);
	else if (codec == SQUEEZE_ZSTD)
		CHECK_EQ_U(decode_zstd(g, back, n), streams);
	else
		memcpy(back, g->bytes.at, n);
	CHECK(memcmp(back, data, n) == 0);
	free(back);
}

static struct squeeze *start(const struct squeeze_options *o, struct got *g)
{
	struct squeeze *s;
	struct error err = {0};

	CHECK_EQ_I(squeeze_new(&s, o, take, g, &err), 0);
	return s;
}

enum { N = 1000003 };

static void round_trip(enum squeeze_codec codec, unsigned threads, size_t block,
		       bool sample, bool slow)
{
	struct squeeze_options o = {.codec = codec,
				    .block = block,
				    .threads = threads,
				    .memory = UINT64_C(64) << 20,
				    .sample = sample};
	struct got g = {.fail_at = UINT64_MAX, .slow = slow};
	struct squeeze *s = start(&o, &g);
	unsigned char *data = malloc(N);
	struct error err = {0};

	CHECK(data != NULL);
	fill_text(data, N / 2);
	fill_random(data + N / 2, N - N / 2);
	for (size_t i = 0; i < N;) {
		size_t n = next_random() % 70000;

		n = n < N - i ? n : N - i;
		CHECK_EQ_I(squeeze_add(s, data + i, n, &err), 0);
		i += n;
		if (next_random() % 8 == 0)
			for (unsigned k = 0; k < 3; k++)
				CHECK_EQ_I(squeeze_cut(s, &err), 0);
	}
	CHECK_EQ_I(squeeze_finish(s, &err), 0);
	squeeze_free(s);
	check_all(&g, codec, data, N);
	got_free(&g);
	free(data);
}

TEST(all_comes_back_in_order)
{
	static const enum squeeze_codec codecs[] = {SQUEEZE_NONE, SQUEEZE_GZIP,
						    SQUEEZE_ZSTD};
	static const unsigned threads[] = {1, 2, 13};

	for (size_t c = 0; c < 3; c++)
		for (size_t t = 0; t < 3; t++) {
			round_trip(codecs[c], threads[t], 10007, false, t == 1);
			round_trip(codecs[c], threads[t], 200000, true, false);
		}
}

TEST(what_does_not_shrink_is_stored)
{
	static const enum squeeze_codec codecs[] = {SQUEEZE_GZIP, SQUEEZE_ZSTD};
	enum { BLOCK = 300000, BLOCKS = 6 };
	unsigned char *data = malloc(BLOCK * BLOCKS);
	struct error err = {0};

	CHECK(data != NULL);
	for (unsigned i = 0; i < BLOCKS; i++)
		(i % 2 ? fill_text : fill_random)(data + i * BLOCK, BLOCK);
	/* Fewer values than a byte has, a gain of 6 %: worth it. */
	for (size_t i = 4 * BLOCK; i < 5 * BLOCK; i++)
		data[i] =
			data[i] < 70 ? (unsigned char)(data[i] + 100) : data[i];
	for (unsigned c = 0; c < 4; c++) {
		struct squeeze_options o = {.codec = codecs[c % 2],
					    .block = BLOCK,
					    .threads = 2,
					    .memory = UINT64_C(64) << 20,
					    .sample = c < 2};
		struct got g = {.fail_at = UINT64_MAX};
		struct squeeze *s = start(&o, &g);

		CHECK_EQ_I(squeeze_add(s, data, BLOCK * BLOCKS, &err), 0);
		CHECK_EQ_I(squeeze_finish(s, &err), 0);
		squeeze_free(s);
		check_all(&g, codecs[c % 2], data, BLOCK * BLOCKS);
		for (unsigned i = 0; i < BLOCKS; i++) {
			const struct squeeze_block *b = &g.blocks.at[i];
			bool stored = o.sample && i % 2 == 0 && i < 4;

			CHECK_EQ_U(b->squeezed, !stored);
			if (stored)
				CHECK(b->size > BLOCK && b->size < BLOCK + 100);
			else
				CHECK(i % 2 == 0 || b->size < BLOCK / 2);
		}
		got_free(&g);
	}
	free(data);
}

TEST(nothing_is_a_stream)
{
	static const enum squeeze_codec codecs[] = {SQUEEZE_NONE, SQUEEZE_GZIP,
						    SQUEEZE_ZSTD};

	for (size_t c = 0; c < 3; c++) {
		struct squeeze_options o = {.codec = codecs[c],
					    .block = 1 << 20,
					    .threads = 2,
					    .sample = true};
		struct got g = {.fail_at = UINT64_MAX};
		struct squeeze *s = start(&o, &g);
		struct error err = {0};

		CHECK_EQ_I(squeeze_cut(s, &err), 0);
		CHECK_EQ_I(squeeze_cut(s, &err), 0);
		CHECK_EQ_I(squeeze_finish(s, &err), 0);
		squeeze_free(s);
		CHECK_EQ_U(g.blocks.n, c ? 1 : 0);
		if (c)
			check_all(&g, codecs[c], (const unsigned char *)"", 0);
		got_free(&g);
	}
}

TEST(levels_and_blocks_are_checked)
{
	struct squeeze_options o = {.block = 100, .threads = 1};
	struct got g = {.fail_at = UINT64_MAX};
	struct error err = {0};
	struct squeeze *s;

	o.codec = SQUEEZE_GZIP;
	o.level = squeeze_most(SQUEEZE_GZIP) + 1;
	CHECK_EQ_I(squeeze_new(&s, &o, take, &g, &err), -EINVAL);
	CHECK(s == NULL && strstr(err.text, "1 to 12"));
	o.level = -1;
	CHECK_EQ_I(squeeze_new(&s, &o, take, &g, &err), -EINVAL);
	o.level = 0;
	o.block = 0;
	CHECK_EQ_I(squeeze_new(&s, &o, take, &g, &err), -EINVAL);
	o.block = (size_t)SQUEEZE_BLOCK_MOST + 1;
	CHECK_EQ_I(squeeze_new(&s, &o, take, &g, &err), -EINVAL);
}

/* The first failure is that of all calls that follow, and nothing is written after. */
TEST(a_failure_stays)
{
	unsigned char data[50000];

	fill_text(data, sizeof data);
	for (unsigned at = 0; at < 12; at++) {
		struct squeeze_options o = {.codec = at % 2 ? SQUEEZE_ZSTD
							    : SQUEEZE_GZIP,
					    .block = 5000,
					    .threads = 1 + at % 5,
					    .memory = UINT64_C(1) << 20};
		struct got g = {.fail_at = at, .slow = at % 3 == 0};
		struct squeeze *s = start(&o, &g);
		struct error err = {0};
		int r = 0;

		for (unsigned i = 0; i < 1000 && r == 0; i++)
			r = squeeze_add(s, data, sizeof data, &err);
		CHECK_EQ_I(r, -ENOSPC);
		CHECK(strstr(err.text, "no room for block"));
		err = (struct error){0};
		CHECK_EQ_I(squeeze_cut(s, &err), -ENOSPC);
		CHECK(strstr(err.text, "no room for block"));
		CHECK_EQ_I(squeeze_add(s, data, 1, &err), -ENOSPC);
		CHECK_EQ_I(squeeze_finish(s, &err), -ENOSPC);
		CHECK_EQ_U(g.after, 0);
		CHECK_EQ_U(g.blocks.n, at + 1);
		squeeze_free(s);
		got_free(&g);
	}
}

/* Given up in the middle: threads end, and what waits is not written. */
TEST(giving_up_ends_at_once)
{
	unsigned char *data = malloc(N);
	struct error err = {0};

	CHECK(data != NULL);
	fill_text(data, N);
	for (unsigned i = 0; i < 20; i++) {
		struct squeeze_options o = {.codec = SQUEEZE_ZSTD,
					    .block = 30000,
					    .threads = 1 + i % 7,
					    .memory = UINT64_C(64) << 20};
		struct got g = {.fail_at = UINT64_MAX, .slow = true};
		struct squeeze *s = start(&o, &g);

		CHECK_EQ_I(squeeze_add(s, data, N / (1 + i), &err), 0);
		squeeze_free(s);
		CHECK(g.blocks.n < 34);
		got_free(&g);
	}
	free(data);
}

int main(void)
{
	RUN(all_comes_back_in_order);
	RUN(what_does_not_shrink_is_stored);
	RUN(nothing_is_a_stream);
	RUN(levels_and_blocks_are_checked);
	RUN(a_failure_stays);
	RUN(giving_up_ends_at_once);
	return test_done();
}
