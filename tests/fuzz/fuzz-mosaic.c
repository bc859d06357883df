/* SPDX-License-Identifier: BSD-2-Clause */
/* Fuzz target: any tiles over a small array, against painting it by hand. */
/*
 * Input: u8 rank (mod 4), for each axis u8 its length (mod 8); u8 number of
 * tiles (mod 9), for each: u8 `all` (mod 2) and rank of the source (next bits),
 * for each axis of `to`, then of `from`, start, stride, count, block; for each
 * axis of the source u8 its dataset's length.  A number is a byte; 0xff is
 * followed by eight bytes of it.  The rest are up to eight boxes: start
 * and count along the axes.
 */
#include <errno.h>

#include "fuzz.h"
#include "tensor/mosaic.h"

#define TILES 8
#define CELLS 512

struct canvas {
	unsigned rank;
	uint64_t shape[3], cells;
	uint32_t tiles;
	struct tile tile[TILES];
	unsigned source_rank[TILES];
	uint64_t source[TILES][4];
	int64_t owner[CELLS];
	uint64_t number[CELLS]; /* in the tile, C order */
};

static uint64_t number(struct fuzz_input *in)
{
	uint64_t v = fuzz_u8(in);

	if (v == 0xff) {
		v = fuzz_u32(in);
		v |= (uint64_t)fuzz_u32(in) << 32;
	}
	return v;
}

static void read_slab(struct fuzz_input *in, struct slab *s, unsigned rank)
{
	for (unsigned i = 0; i < rank; i++) {
		s->start[i] = number(in);
		s->stride[i] = number(in);
		s->count[i] = number(in);
		s->block[i] = number(in);
	}
}

/* Elements of a slab that was accepted. */
static uint64_t slab_elements(const struct slab *s, unsigned rank)
{
	uint64_t n = 1;

	for (unsigned i = 0; i < rank; i++)
		n *= s->count[i] * s->block[i];
	return n;
}

/* Coordinates of the slab's element e. */
static void slab_at(const struct slab *s, unsigned rank, uint64_t e,
		    uint64_t *at)
{
	for (unsigned i = rank; i-- > 0;) {
		uint64_t k = e % (s->count[i] * s->block[i]);

		e /= s->count[i] * s->block[i];
		at[i] = s->start[i] + k / s->block[i] * s->stride[i] +
			k % s->block[i];
	}
}

static uint64_t flat(const uint64_t *at, const uint64_t *shape, unsigned rank)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < rank; i++) {
		FUZZ_CHECK(at[i] < shape[i]);
		n = n * shape[i] + at[i];
	}
	return n;
}

static void box_coordinates(const struct box *b, unsigned rank, uint64_t e,
			    uint64_t *at)
{
	for (unsigned i = rank; i-- > 0;) {
		at[i] = b->start[i] + e % b->count[i];
		e /= b->count[i];
	}
}

static void add_tile(struct canvas *c, struct mosaic *m, struct fuzz_input *in)
{
	struct tile *t = &c->tile[c->tiles];
	uint8_t what = fuzz_u8(in);
	struct error err = {0, ""};
	uint64_t at[4];
	bool empty = false;
	int r;

	memset(t, 0, sizeof *t);
	t->all = what & 1;
	c->source_rank[c->tiles] = t->rank = what / 2 % 5;
	t->part = c->tiles;
	read_slab(in, &t->to, c->rank);
	if (!t->all)
		read_slab(in, &t->from, t->rank);
	for (unsigned i = 0; i < t->rank; i++)
		c->source[c->tiles][i] = fuzz_u8(in);
	r = mosaic_add(m, t, &err);
	FUZZ_CHECK(r == 0 || r == -EBADMSG);
	FUZZ_CHECK(err.code == r);
	for (unsigned i = 0; i < c->rank; i++)
		empty |= !t->to.count[i] || !t->to.block[i];
	FUZZ_CHECK(!empty || r == 0);
	if (empty || r < 0)
		return;
	for (uint64_t e = slab_elements(&t->to, c->rank); e-- > 0;) {
		slab_at(&t->to, c->rank, e, at);
		c->owner[flat(at, c->shape, c->rank)] = c->tiles;
		c->number[flat(at, c->shape, c->rank)] = e;
	}
	c->tiles++;
}

static struct mosaic *read_canvas(struct canvas *c, struct fuzz_input *in)
{
	struct mosaic *m;

	memset(c, 0, sizeof *c);
	c->rank = fuzz_u8(in) % 4;
	c->cells = 1;
	for (unsigned i = 0; i < c->rank; i++) {
		c->shape[i] = fuzz_u8(in) % 8;
		c->cells *= c->shape[i];
	}
	for (unsigned i = 0; i < CELLS; i++)
		c->owner[i] = -1;
	FUZZ_CHECK(mosaic_new(&m, c->rank, c->shape, NULL) == 0);
	for (unsigned n = fuzz_u8(in) % (TILES + 1); n; n--)
		add_tile(c, m, in);
	FUZZ_CHECK(mosaic_finish(m, NULL) == 0);
	FUZZ_CHECK(mosaic_count(m) == c->tiles);
	return m;
}

/* Does the tile fit into its dataset? */
static bool fits(const struct canvas *c, uint32_t k)
{
	const struct tile *t = &c->tile[k];
	const struct slab *s = &t->from;
	uint64_t n = 1;

	for (unsigned i = 0; i < t->rank; i++) {
		n *= c->source[k][i];
		if (!t->all && s->start[i] + (s->count[i] - 1) * s->stride[i] +
					       s->block[i] >
				       c->source[k][i])
			return false;
	}
	return !t->all || n == slab_elements(&t->to, c->rank);
}

/* The place in its dataset of element `e` of a tile. */
static uint64_t source_of(const struct canvas *c, uint32_t k, uint64_t e)
{
	const struct tile *t = &c->tile[k];
	uint64_t at[4];

	if (t->all)
		return e;
	slab_at(&t->from, t->rank, e, at);
	return flat(at, c->source[k], t->rank);
}

static void check_piece(const struct canvas *c, const struct mosaic *m,
			const struct box *b, uint64_t e,
			const struct mosaic_hit *hit)
{
	uint32_t k = (uint32_t)hit->tile;
	unsigned rank = c->source_rank[k];
	struct mosaic_piece piece;
	uint64_t at[4], to[4];
	int r = mosaic_piece(m, hit, b, e, rank, c->source[k], &piece, NULL);

	FUZZ_CHECK(r == (fits(c, k) ? 0 : -EIO));
	if (r < 0)
		return;
	FUZZ_CHECK(piece.run > 0 && piece.run <= hit->run);
	FUZZ_CHECK(piece.skip + piece.run <= box_elements(&piece.from, rank));
	for (uint64_t i = 0; i < piece.run; i++) {
		box_coordinates(b, c->rank, e + i, to);
		box_coordinates(&piece.from, rank, piece.skip + i, at);
		FUZZ_CHECK(flat(at, c->source[k], rank) ==
			   source_of(c, k,
				     c->number[flat(to, c->shape, c->rank)]));
	}
}

static void check_box(const struct canvas *c, const struct mosaic *m,
		      const struct box *b)
{
	uint64_t total = box_elements(b, c->rank), at[4];
	struct mosaic_hit hit;

	for (uint64_t e = 0; e < total; e++) {
		mosaic_find(m, b, e, &hit);
		FUZZ_CHECK(hit.run > 0 && hit.run <= total - e);
		for (uint64_t i = 0; i < hit.run; i++) {
			box_coordinates(b, c->rank, e + i, at);
			FUZZ_CHECK(c->owner[flat(at, c->shape, c->rank)] ==
				   hit.tile);
		}
		if (hit.tile >= 0)
			check_piece(c, m, b, e, &hit);
	}
}

static void check_blocks(const struct canvas *c, const struct mosaic *m)
{
	struct box b;
	uint32_t k;

	FUZZ_CHECK(mosaic_blocks(m) <= c->tiles);
	for (uint32_t i = 0; i < mosaic_blocks(m); i++) {
		mosaic_block(m, i, &b);
		FUZZ_CHECK(mosaic_block_find(m, &b, &k) == 0 && k == i);
		for (unsigned a = 0; a < c->rank; a++)
			FUZZ_CHECK(mosaic_divides(m, a) ||
				   b.count[a] == c->shape[a]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	static struct canvas c;
	struct mosaic *m = read_canvas(&c, &in);
	struct box b = {{0}, {0}};

	memcpy(b.count, c.shape, sizeof c.shape);
	if (c.cells)
		check_box(&c, m, &b);
	for (unsigned boxes = 0; c.cells && in.size && boxes < 8; boxes++) {
		for (unsigned i = 0; i < c.rank; i++) {
			b.start[i] = fuzz_u8(&in) % c.shape[i];
			b.count[i] =
				1 + fuzz_u8(&in) % (c.shape[i] - b.start[i]);
		}
		check_box(&c, m, &b);
		if (!c.rank)
			break;
	}
	check_blocks(&c, m);
	mosaic_free(m);
	return 0;
}
