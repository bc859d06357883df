/* SPDX-License-Identifier: BSD-2-Clause */
/* Decoders that are parked in one large block or frame decode nothing twice. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include <zstd.h>
#if HAVE_LZMA
#include <lzma.h>
#endif

#include "base/counters.h"
#include "stream_test.h"

#define SIZE ((size_t)700000)
static const struct scan_sizes sizes = {16384, 65536, 1 << 20};
static unsigned char data[SIZE], packed[SIZE + 100000];

/* Neither all noise nor all alike. */
static void make_data(void)
{
	for (size_t i = 0; i < SIZE; i++)
		data[i] = (unsigned char)(i / 20000 % 2 ? test_random() >> 9
							: test_random() % 5);
}
static size_t pack_zstd(void)
{
	size_t n = ZSTD_compress(packed, sizeof packed, data, SIZE, 3);

	CHECK(!ZSTD_isError(n));
	return n;
}
#if HAVE_LZMA
static size_t pack_xz(void)
{
	size_t n = 0;

	CHECK_EQ_U(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC64, NULL, data,
					   SIZE, packed, &n, sizeof packed),
		   LZMA_OK);
	return n;
}
#endif

struct opened {
	struct place place;
	struct stream *s;
	struct backing b;
	size_t stored;
};

static void open_stream(struct opened *o, const char *format, size_t n)
{
	struct error err = {0};
	uint64_t had, points;

	place_new(&o->place, packed, n);
	o->stored = n;
	if (scan_compare(&o->s, stream_find(format), &o->place.backing, &sizes,
			 data, SIZE, &had, &err) < 0)
		CHECK_STR(err.text, "");
	CHECK_EQ_U(had, SIZE);
	stream_points(o->s, &points);
	CHECK(points > SIZE / 16384 / 9);
	o->b = o->place.backing;
	o->b.stream = o->s;
	o->b.pos = 0;
	o->b.size = SIZE;
}
static void close_stream(struct opened *o)
{
	stream_free(o->s);
	place_free(&o->place);
}

/* Compressed bytes read while `run` runs, in files. */
static uint64_t files_read(const struct opened *o, void (*run)(struct opened *))
{
	uint64_t was = counter_get(COUNT_BYTES_STORED);

	run((struct opened *)o);
	return (counter_get(COUNT_BYTES_STORED) - was) / o->stored;
}

static void read_forward(struct opened *o)
{
	static unsigned char buf[5000];
	struct error err = {0};

	for (size_t at = 0; at < SIZE;) {
		size_t n = SIZE - at < sizeof buf ? SIZE - at : sizeof buf;

		CHECK_OK(backing_read(&o->b, at, buf, n, &err));
		CHECK_MEM(buf, data + at, n);
		at += n;
	}
}
static void read_backward(struct opened *o)
{
	static unsigned char buf[5000];
	struct error err = {0};

	for (size_t at = SIZE; at >= sizeof buf; at -= sizeof buf) {
		CHECK_OK(backing_read(&o->b, at - sizeof buf, buf, sizeof buf,
				      &err));
		CHECK_MEM(buf, data + at - sizeof buf, sizeof buf);
	}
}
static void read_random(struct opened *o)
{
	check_reading(o->s, &o->place.backing, data);
}
/* Without a cache, several threads that walk together. */
static void *walk(void *arg)
{
	struct opened *o = arg;
	struct error err = {0};
	uint64_t n;

	stream_points(o->s, &n);
	for (uint64_t i = 0; i < n; i++)
		CHECK_OK(check_window(o->s, i, data, &err));
	return NULL;
}
static void walk_together(struct opened *o)
{
	pthread_t t[4];

	o->s->from.pinner = NULL;
	for (unsigned i = 0; i < 4; i++)
		CHECK_OK(pthread_create(&t[i], NULL, walk, o));
	for (unsigned i = 0; i < 4; i++)
		CHECK_OK(pthread_join(t[i], NULL));
}
/* Without a cache, each window by one of several threads, nearly in order. */
static _Atomic uint64_t turn;
static void *take_turns(void *arg)
{
	struct opened *o = arg;
	struct error err = {0};
	uint64_t n, i;

	stream_points(o->s, &n);
	while ((i = atomic_fetch_add(&turn, 1)) < n)
		CHECK_OK(check_window(o->s, i, data, &err));
	return NULL;
}
static void walk_shared(struct opened *o)
{
	pthread_t t[4];

	o->s->from.pinner = NULL;
	atomic_store(&turn, 0);
	for (unsigned i = 0; i < 4; i++)
		CHECK_OK(pthread_create(&t[i], NULL, take_turns, o));
	for (unsigned i = 0; i < 4; i++)
		CHECK_OK(pthread_join(t[i], NULL));
}

static void check(const char *format, size_t n)
{
	static const struct {
		void (*run)(struct opened *);
		uint64_t most; /* files read, at most */
	} ways[] = {{read_forward, 1},
		    {read_backward, 1},
		    {read_random, 2},
		    {walk_shared, 4},
		    {walk_together, 9}};

	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		struct opened o;
		uint64_t files;

		open_stream(&o, format, n);
		files = files_read(&o, ways[i].run);
		if (files > ways[i].most)
			test_fail(__FILE__, __LINE__,
				  "%s, way %zu: the file was read %u times",
				  format, i, (unsigned)files);
		close_stream(&o);
	}
}

TEST(zstd)
{
	check("zstd", pack_zstd());
}
TEST(xz)
{
#if HAVE_LZMA
	check("xz", pack_xz());
#endif
}

int main(void)
{
	make_data();
	RUN(zstd);
	RUN(xz);
	return test_done();
}
