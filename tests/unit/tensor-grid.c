/* SPDX-License-Identifier: BSD-2-Clause */
/* Grid arithmetic against naive indexing, and .npy headers against np.save. */
#include <errno.h>

#include "tensor/grid.h"
#include "test.h"

static uint64_t rnd(uint64_t below)
{
	return test_random() % below;
}

/* Where element `e` of the box is, one axis at a time. */
static void naive(const struct grid *g, const struct box *b, uint64_t e,
		  uint64_t *chunk, uint64_t *inside)
{
	uint64_t at[RANK_MAX];

	for (unsigned i = g->rank; i-- > 0;) {
		at[i] = b->start[i] + e % b->count[i];
		e /= b->count[i];
	}
	*chunk = *inside = 0;
	for (unsigned i = 0; i < g->rank; i++) {
		*chunk = *chunk * g->chunks[i] + at[i] / g->chunk[i];
		*inside = *inside * g->chunk[i] + at[i] % g->chunk[i];
	}
	*inside *= g->elem;
}

static void random_grid(struct grid *g, struct box *b)
{
	unsigned rank = (unsigned)rnd(5);
	uint64_t shape[4] = {0}, chunk[4] = {0};

	for (unsigned i = 0; i < rank; i++) {
		shape[i] = 1 + rnd(9);
		chunk[i] = 1 + rnd(10);
	}
	CHECK_EQ_I(grid_init(g, rank, shape, chunk, 1u << rnd(4)), 0);
	for (unsigned i = 0; i < rank; i++) {
		b->start[i] = rnd(shape[i]);
		b->count[i] = 1 + rnd(shape[i] - b->start[i]);
	}
}

TEST(runs_equal_naive_indexing)
{
	for (int round = 0; round < 4000; round++) {
		struct grid g;
		struct box b;
		uint64_t total, off = 0, n = 0;

		random_grid(&g, &b);
		total = box_elements(&b, g.rank) * g.elem;
		off = rnd(total);
		while (off < total) {
			uint64_t chunk, inside, run, c, i;

			grid_run(&g, &b, off, &chunk, &inside, &run);
			CHECK(run > 0 && run <= total - off);
			for (uint64_t k = 0; k < run; k++) {
				uint64_t e = (off + k) / g.elem;

				naive(&g, &b, e, &c, &i);
				CHECK_EQ_U(chunk, c);
				CHECK_EQ_U(inside + k, i + (off + k) % g.elem);
			}
			off += run;
			n++;
		}
	}
}

TEST(runs_are_long_where_they_can_be)
{
	uint64_t shape[] = {10, 6, 8}, chunk[] = {4, 6, 8};
	struct box whole = {{0, 0, 0}, {10, 6, 8}};
	uint64_t c, i, run;
	struct grid g;

	CHECK_EQ_I(grid_init(&g, 3, shape, chunk, 4), 0);
	grid_run(&g, &whole, 0, &c, &i, &run);
	CHECK_EQ_U(run, 4 * 6 * 8 * 4);
	grid_run(&g, &whole, 9 * 6 * 8 * 4 + 5, &c, &i, &run);
	CHECK_EQ_U(c, 2);
	CHECK_EQ_U(run, 6 * 8 * 4 - 5);
	CHECK(grid_is_partial(&g, 2) && !grid_is_partial(&g, 1));
	CHECK_EQ_U(grid_touched(&g, &whole), 3);
}

/* Each row is in the chunks of the first, and in them `step` further. */
TEST(rows_equal_naive_indexing)
{
	unsigned found = 0;

	for (int round = 0; round < 4000; round++) {
		struct grid_rows rows;
		struct grid g;
		struct box b;
		uint64_t total, off, chunk, inside, c, i;

		random_grid(&g, &b);
		total = box_elements(&b, g.rank) * g.elem;
		for (off = 0; off < total; off += g.elem) {
			if (!grid_find_rows(&g, &b, off, &rows))
				continue;
			found++;
			CHECK(rows.rows > 0 && rows.pitch % g.elem == 0);
			CHECK(rows.rows * rows.pitch <= total - off);
			for (uint64_t k = 0; k < rows.rows * rows.pitch;
			     k += g.elem) {
				naive(&g, &b, (off + k % rows.pitch) / g.elem,
				      &chunk, &inside);
				naive(&g, &b, (off + k) / g.elem, &c, &i);
				CHECK_EQ_U(c, chunk);
				CHECK_EQ_U(i,
					   inside + k / rows.pitch * rows.step);
			}
		}
	}
	CHECK(found > 1000);
}

TEST(carries_count_axes_that_end)
{
	uint64_t shape[] = {4, 3, 5, 6}, chunk[] = {2, 1, 5, 2};
	static const unsigned carry[] = {0, 0, 1, 0, 0, 1, 0, 0, 2,
					 0, 0, 1, 0, 0, 1, 0, 0, 3};
	struct grid g;

	CHECK_EQ_I(grid_init(&g, 4, shape, chunk, 1), 0);
	CHECK_EQ_U(g.count, 18);
	for (unsigned i = 0; i < 18; i++)
		CHECK_EQ_U(grid_carry(&g, i), carry[i]);
}

TEST(hostile_sizes_are_refused)
{
	uint64_t big[] = {UINT64_C(1) << 40, UINT64_C(1) << 40}, one[] = {1, 1};
	uint64_t zero[] = {0, 1};
	struct grid g;

	CHECK_EQ_I(grid_init(&g, 2, big, one, 1), -EOVERFLOW);
	CHECK_EQ_I(grid_init(&g, 2, one, big, 1), -EOVERFLOW);
	CHECK_EQ_I(grid_init(&g, 2, one, zero, 1), -EOVERFLOW);
	CHECK_EQ_I(grid_init(&g, 2, one, one, 0), -EOVERFLOW);
	CHECK_EQ_I(grid_init(&g, 33, one, one, 1), -EOVERFLOW);
	CHECK_EQ_I(grid_init(&g, 2, zero, one, 4), 0);
	CHECK_EQ_U(g.count, 0);
}

int main(void)
{
	RUN(runs_equal_naive_indexing);
	RUN(runs_are_long_where_they_can_be);
	RUN(rows_equal_naive_indexing);
	RUN(carries_count_axes_that_end);
	RUN(hostile_sizes_are_refused);
	return test_done();
}
