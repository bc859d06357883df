/* SPDX-License-Identifier: BSD-2-Clause */
/* Tensors whose parts live in memory, and what each element comes from. */
#ifndef TESTS_UNIT_VIEW_FAKE_H
#define TESTS_UNIT_VIEW_FAKE_H

#include <errno.h>
#include <sys/stat.h>

#include "tensor/text.h"
#include "views/view.h"
#include "test.h"

static uint64_t rnd(uint64_t below)
{
	return test_random() % below;
}

/* ---- a tensor whose parts and chunks live in memory ---------------------- */

#define PARTS 8
#define CELLS 2048
struct fake {
	struct tensor t;
	uint64_t shape[4];
	unsigned char *data[PARTS]; /* of each part's dataset, C order */
	struct grid grid[PARTS];
	struct tile tile[PARTS]; /* one of each part */
	int owner[CELLS];        /* part of each element, or -1: a gap */
	uint64_t source[CELLS];  /* its number in that dataset */
	struct pipeline none;
	unsigned learned;
};
static const unsigned char fill[8] = {1, 2, 3, 4, 5, 6, 7, 8};

static int fake_learn(struct tensor *t, uint32_t p, struct layout **out,
		      struct error *err)
{
	struct fake *f = (struct fake *)t;
	struct layout *l = calloc(1, sizeof *l);

	(void)err;
	f->learned++;
	l->kind = LAYOUT_CHUNKED;
	l->grid = &f->grid[p];
	l->pipeline = &f->none;
	l->fill = t->fill;
	*out = l;
	return 0;
}

static void fake_free(struct tensor *t)
{
	struct fake *f = (struct fake *)t;

	for (unsigned p = 0; p < PARTS; p++)
		free(f->data[p]);
	free(f);
}

/* Where element e of a box is in an array of this shape. */
static uint64_t box_place(const struct box *b, unsigned rank,
			  const uint64_t *shape, uint64_t e)
{
	uint64_t place = 0, cell = 1;

	for (unsigned i = rank; i-- > 0;) {
		place += cell * (b->start[i] + e % b->count[i]);
		e /= b->count[i];
		cell *= shape[i];
	}
	return place;
}

/* The value of an element of a part's dataset, as it is and as a line. */
static void value_text(char *to, uint32_t p, uint64_t e, bool line)
{
	if (e % 11 == 5)
		*to = 0;
	else if (e % 7 == 3)
		sprintf(to, line ? "a\\\\b\\n%u.%" PRIu64 : "a\\b\n%u.%" PRIu64,
			p, e);
	else
		sprintf(to, "v%u.%" PRIu64, p, e);
	if (line)
		strcat(to, "\n");
}

static int fake_values(struct tensor *t, uint32_t p, const struct box *b,
		       void (*put)(void *ctx, const char *s, size_t len),
		       void *ctx, struct error *err)
{
	const struct grid *g = &((struct fake *)t)->grid[p];
	char s[64];

	(void)err;
	for (uint64_t i = 0; i < box_elements(b, g->rank); i++) {
		value_text(s, p, box_place(b, g->rank, g->shape, i), false);
		put(ctx, s, strlen(s));
	}
	return 0;
}

static const struct tensor_ops fake_ops = {
	.learn = fake_learn, .values = fake_values, .free = fake_free};

/* Part p: a window of a dataset, laid over rows [begin, end) of the array, or
 * somewhere, with stride or without. */
static void fake_tile(struct fake *f, uint32_t p, uint64_t begin, uint64_t end)
{
	uint64_t shape[RANK_MAX], chunk[RANK_MAX];
	struct tile *t = &f->tile[p];
	bool rows = begin < end;

	t->part = p;
	t->rank = f->t.rank;
	for (unsigned i = 0; i < t->rank; i++) {
		uint64_t n = f->shape[i], count = 1, stride = 1, block, start;

		block = rows ? (i ? n : end - begin) : 1 + rnd(n);
		if (!rows && rnd(3) == 0) {
			block = 1;
			stride = 1 + rnd(3);
			count = 1 + (n - 1) / stride;
		}
		start = rows ? (i ? 0 : begin)
			     : rnd(n - (count - 1) * stride - block + 1);
		t->to.start[i] = start;
		t->to.stride[i] = stride;
		t->to.count[i] = count;
		t->to.block[i] = block;
		t->from.start[i] = rnd(3);
		t->from.stride[i] = t->from.count[i] = 1;
		t->from.block[i] = count * block;
		shape[i] = t->from.start[i] + count * block + rnd(3);
		chunk[i] = 1 + rnd(7);
	}
	CHECK_EQ_I(
		grid_init(&f->grid[p], t->rank, shape, chunk, f->t.dtype.size),
		0);
}

/* Number in the array (or in its dataset) of a tile's element e. */
static uint64_t slab_place(const struct slab *s, unsigned rank,
			   const uint64_t *shape, uint64_t e)
{
	uint64_t place = 0, cell = 1;

	for (unsigned i = rank; i-- > 0;) {
		uint64_t n = s->count[i] * s->block[i], k = e % n;

		e /= n;
		place += cell * (s->start[i] + k / s->block[i] * s->stride[i] +
				 k % s->block[i]);
		cell *= shape[i];
	}
	return place;
}

static void fake_paint(struct fake *f, uint32_t p)
{
	const struct tile *t = &f->tile[p];
	uint64_t n = 1;

	for (unsigned i = 0; i < t->rank; i++)
		n *= t->to.count[i] * t->to.block[i];
	for (uint64_t e = 0; e < n; e++) {
		uint64_t at = slab_place(&t->to, t->rank, f->shape, e);

		f->owner[at] = (int)p;
		f->source[at] =
			slab_place(&t->from, t->rank, f->grid[p].shape, e);
	}
}

static void fake_parts(struct fake *f, bool rows)
{
	struct tensor *t = &f->t;
	struct error err = {0};
	uint64_t row = 0;

	t->parts = calloc(PARTS, sizeof *t->parts);
	for (unsigned i = 0; i < CELLS; i++)
		f->owner[i] = -1;
	CHECK_OK(mosaic_new(&t->mosaic, t->rank, f->shape, &err));
	while (t->nparts < PARTS && (rows ? row < f->shape[0] : rnd(9) > 0)) {
		uint64_t n = rows ? 1 + rnd(f->shape[0] - row) : 0;
		uint32_t p = t->nparts;

		if (!rows || rnd(4)) {
			t->nparts++;
			fake_tile(f, p, row, row + n);
			fake_paint(f, p);
			CHECK_OK(mosaic_add(t->mosaic, &f->tile[p], &err));
		}
		row += n;
	}
	CHECK_OK(mosaic_finish(t->mosaic, &err));
}

/* Without a mosaic: the one part is all there is. */
static void fake_plain(struct fake *f)
{
	uint64_t chunk[RANK_MAX];
	struct tensor *t = &f->t;
	struct error err = {0};
	const struct layout *l;

	for (unsigned i = 0; i < t->rank; i++)
		chunk[i] = 1 + rnd(7);
	t->parts = calloc(1, sizeof *t->parts);
	t->nparts = 1;
	CHECK_EQ_I(
		grid_init(&f->grid[0], t->rank, f->shape, chunk, t->dtype.size),
		0);
	for (uint64_t e = 0; e < t->elements; e++)
		f->source[e] = e;
	CHECK_OK(tensor_learn(t, 0, &l, &err));
}

enum fake_kind { FAKE_PLAIN, FAKE_ROWS, FAKE_TILES };

static struct fake *fake_new(unsigned rank, uint32_t elem, enum fake_kind kind)
{
	struct fake *f = calloc(1, sizeof *f);
	struct tensor *t = &f->t;

	t->ops = &fake_ops;
	t->set.ops = &tensor_chunk_ops;
	t->set.id = chunk_set_new_id();
	t->dtype = (struct dtype){.kind = DTYPE_UINT, .size = elem};
	t->stored = t->dtype;
	t->rank = rank;
	t->shape = f->shape;
	t->elements = 1;
	for (unsigned i = 0; i < rank; i++) {
		f->shape[i] = 1 + rnd(i ? 9 : 20);
		t->elements *= f->shape[i];
	}
	t->bytes = t->elements * elem;
	t->fill = (struct fill){fill, elem};
	t->name = strdup("/fake");
	t->source = "fake.h5";
	if (!rank || kind == FAKE_PLAIN)
		fake_plain(f);
	else
		fake_parts(f, kind == FAKE_ROWS);
	for (uint32_t p = 0; p < t->nparts; p++) {
		const struct grid *g = &f->grid[p];
		size_t n = elem;

		for (unsigned i = 0; i < rank; i++)
			n *= g->shape[i];
		f->data[p] = malloc(n);
		for (size_t i = 0; i < n; i++)
			f->data[p][i] = (unsigned char)rnd(256);
	}
	return f;
}

static uint64_t find(struct files *files, uint64_t dir, const char *name)
{
	uint64_t node = 0;

	CHECK_EQ_I(files->ops->find(files, dir, name, &node), 0);
	return node;
}

#endif
