/* SPDX-License-Identifier: BSD-2-Clause */
/* Mosaics of all kinds of tiles equal an array that was painted naively. */
#include <errno.h>

#include "test.h"
#include "tensor/mosaic.h"

static uint64_t rnd(uint64_t below)
{
	return test_random() % below;
}

/* ---- the naive side ------------------------------------------------------ */

#define TILES 12
#define CELLS 4096
struct canvas {
	unsigned rank;
	uint64_t shape[RANK_MAX], cells;
	uint32_t tiles;
	struct tile tile[TILES];
	unsigned source_rank[TILES];
	uint64_t source[TILES][RANK_MAX]; /* shapes */
	int64_t owner[CELLS];             /* tile of each cell, or -1 */
	uint64_t value[CELLS];            /* element of its source */
};

static uint64_t slab_extent(const struct slab *s, unsigned i)
{
	return s->count[i] * s->block[i];
}

static uint64_t slab_elements(const struct slab *s, unsigned rank)
{
	uint64_t n = 1;

	for (unsigned i = 0; i < rank; i++)
		n *= slab_extent(s, i);
	return n;
}

/* The place in an array of `shape` of the slab's element e. */
static uint64_t slab_place(const struct slab *s, unsigned rank,
			   const uint64_t *shape, uint64_t e)
{
	uint64_t flat = 0, cell = 1;

	for (unsigned i = rank; i-- > 0;) {
		uint64_t k = e % slab_extent(s, i);

		e /= slab_extent(s, i);
		flat += cell * (s->start[i] + k / s->block[i] * s->stride[i] +
				k % s->block[i]);
		cell *= shape[i];
	}
	return flat;
}

static void paint(struct canvas *c)
{
	for (uint64_t i = 0; i < c->cells; i++)
		c->owner[i] = -1;
	for (uint32_t k = 0; k < c->tiles; k++) {
		const struct tile *t = &c->tile[k];

		for (uint64_t e = slab_elements(&t->to, c->rank); e-- > 0;) {
			uint64_t at = slab_place(&t->to, c->rank, c->shape, e);

			c->owner[at] = k;
			c->value[at] = t->all ? e
					      : slab_place(&t->from, t->rank,
							   c->source[k], e);
		}
	}
}

/* ---- random tiles -------------------------------------------------------- */

static void random_axis(struct slab *s, unsigned i, uint64_t shape)
{
	s->block[i] = 1 + rnd(rnd(2) ? shape : 2);
	if (s->block[i] > shape)
		s->block[i] = shape;
	s->stride[i] = s->block[i] + rnd(3);
	s->count[i] = 1 + (shape - s->block[i]) / s->stride[i];
	s->count[i] = rnd(3) ? 1 : 1 + rnd(s->count[i]);
	s->start[i] =
		rnd(shape - (s->count[i] - 1) * s->stride[i] - s->block[i] + 1);
	if (rnd(4) == 0) {
		s->start[i] = 0;
		s->block[i] = s->stride[i] = shape;
		s->count[i] = 1;
	} else if (s->count[i] == 1) {
		s->stride[i] = rnd(9); /* of no account */
	}
}

/* An axis of the source with `n` elements. */
static void source_axis(struct canvas *c, uint32_t k, uint64_t n)
{
	struct tile *t = &c->tile[k];
	struct slab *s = &t->from;
	unsigned i = t->rank++;

	s->block[i] = 1 + rnd(n);
	while (n % s->block[i])
		s->block[i]--;
	if (t->all || rnd(2))
		s->block[i] = n;
	s->count[i] = n / s->block[i];
	s->stride[i] = s->block[i] + rnd(3);
	s->start[i] = rnd(3) * !t->all;
	c->source[k][i] = s->start[i] + (s->count[i] - 1) * s->stride[i] +
			  s->block[i] + rnd(3) * !t->all;
}

static void random_tile(struct canvas *c, uint32_t k)
{
	struct tile *t = &c->tile[k];
	uint64_t n, part;

	memset(t, 0, sizeof *t);
	for (unsigned i = 0; i < c->rank; i++)
		random_axis(&t->to, i, c->shape[i]);
	n = slab_elements(&t->to, c->rank);
	t->part = 100 + k;
	t->all = rnd(3) == 0;
	if (rnd(3) == 0) { /* another shape */
		part = 1 + rnd(n);
		while (n % part)
			part--;
		if (rnd(2))
			source_axis(c, k, part);
		source_axis(c, k, t->rank ? n / part : n);
	} else {
		for (unsigned i = 0; i < c->rank; i++) {
			if (rnd(6) == 0)
				source_axis(c, k, 1);
			if (slab_extent(&t->to, i) > 1 || rnd(2))
				source_axis(c, k, slab_extent(&t->to, i));
		}
	}
	c->source_rank[k] = t->rank;
}

static struct mosaic *random_canvas(struct canvas *c)
{
	struct error err = {0};
	struct mosaic *m;

	memset(c, 0, sizeof *c);
	c->rank = (unsigned)rnd(5);
	c->cells = 1;
	for (unsigned i = 0; i < c->rank; i++) {
		c->shape[i] = 1 + rnd(7);
		c->cells *= c->shape[i];
	}
	c->tiles = (uint32_t)rnd(TILES + 1);
	CHECK_OK(mosaic_new(&m, c->rank, c->shape, &err));
	for (uint32_t k = 0; k < c->tiles; k++) {
		random_tile(c, k);
		CHECK_OK(mosaic_add(m, &c->tile[k], &err));
	}
	paint(c);
	CHECK_OK(mosaic_finish(m, &err));
	CHECK_EQ_U(mosaic_count(m), c->tiles);
	return m;
}

/* ---- comparing ----------------------------------------------------------- */

/* The place in the array of element e of a box. */
static uint64_t box_place(const struct box *b, unsigned rank,
			  const uint64_t *shape, uint64_t e)
{
	uint64_t flat = 0, cell = 1;

	for (unsigned i = rank; i-- > 0;) {
		CHECK(b->start[i] + b->count[i] <= shape[i]);
		flat += cell * (b->start[i] + e % b->count[i]);
		e /= b->count[i];
		cell *= shape[i];
	}
	return flat;
}

static uint64_t check_piece(const struct canvas *c, const struct mosaic *m,
			    const struct box *b, uint64_t at,
			    const struct mosaic_hit *hit)
{
	uint32_t k = (uint32_t)hit->tile;
	struct mosaic_piece piece;
	struct error err = {0};
	uint64_t e, from;

	CHECK_OK(mosaic_piece(m, hit, b, at, c->source_rank[k], c->source[k],
			      &piece, &err));
	CHECK(piece.run > 0 && piece.run <= hit->run);
	CHECK(piece.skip + piece.run <=
	      box_elements(&piece.from, c->source_rank[k]));
	for (uint64_t i = 0; i < piece.run; i++) {
		e = box_place(b, c->rank, c->shape, at + i);
		from = box_place(&piece.from, c->source_rank[k], c->source[k],
				 piece.skip + i);
		CHECK_EQ_U(from, c->value[e]);
	}
	return piece.run;
}

static void check_at(const struct canvas *c, const struct mosaic *m,
		     const struct box *b, uint64_t at, uint64_t total)
{
	struct mosaic_hit hit;

	mosaic_find(m, b, at, &hit);
	CHECK(hit.run > 0 && hit.run <= total - at);
	for (uint64_t i = 0; i < hit.run; i++)
		CHECK_EQ_I(c->owner[box_place(b, c->rank, c->shape, at + i)],
			   hit.tile);
	if (hit.tile < 0) {
		/* Gaps end where something begins. */
		if (at + hit.run < total)
			CHECK(c->owner[box_place(b, c->rank, c->shape,
						 at + hit.run)] >= 0);
		return;
	}
	CHECK_EQ_U(hit.part, 100 + (uint64_t)hit.tile);
	check_piece(c, m, b, at, &hit);
}

static void random_box(const struct canvas *c, struct box *b)
{
	bool whole = rnd(4) == 0;

	for (unsigned i = 0; i < c->rank; i++) {
		b->start[i] = whole ? 0 : rnd(c->shape[i]);
		b->count[i] = whole ? c->shape[i]
				    : 1 + rnd(c->shape[i] - b->start[i]);
	}
}

TEST(random_mosaics_equal_painted_arrays)
{
	static struct canvas c;

	for (int round = 0; round < 1200; round++) {
		struct mosaic *m = random_canvas(&c);

		for (int boxes = 0; boxes < 6; boxes++) {
			struct box b;
			uint64_t total;

			random_box(&c, &b);
			total = box_elements(&b, c.rank);
			for (uint64_t at = 0; at < total; at++)
				check_at(&c, m, &b, at, total);
		}
		mosaic_free(m);
	}
}

TEST(tiles_are_given_back_in_their_simplest_form)
{
	static struct canvas c;

	for (int round = 0; round < 300; round++) {
		struct mosaic *m = random_canvas(&c);

		for (uint32_t k = 0; k < c.tiles; k++) {
			const struct tile *t = &c.tile[k];
			uint64_t n = slab_elements(&t->to, c.rank);
			struct tile out;

			mosaic_tile(m, k, &out);
			CHECK_EQ_U(out.part, t->part);
			CHECK_EQ_U(out.all, t->all);
			CHECK_EQ_U(slab_elements(&out.to, c.rank), n);
			if (!t->all)
				CHECK_EQ_U(out.rank, t->rank);
			for (uint64_t e = 0; e < n; e++) {
				CHECK_EQ_U(
					slab_place(&out.to, c.rank, c.shape, e),
					slab_place(&t->to, c.rank, c.shape, e));
				if (!t->all)
					CHECK_EQ_U(slab_place(&out.from,
							      out.rank,
							      c.source[k], e),
						   slab_place(&t->from, t->rank,
							      c.source[k], e));
			}
		}
		mosaic_free(m);
	}
}

/* ---- blocks -------------------------------------------------------------- */

static bool is_box(const struct slab *s, unsigned rank)
{
	for (unsigned i = 0; i < rank; i++)
		if (s->count[i] > 1 && s->stride[i] > s->block[i])
			return false;
	return true;
}

static void check_blocks(const struct canvas *c, const struct mosaic *m)
{
	uint32_t n = mosaic_blocks(m), found;
	bool divides[RANK_MAX] = {false};
	struct box b, before = {{0}, {0}};

	for (uint32_t k = 0; k < n; k++) {
		int order = k == 0;

		mosaic_block(m, k, &b);
		for (unsigned i = 0; i < c->rank && !order; i++) {
			order = (b.start[i] > before.start[i]) -
				(b.start[i] < before.start[i]);
			if (!order)
				order = (b.count[i] > before.count[i]) -
					(b.count[i] < before.count[i]);
		}
		CHECK_EQ_I(order, 1);
		before = b;
		for (unsigned i = 0; i < c->rank; i++)
			divides[i] |= b.count[i] < c->shape[i];
		CHECK_OK(mosaic_block_find(m, &b, &found));
		CHECK_EQ_U(found, k);
	}
	for (unsigned i = 0; i < c->rank; i++)
		CHECK_EQ_U(mosaic_divides(m, i), divides[i]);
	if (!n || !c->rank)
		return;
	b.count[0]++;
	CHECK_EQ_I(mosaic_block_find(m, &b, &found), -ENOENT);
}

TEST(blocks_are_the_distinct_boxes)
{
	static struct canvas c;

	for (int round = 0; round < 2000; round++) {
		struct mosaic *m = random_canvas(&c);
		bool boxes = c.tiles > 0;
		uint32_t found;

		for (uint32_t k = 0; k < c.tiles; k++)
			boxes = boxes && is_box(&c.tile[k].to, c.rank);
		CHECK_EQ_U(mosaic_blocks(m) > 0, boxes);
		check_blocks(&c, m);
		for (uint32_t k = 0; boxes && k < c.tiles; k++) {
			struct box b;

			for (unsigned i = 0; i < c.rank; i++) {
				b.start[i] = c.tile[k].to.start[i];
				b.count[i] = slab_extent(&c.tile[k].to, i);
			}
			CHECK_OK(mosaic_block_find(m, &b, &found));
		}
		mosaic_free(m);
	}
}

/* ---- particular ones ----------------------------------------------------- */

static struct tile box_tile(unsigned rank, const uint64_t *start,
			    const uint64_t *count)
{
	struct tile t = {.all = true};

	for (unsigned i = 0; i < rank; i++) {
		t.to.start[i] = start[i];
		t.to.count[i] = 1;
		t.to.stride[i] = 1;
		t.to.block[i] = count[i];
	}
	return t;
}

static void add_box(struct mosaic *m, unsigned rank, uint32_t part,
		    const uint64_t *start, const uint64_t *count)
{
	struct tile t = box_tile(rank, start, count);
	struct error err = {0};

	t.part = part;
	CHECK_OK(mosaic_add(m, &t, &err));
}

TEST(runs_are_long_where_they_can_be)
{
	uint64_t shape[] = {10, 6, 8}, at[] = {2, 0, 0}, n[] = {4, 6, 8};
	uint64_t late[] = {7, 3, 1}, one[] = {1, 1, 2}, from[] = {4, 1, 48};
	struct box whole = {{0, 0, 0}, {10, 6, 8}};
	struct mosaic_piece piece;
	struct mosaic_hit hit;
	struct error err = {0};
	struct mosaic *m;

	CHECK_OK(mosaic_new(&m, 3, shape, &err));
	add_box(m, 3, 5, at, n);
	add_box(m, 3, 6, late, one);
	CHECK_OK(mosaic_finish(m, &err));
	mosaic_find(m, &whole, 0, &hit);
	CHECK_EQ_I(hit.tile, -1);
	CHECK_EQ_U(hit.run, 2 * 48);
	mosaic_find(m, &whole, 2 * 48 + 5, &hit);
	CHECK_EQ_U(hit.part, 5);
	CHECK_EQ_U(hit.run, 4 * 48 - 5);
	CHECK_OK(mosaic_piece(m, &hit, &whole, 2 * 48 + 5, 3, n, &piece, &err));
	CHECK_EQ_U(piece.run, 4 * 48 - 5);
	/* The same as 4 rows of 48. */
	CHECK_OK(mosaic_piece(m, &hit, &whole, 2 * 48 + 5, 3, from, &piece,
			      &err));
	CHECK_EQ_U(piece.run, 4 * 48 - 5);
	CHECK_EQ_U(piece.skip, 5);
	mosaic_find(m, &whole, 6 * 48, &hit);
	CHECK_EQ_I(hit.tile, -1);
	CHECK_EQ_U(hit.run, 48 + 3 * 8 + 1);
	mosaic_find(m, &whole, 7 * 48 + 3 * 8 + 1, &hit);
	CHECK_EQ_U(hit.run, 2);
	/* A dataset that is not what was mapped. */
	from[0] = 5;
	CHECK_EQ_I(mosaic_piece(m, &hit, &whole, 0, 3, from, &piece, &err),
		   -EIO);
	CHECK_STR(err.text, "a mapping takes 2 elements from a dataset that "
			    "has 240");
	mosaic_free(m);
}

TEST(nothing_at_all)
{
	uint64_t shape[] = {0, UINT64_MAX};
	struct box none = {{0}, {0}};
	struct mosaic_hit hit;
	struct error err = {0};
	struct mosaic *m;
	uint32_t k;

	CHECK_OK(mosaic_new(&m, 2, shape, &err));
	CHECK_OK(mosaic_finish(m, &err));
	CHECK_EQ_U(mosaic_count(m), 0);
	CHECK_EQ_U(mosaic_blocks(m), 0);
	CHECK_EQ_I(mosaic_block_find(m, &none, &k), -ENOENT);
	mosaic_free(m);
	CHECK_OK(mosaic_new(&m, 0, NULL, &err)); /* a scalar */
	add_box(m, 0, 3, NULL, NULL);
	CHECK_OK(mosaic_finish(m, &err));
	mosaic_find(m, &none, 0, &hit);
	CHECK_EQ_U(hit.part, 3);
	CHECK_EQ_U(hit.run, 1);
	CHECK_EQ_U(mosaic_blocks(m), 1);
	mosaic_free(m);
}

#define HUGE_ (UINT64_MAX - 1)
TEST(hostile_numbers_are_refused)
{
	static const struct {
		uint64_t start, stride, count, block;
		const char *why;
	} bad[] = {
		{0, 1, 1, 11, "goes beyond"},
		{10, 1, 1, 1, "goes beyond"},
		{HUGE_, 1, 1, 3, "goes beyond"},
		{0, HUGE_, 3, 1, "goes beyond"},
		{0, HUGE_, HUGE_, 1, "goes beyond"},
		{3, 2, HUGE_, 2, "goes beyond"},
		{0, 1, 1, HUGE_, "goes beyond"},
		{0, 3, 4, 2, "goes beyond"},
		{0, 1, 2, 2, "blocks overlap"},
		{0, 0, 5, 1, "blocks overlap"},
	};
	uint64_t shape[] = {10, 1}, big[] = {UINT64_C(1) << 40, 1 << 30};
	uint64_t zero[] = {0}, ten[] = {10};
	struct error err = {0};
	struct mosaic *m;
	struct tile t;

	CHECK_EQ_I(mosaic_new(&m, 2, big, &err), -EBADMSG);
	CHECK_EQ_I(mosaic_new(&m, 33, big, &err), -EBADMSG);
	CHECK_OK(mosaic_new(&m, 1, shape, &err));
	add_box(m, 1, 0, ten, zero); /* ignored, but counted */
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		t = box_tile(1, zero, ten);
		t.to.start[0] = bad[i].start;
		t.to.stride[0] = bad[i].stride;
		t.to.count[0] = bad[i].count;
		t.to.block[0] = bad[i].block;
		CHECK_EQ_I(mosaic_add(m, &t, &err), -EBADMSG);
		CHECK(!strncmp(err.text, "mapping 1: ", 11));
		CHECK(strstr(err.text, bad[i].why));
	}
	t = box_tile(1, zero, ten);
	t.all = false;
	t.rank = 3;
	for (unsigned i = 0; i < 3; i++)
		t.from.count[i] = t.from.block[i] = UINT64_C(1) << 31;
	for (unsigned i = 0; i < 3; i++)
		t.from.stride[i] = t.from.block[i];
	CHECK_EQ_I(mosaic_add(m, &t, &err), -EBADMSG);
	t.from.start[1] = UINT64_MAX;
	CHECK_EQ_I(mosaic_add(m, &t, &err), -EBADMSG);
	t.from.count[0] = 0;
	CHECK_EQ_I(mosaic_add(m, &t, &err), -EBADMSG);
	CHECK_STR(err.text,
		  "mapping 1: it maps 10 elements to 0 of its source");
	t.rank = 33;
	CHECK_EQ_I(mosaic_add(m, &t, &err), -EBADMSG);
	CHECK_EQ_U(mosaic_count(m), 0);
	mosaic_free(m);
}

/* ---- many ---------------------------------------------------------------- */

/* A grid of `a` x `b` boxes of 3 x 5, of which every seventh is left out. */
static void check_grid(uint64_t a, uint64_t b, uint64_t lookups)
{
	uint64_t shape[] = {a * 3, b * 5}, count[] = {3, 5};
	struct mosaic_hit hit;
	struct error err = {0};
	struct mosaic *m;

	CHECK_OK(mosaic_new(&m, 2, shape, &err));
	for (uint64_t k = 0; k < a * b; k++) {
		uint64_t start[] = {k / b * 3, k % b * 5};

		if (k % 7)
			add_box(m, 2, (uint32_t)k, start, count);
	}
	CHECK_OK(mosaic_finish(m, &err));
	CHECK(mosaic_bytes(m) < 130 * (uint64_t)mosaic_count(m) + 4096);
	for (uint64_t i = 0; i < lookups; i++) {
		uint64_t y = rnd(shape[0]), x = rnd(shape[1]);
		uint64_t k = y / 3 * b + x / 5;
		struct box w = {{0, 0}, {shape[0], shape[1]}};

		mosaic_find(m, &w, y * shape[1] + x, &hit);
		CHECK_EQ_I(k % 7 ? (int64_t)hit.part : -1,
			   k % 7 ? (int64_t)k : hit.tile);
		/* Two gaps may meet where a row ends. */
		CHECK(hit.run == (b == 1 ? (3 - y % 3) * 5 - x : 5 - x % 5) ||
		      (k % 7 == 0 && hit.run > 5 - x % 5));
	}
	mosaic_free(m);
}

TEST(a_hundred_thousand_tiles)
{
	check_grid(100000, 1, 200000);
	check_grid(1, 100000, 100000);
	check_grid(250, 400, 100000);
	check_grid(5000, 20, 100000);
}

/* Rows of 1000 datasets in turn: row r is row r / 1000 of dataset r % 1000. */
TEST(interleaved_rows)
{
	uint64_t shape[] = {100000, 4}, source[] = {100, 4};
	struct box whole = {{0, 0}, {100000, 4}}, three = {{7, 1}, {3, 2}};
	struct mosaic_piece piece;
	struct mosaic_hit hit;
	struct error err = {0};
	struct mosaic *m;

	CHECK_OK(mosaic_new(&m, 2, shape, &err));
	for (uint64_t k = 0; k < 1000; k++) {
		struct tile t = {.part = (uint32_t)k,
				 .all = true,
				 .to = {{k, 0}, {1000, 4}, {100, 1}, {1, 4}}};

		CHECK_OK(mosaic_add(m, &t, &err));
	}
	CHECK_OK(mosaic_finish(m, &err));
	CHECK_EQ_U(mosaic_blocks(m), 0);
	for (int i = 0; i < 200; i++) {
		uint64_t row = rnd(100000);

		mosaic_find(m, &whole, row * 4 + 1, &hit);
		CHECK_EQ_U(hit.part, row % 1000);
		CHECK_EQ_U(hit.run, 3);
		CHECK_OK(mosaic_piece(m, &hit, &whole, row * 4 + 1, 2, source,
				      &piece, &err));
		CHECK_EQ_U(piece.from.start[0], row / 1000);
		CHECK_EQ_U(piece.run, 3);
	}
	mosaic_find(m, &three, 3, &hit);
	CHECK_EQ_U(hit.part, 8);
	CHECK_EQ_U(hit.run, 1);
	mosaic_free(m);
}

int main(void)
{
	RUN(random_mosaics_equal_painted_arrays);
	RUN(tiles_are_given_back_in_their_simplest_form);
	RUN(blocks_are_the_distinct_boxes);
	RUN(runs_are_long_where_they_can_be);
	RUN(nothing_at_all);
	RUN(hostile_numbers_are_refused);
	RUN(a_hundred_thousand_tiles);
	RUN(interleaved_rows);
	return test_done();
}
