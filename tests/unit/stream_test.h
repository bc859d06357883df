/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests of compressed streams: files, first passes, windows in any order. */
#ifndef TESTS_UNIT_STREAM_TEST_H
#define TESTS_UNIT_STREAM_TEST_H

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "stream/stream_private.h"
#include "store/store.h"
#include "test.h"

/* A file with these bytes, a store, and the file as a backing. */
struct place {
	char path[64];
	struct handles *handles;
	struct store *store;
	struct backing backing;
};

TEST_MAYBE static void place_new(struct place *p, const void *data, size_t n)
{
	struct store_options o = {.cache_size = 4 << 20};
	struct error err = {0};
	FILE *f;
	int fd;

	memset(p, 0, sizeof *p);
	snprintf(p->path, sizeof p->path, "/tmp/tensorfs-stream-XXXXXX");
	fd = mkstemp(p->path);
	CHECK(fd >= 0);
	f = fdopen(fd, "w");
	CHECK(f);
	CHECK_EQ_U(fwrite(data, 1, n, f), n);
	CHECK_EQ_I(fclose(f), 0);
	CHECK_OK(handles_new(&p->handles, 8, 1, &err));
	o.handles = p->handles;
	CHECK_OK(store_new(&p->store, &o, &err));
	CHECK_OK(backing_file(&p->backing, p->handles, store_pinner(p->store),
			      handles_add(p->handles, p->path), 0, &err));
}

TEST_MAYBE static void place_free(struct place *p)
{
	store_free(p->store);
	handles_free(p->handles);
	unlink(p->path);
}

/* Sizes that make many windows of little data. */
struct scan_sizes {
	uint32_t window, most;
	size_t memory;
};

/* Read a stream in pieces of all sizes, some of them skipped, and compare.  `n` is
 * how much of `data` there must be (UINT64_MAX: as much as there is; it may be cut
 * short).  What stream_scan_finish returns. */
/* How far a scan says that it is. */
struct told {
	uint64_t last;
	unsigned times;
};

TEST_MAYBE static void tell(void *ctx, uint64_t consumed)
{
	struct told *t = ctx;

	CHECK(consumed > t->last);
	t->last = consumed;
	t->times++;
}

TEST_MAYBE static int scan_compare(struct stream **out,
				   const struct stream_format *f,
				   const struct backing *from,
				   const struct scan_sizes *sizes,
				   const unsigned char *data, uint64_t n,
				   uint64_t *had, struct error *err)
{
	static unsigned char piece[300000];
	struct stream_scan *scan;
	struct input *in;
	struct told told = {0, 0};
	uint64_t at = 0;
	bool equal = true;
	ssize_t r;

	CHECK_OK(stream_scan_new(&scan, f, from, 1, err));
	stream_scan_tell(scan, tell, &told);
	if (sizes)
		scan_limit(scan, sizes->window, sizes->most, sizes->memory);
	in = stream_scan_input(scan);
	do {
		size_t want = test_random() % 3
				      ? 1 + test_random() % 5000
				      : 1 + test_random() % sizeof piece;

		CHECK_EQ_U(in->at, at);
		if (test_random() % 4 == 0) {
			r = input_skip(in, want, err);
		} else {
			r = input_read(in, piece, want, err);
			if (n != UINT64_MAX && r > 0) {
				CHECK(at + (uint64_t)r <= n);
				equal &= !memcmp(piece, data + at, (size_t)r);
			}
		}
		CHECK(r <= (ssize_t)want);
		if (r > 0)
			at += (uint64_t)r;
		if (r < 0)
			CHECK(err->text[0]);
	} while (r > 0);
	*had = at;
	if (n != UINT64_MAX)
		CHECK(equal);
	CHECK(told.last <= from->size);
	return stream_scan_finish(scan, out, err);
}

/* Points are in order, and within their limits. */
TEST_MAYBE static void check_row(struct stream *s, uint64_t size)
{
	uint64_t n, out = 0;
	const struct stream_point *p = stream_points(s, &n);

	for (uint64_t i = 0; i < n; i++) {
		CHECK_EQ_U(p[i].out, out);
		CHECK(p[i].size > 0 && p[i].size <= STREAM_WINDOW_MAX);
		CHECK_EQ_U(stream_window_at(s, out), i);
		CHECK_EQ_U(stream_window_at(s, out + p[i].size - 1), i);
		out += p[i].size;
	}
	CHECK_EQ_U(out, size);
	CHECK_EQ_U(stream_size(s), size);
}

/* Window `i` by itself; its error, or 0: then it must be these bytes. */
TEST_MAYBE static int check_window(struct stream *s, uint64_t i,
				   const unsigned char *data, struct error *err)
{
	struct chunk_set *set = stream_set(s);
	_Atomic uint64_t gauge = 0;
	struct buf *b = NULL;
	struct chunk c;
	uint64_t n;
	const struct stream_point *p = stream_points(s, &n);
	int r;

	CHECK_EQ_U(set->ops->index_page_of(set, i), UINT64_MAX);
	CHECK_OK(set->ops->locate(set, i, NULL, &c, err));
	CHECK(c.state == CHUNK_FETCH);
	CHECK_EQ_U(c.size, p[i].size);
	r = set->ops->fetch(set, i, &gauge, &b, err);
	if (r < 0) {
		CHECK(err->text[0]);
		CHECK_EQ_I(err->code, r);
		CHECK_EQ_U(gauge, 0);
		return r;
	}
	CHECK_EQ_U(b->size, p[i].size);
	CHECK_MEM(b->data, data + p[i].out, p[i].size);
	buf_unref(b);
	return 0;
}

/* Each window, in an order of its own. */
TEST_MAYBE static void check_windows(struct stream *s,
				     const unsigned char *data)
{
	struct error err = {0};
	uint64_t n, step;

	stream_points(s, &n);
	for (step = 7919; n && n % step == 0;)
		step = 7907;
	for (uint64_t i = 0, at = n ? test_random() % n : 0; i < n; i++) {
		if (check_window(s, at, data, &err) < 0)
			CHECK_STR(err.text, "");
		at = (at + step) % n;
	}
}

struct reader {
	pthread_t thread;
	const struct backing *b;
	const unsigned char *data;
	uint64_t seed;
};

static inline void *read_anywhere(void *arg)
{
	struct reader *r = arg;
	static _Thread_local unsigned char buf[70000];
	struct error err = {0};

	for (uint64_t i = 0; i < r->seed; i++)
		test_random();
	for (unsigned i = 0; i < 100 && r->b->size; i++) {
		uint64_t off = test_random() % r->b->size;
		uint64_t len = test_random() % sizeof buf;

		if (len > r->b->size - off)
			len = r->b->size - off;
		CHECK_OK(backing_read(r->b, off, buf, (size_t)len, &err));
		CHECK_MEM(buf, r->data + off, (size_t)len);
	}
	return NULL;
}

/* Through the store, by several threads at once. */
TEST_MAYBE static void check_reading(struct stream *s,
				     const struct backing *from,
				     const unsigned char *data)
{
	struct backing b = *from;
	struct reader r[4];

	b.stream = s;
	b.pos = 0;
	b.size = stream_size(s);
	for (unsigned i = 0; i < 4; i++) {
		r[i] = (struct reader){.b = &b, .data = data, .seed = i * 7};
		CHECK_OK(pthread_create(&r[i].thread, NULL, read_anywhere,
					&r[i]));
	}
	for (unsigned i = 0; i < 4; i++)
		CHECK_OK(pthread_join(r[i].thread, NULL));
}

/* The same stream, made of what an index would keep. */
TEST_MAYBE static struct stream *stream_again(struct stream *s)
{
	struct error err = {0};
	struct stream *again;
	struct blob *states;
	uint64_t n, size = blob_size(stream_states(s));
	const struct stream_point *p = stream_points(s, &n);
	void *bytes = malloc(size ? (size_t)size : 1);

	CHECK(bytes);
	CHECK_OK(blob_read(stream_states(s), 0, bytes, (size_t)size, &err));
	CHECK_OK(blob_of_memory(&states, bytes, (size_t)size, &err));
	free(bytes);
	CHECK_OK(stream_of_points(&again, stream_format_of(s), stream_from(s),
				  p, n, states, &err));
	return again;
}

/* All of the above for an intact stream. */
TEST_MAYBE static void check_stream(const struct stream_format *f,
				    const void *stored, size_t stored_size,
				    const unsigned char *data, size_t n,
				    const struct scan_sizes *sizes)
{
	struct error err = {0};
	struct stream *s, *again;
	struct place place;
	uint64_t had;

	place_new(&place, stored, stored_size);
	if (scan_compare(&s, f, &place.backing, sizes, data, n, &had, &err) < 0)
		CHECK_STR(err.text, "");
	CHECK_EQ_U(had, n);
	check_row(s, n);
	check_windows(s, data);
	check_reading(s, &place.backing, data);
	again = stream_again(s);
	check_windows(again, data);
	stream_free(again);
	stream_free(s);
	place_free(&place);
}

#endif
