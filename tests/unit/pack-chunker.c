/* SPDX-License-Identifier: BSD-2-Clause */
/* A stream cut into chunks: against naive indexing, with threads and failures. */
#include "test.h"

#include <errno.h>
#include <stdatomic.h>

#include "tensors/chunker.h"

/* What was put, chunk after chunk. */
struct heap {
	unsigned char *at;
	size_t n, chunk; /* bytes so far; of a chunk, as it has to be; 0: any */
	uint64_t next;
	uint64_t fail_at;
	int code;
	_Atomic int inside;
};

static int put(void *ctx, uint64_t number, uint32_t mask, const void *data,
	       size_t n, struct error *err)
{
	struct heap *h = ctx;

	CHECK_EQ_I(h->inside++, 0); /* one at a time */
	CHECK_EQ_U(number, h->next);
	CHECK_EQ_U(mask, 0);
	CHECK(!h->chunk || n == h->chunk);
	h->next++;
	h->inside--;
	if (h->code && number == h->fail_at)
		return error_set(err, h->code, "chunk %d does not fit",
				 (int)number);
	h->at = realloc(h->at, h->n + n);
	CHECK(h->at);
	memcpy(h->at + h->n, data, n);
	h->n += n;
	return 0;
}

#define ELEM 3

/* Element number `i` of the array. */
static void element(uint64_t i, unsigned char *out)
{
	out[0] = (unsigned char)(i * 7 + 1);
	out[1] = (unsigned char)(i >> 8);
	out[2] = (unsigned char)(i >> 16 | 0x80);
}

/* What the chunk of that number has to be. */
static void expect(const struct grid *g, uint64_t number, unsigned char *out)
{
	uint64_t origin[RANK_MAX], n = g->chunk_bytes / ELEM;

	grid_origin(g, number, origin);
	memset(out, 0, g->chunk_bytes);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t rest = i, at = 0, step = 1;
		bool in = true;

		for (unsigned a = g->rank; a-- > 0;) {
			uint64_t x = origin[a] + rest % g->chunk[a];

			rest /= g->chunk[a];
			in = in && x < g->shape[a];
			at += x * step;
			step *= g->shape[a];
		}
		if (in)
			element(at, out + i * ELEM);
	}
}

static void feed(struct chunker *c, uint64_t elements)
{
	size_t n = elements * ELEM, at = 0;
	unsigned char *all = malloc(n ? n : 1);
	struct error err = {0};

	for (uint64_t i = 0; i < elements; i++)
		element(i, all + i * ELEM);
	while (at < n) {
		size_t part = test_random() % 700 + 1;

		part = part < n - at ? part : n - at;
		CHECK_OK(chunker_add(c, all + at, part, &err));
		at += part;
	}
	free(all);
}

static void one(unsigned rank, const uint64_t *shape, const uint64_t *chunk,
		uint64_t rows, uint64_t memory)
{
	struct heap h = {.n = 0};
	struct chunker_options o = {.rank = rank,
				    .elem = ELEM,
				    .shape = shape,
				    .chunk = chunk,
				    .threads = 1 + test_random() % 4,
				    .memory = memory,
				    .put = put,
				    .ctx = &h};
	uint64_t real[RANK_MAX], cut[RANK_MAX], elements = 1;
	struct error err = {0};
	struct chunker *c;
	unsigned char *want;
	struct grid g;

	memcpy(real, shape, rank * sizeof *real);
	memcpy(cut, chunk, rank * sizeof *cut);
	real[0] = rows;
	for (unsigned i = 0; i < rank; i++)
		elements *= real[i];
	CHECK_OK(chunker_new(&c, &o, &err));
	feed(c, elements);
	CHECK_OK(chunker_finish(c, rows, &err));
	cut[0] = chunker_rows_of_chunk(c);
	CHECK_EQ_U(cut[0], chunk[0] < rows ? chunk[0] : rows);
	chunker_free(c);
	CHECK_OK(grid_init(&g, rank, real, cut, ELEM));
	CHECK_EQ_U(h.next, g.count);
	CHECK_EQ_U(h.n, g.count * g.chunk_bytes);
	want = malloc(g.chunk_bytes);
	for (uint64_t i = 0; i < g.count; i++) {
		expect(&g, i, want);
		CHECK_MEM(h.at + i * g.chunk_bytes, want, g.chunk_bytes);
	}
	free(want);
	free(h.at);
}

TEST(as_by_hand)
{
	for (unsigned round = 0; round < 300; round++) {
		uint64_t shape[4], chunk[4], rows;
		unsigned rank = 1 + test_random() % 4;

		for (unsigned i = 0; i < rank; i++) {
			shape[i] = 1 + test_random() % 9;
			chunk[i] = test_random() % 3 == 0 ? 1
				   : test_random() % 2
					   ? shape[i]
					   : 1 + test_random() % shape[i];
		}
		rows = 1 + test_random() % shape[0];
		one(rank, shape, chunk, rows, round % 2 ? 1 << 20 : 64 + 40000);
	}
}

/* Several slabs, and more rows of chunks than memory has room for. */
TEST(many_slabs)
{
	const uint64_t shape[] = {64, 100, 90}, whole[] = {1, 100, 90},
		       tiles[] = {3, 32, 32}, lines[] = {1, 7, 90};

	one(3, shape, whole, 61, 2 << 20);
	one(3, shape, tiles, 64, 2 << 20);
	one(3, shape, lines, 64, 200000);
}

TEST(zeros)
{
	const uint64_t shape[] = {10, 50}, chunk[] = {1, 50};
	static const unsigned char none[500 * ELEM];
	struct heap h = {.chunk = 50 * ELEM};
	struct chunker_options o = {.rank = 2,
				    .elem = ELEM,
				    .shape = shape,
				    .chunk = chunk,
				    .threads = 2,
				    .memory = 1 << 20,
				    .put = put,
				    .ctx = &h};
	struct error err = {0};
	struct chunker *c;

	CHECK_OK(chunker_new(&c, &o, &err));
	CHECK_OK(chunker_add(c, NULL, sizeof none, &err));
	CHECK_OK(chunker_finish(c, 10, &err));
	CHECK_EQ_U(h.n, sizeof none);
	CHECK_MEM(h.at, none, sizeof none);
	chunker_free(c);
	free(h.at);
}

/* The first failure is that of all later calls; nobody waits for what never comes. */
TEST(failures)
{
	const uint64_t shape[] = {5000, 100}, chunk[] = {1, 100};
	unsigned char row[100 * ELEM] = {0};

	for (uint64_t at = 0; at < 4000; at += 399) {
		struct heap h = {.fail_at = at, .code = -ENOSPC};
		struct chunker_options o = {.rank = 2,
					    .elem = ELEM,
					    .shape = shape,
					    .chunk = chunk,
					    .threads = 4,
					    .memory = 1 << 20,
					    .put = put,
					    .ctx = &h};
		struct error err = {0};
		struct chunker *c;
		char text[64];
		int r = 0;

		CHECK_OK(chunker_new(&c, &o, &err));
		for (uint64_t i = 0; i < 5000 && r == 0; i++)
			r = chunker_add(c, row, sizeof row, &err);
		if (r == 0)
			r = chunker_finish(c, 5000, &err);
		CHECK_EQ_I(r, -ENOSPC);
		snprintf(text, sizeof text, "chunk %d does not fit", (int)at);
		CHECK_STR(err.text, text);
		CHECK_EQ_U(h.next, at + 1);
		CHECK_EQ_I(chunker_finish(c, 5000, &err), -ENOSPC);
		CHECK_STR(err.text, text);
		chunker_free(c);
		free(h.at);
	}
}

TEST(given_up)
{
	const uint64_t shape[] = {5000, 100}, chunk[] = {1, 100};
	unsigned char row[100 * ELEM] = {0};
	struct heap h = {.n = 0};
	struct chunker_options o = {.rank = 2,
				    .elem = ELEM,
				    .shape = shape,
				    .chunk = chunk,
				    .threads = 3,
				    .memory = 1 << 20,
				    .put = put,
				    .ctx = &h};
	struct error err = {0};
	struct chunker *c;

	CHECK_OK(chunker_new(&c, &o, &err));
	for (uint64_t i = 0; i < 3333; i++)
		CHECK_OK(chunker_add(c, row, sizeof row, &err));
	chunker_free(c);
	free(h.at);
}

TEST(too_little_memory)
{
	const uint64_t shape[] = {10, 1 << 20}, chunk[] = {1, 1 << 20};
	struct chunker_options o = {.rank = 2,
				    .elem = ELEM,
				    .shape = shape,
				    .chunk = chunk,
				    .threads = 2,
				    .memory = 1 << 20};
	struct error err = {0};
	struct chunker *c;

	CHECK_EQ_I(chunker_new(&c, &o, &err), -ENOMEM);
	CHECK(strstr(err.text, "--memory") && strstr(err.text, "--chunk"));
}

/* What an encoder keeps counts. */
TEST(hungry_encoder)
{
	const uint64_t shape[] = {10, 1 << 20}, chunk[] = {1, 1 << 20};
	const uint32_t modest = 1, most = 22;
	struct chunker_options o = {.rank = 2,
				    .elem = 4,
				    .shape = shape,
				    .chunk = chunk,
				    .threads = 2,
				    .memory = 30 << 20,
				    .put = put};
	struct error err = {0};
	struct chunker *c;

	CHECK_OK(pipeline_add(&o.pipeline, 32015, NULL, &modest, 1, 4, &err));
	CHECK_OK(chunker_new(&c, &o, &err));
	chunker_free(c);
	o.pipeline.n = 0;
	CHECK_OK(pipeline_add(&o.pipeline, 32015, NULL, &most, 1, 4, &err));
	CHECK_EQ_I(chunker_new(&c, &o, &err), -ENOMEM);
	CHECK(strstr(err.text, "--comp"));
}

int main(void)
{
	RUN(as_by_hand);
	RUN(many_slabs);
	RUN(zeros);
	RUN(failures);
	RUN(given_up);
	RUN(too_little_memory);
	RUN(hungry_encoder);
	return test_done();
}
