/* SPDX-License-Identifier: BSD-2-Clause */
/* Find the tile that covers a place, with a tree of bounding boxes. */
/*
 * The tree is binary and made once, from all tiles: the tiles of a node are sorted
 * along the axis on which they spread most (in lengths of a tile) and cut in two
 * halves, until a leaf has LEAF of them.  Nodes are numbered in the order of visits:
 * the left child of k is k + 1, the right one comes after all nodes of the left.
 * Because the halves follow from the number of leaves, a node stores only a bounding
 * box and the highest tile number below it.
 *
 * The tree answers two questions.  Which is the last tile over a place?  Nodes that do
 * not hold the place, or no later tile than the one found, are skipped.  Where, at or
 * behind a place, does a box meet a tile that is later than a given one?  Nodes that
 * the box meets only behind the best answer so far are skipped; the nearer half is
 * searched first.  Where tiles are boxes that do not overlap, both searches visit a few
 * paths of the tree.
 *
 * Tile numbers have 32 bits, which bounds the depth of the tree and the stack of a
 * walk; a walk allocates nothing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/mosaic_private.h"

#define LEAF 8
#define DEPTH_MAX 64

/* A node, and the range of leaves below it. */
struct leaf_range {
	uint32_t node, first, n;
};

static void leaf_range_halves(const struct leaf_range *s,
			      struct leaf_range *left, struct leaf_range *right)
{
	uint32_t half = s->n / 2;

	*left = (struct leaf_range){s->node + 1, s->first, half};
	*right = (struct leaf_range){s->node + 2 * half, s->first + half,
				     s->n - half};
}

/* Set *first and *end: the tiles of these leaves are order[*first ..  *end). */
static void leaf_range_tiles(const struct mosaic *m, const struct leaf_range *s,
			     uint32_t *first, uint32_t *end)
{
	uint64_t last = ((uint64_t)s->first + s->n) * LEAF;

	*first = s->first * LEAF;
	*end = (uint32_t)min_u64(last, m->tiles.n);
}

static const uint64_t *node_bounds(const struct mosaic *m, uint32_t node)
{
	return m->bounds + (size_t)node * 2 * m->rank;
}

/* ---- making it ----------------------------------------------------------- */

/* The extent of a node's tiles along one axis. */
struct spread {
	/* `first`, `last`: least and greatest middle of a tile */
	uint64_t begin, end, first, last;
	double extents;
};
struct tile_key {
	uint64_t at;
	uint32_t tile;
};

static uint64_t axis_middle(const struct axis *a)
{
	return a->start + (axis_end(a) - a->start) / 2;
}

/* Set the bounds and the highest tile of a node; return the axis to cut it along. */
static unsigned node_measure(struct mosaic *m, uint32_t node, uint32_t first,
			     uint32_t end)
{
	struct spread s[RANK_MAX];
	struct axis to[RANK_MAX];
	double best = -1, wide;
	unsigned axis = 0;

	for (unsigned i = 0; i < m->rank; i++)
		s[i] = (struct spread){UINT64_MAX, 0, UINT64_MAX, 0, 0};
	m->highest[node] = 0;
	for (uint32_t k = first; k < end; k++) {
		tile_to(m, m->order[k], to);
		if (m->order[k] > m->highest[node])
			m->highest[node] = m->order[k];
		for (unsigned i = 0; i < m->rank; i++) {
			s[i].begin = min_u64(s[i].begin, to[i].start);
			s[i].end = max_u64(s[i].end, axis_end(&to[i]));
			s[i].first = min_u64(s[i].first, axis_middle(&to[i]));
			s[i].last = max_u64(s[i].last, axis_middle(&to[i]));
			s[i].extents +=
				(double)(axis_end(&to[i]) - to[i].start);
		}
	}
	for (unsigned i = 0; i < m->rank; i++) {
		uint64_t *bounds = m->bounds + (size_t)node * 2 * m->rank;

		bounds[2 * i] = s[i].begin;
		bounds[2 * i + 1] = s[i].end;
		wide = (double)(s[i].last - s[i].first) / s[i].extents;
		if (wide > best) {
			best = wide;
			axis = i;
		}
	}
	return axis;
}

static int tile_key_compare(const void *x, const void *y)
{
	const struct tile_key *a = x, *b = y;

	if (a->at != b->at)
		return a->at < b->at ? -1 : 1;
	return a->tile < b->tile ? -1 : a->tile > b->tile;
}

/* Sort order[first .. end) by the middles of the tiles along an axis. */
static void order_sort(struct mosaic *m, struct tile_key *keys, uint32_t first,
		       uint32_t end, unsigned axis)
{
	struct axis to[RANK_MAX];
	bool sorted = true;

	for (uint32_t k = first; k < end; k++) {
		tile_to(m, m->order[k], to);
		keys[k].at = m->rank ? axis_middle(&to[axis]) : 0;
		keys[k].tile = m->order[k];
		sorted = sorted &&
			 (k == first ||
			  tile_key_compare(&keys[k - 1], &keys[k]) <= 0);
	}
	if (sorted)
		return;
	qsort(keys + first, end - first, sizeof *keys, tile_key_compare);
	for (uint32_t k = first; k < end; k++)
		m->order[k] = keys[k].tile;
}

static void tree_fill(struct mosaic *m, struct tile_key *keys)
{
	struct leaf_range stack[DEPTH_MAX], s;
	uint32_t first, end;
	unsigned n = 1, axis;

	stack[0] = (struct leaf_range){0, 0, m->leaves};
	while (n) {
		s = stack[--n];
		leaf_range_tiles(m, &s, &first, &end);
		axis = node_measure(m, s.node, first, end);
		if (s.n == 1)
			continue;
		order_sort(m, keys, first, end, axis);
		leaf_range_halves(&s, &stack[n], &stack[n + 1]);
		n += 2;
	}
}

int mosaic_index(struct mosaic *m, struct error *err)
{
	uint32_t n = (uint32_t)m->tiles.n;
	size_t nodes;
	struct tile_key *keys;

	if (!n)
		return 0;
	m->leaves = (uint32_t)div_up(n, LEAF);
	nodes = 2 * (size_t)m->leaves - 1;
	m->order = malloc(n * sizeof *m->order);
	m->highest = malloc(nodes * sizeof *m->highest);
	m->bounds = malloc(max_u64(nodes * 2 * m->rank, 1) * sizeof *m->bounds);
	keys = malloc(n * sizeof *keys);
	if (!m->order || !m->highest || !m->bounds || !keys) {
		free(keys);
		return error_no_memory(
			err, "the index of a virtual dataset's mappings");
	}
	for (uint32_t i = 0; i < n; i++)
		m->order[i] = i;
	tree_fill(m, keys);
	free(keys);
	return 0;
}

/* ---- asking it ----------------------------------------------------------- */

static bool tile_covers(const struct mosaic *m, uint32_t tile,
			const uint64_t *p)
{
	const struct tile_head *h = &m->tiles.at[tile];
	const uint64_t *w = tile_words(m, h);
	uint64_t index, inside;
	struct axis a;

	for (unsigned i = 0; i < m->rank; i++) {
		w = axis_unpack(w, h->strided >> i & 1, &a);
		if (!axis_find(&a, p[i], &index, &inside))
			return false;
	}
	return true;
}

static bool node_holds(const struct mosaic *m, uint32_t node, const uint64_t *p)
{
	const uint64_t *bounds = node_bounds(m, node);

	for (unsigned i = 0; i < m->rank; i++)
		if (p[i] < bounds[2 * i] || p[i] >= bounds[2 * i + 1])
			return false;
	return true;
}

/* Return the last tile over a place, or -1. */
static int64_t find_tile(const struct mosaic *m, const uint64_t *p)
{
	struct leaf_range stack[DEPTH_MAX], s;
	uint32_t first, end;
	int64_t best = -1;
	unsigned n = m->leaves > 0;

	stack[0] = (struct leaf_range){0, 0, m->leaves};
	while (n) {
		s = stack[--n];
		if (m->highest[s.node] <= best || !node_holds(m, s.node, p))
			continue;
		if (s.n > 1) {
			leaf_range_halves(&s, &stack[n], &stack[n + 1]);
			n += 2;
			continue;
		}
		leaf_range_tiles(m, &s, &first, &end);
		for (; first < end; first++)
			if (m->order[first] > best &&
			    tile_covers(m, m->order[first], p))
				best = m->order[first];
	}
	return best;
}

/* A place in a box from which a search starts. */
struct box_place {
	const struct box *b;
	unsigned rank;
	uint64_t p[RANK_MAX];
	/* A box around all elements that are searched: [low, high]. */
	uint64_t low[RANK_MAX], high[RANK_MAX];
};

/* Set `low` and `high` for a search of the elements before number `limit`.  Along the
 * first axes these elements have one coordinate, along the next axis a range, and along
 * all others the whole box. */
static void place_limit(struct box_place *w, uint64_t limit)
{
	uint64_t last[RANK_MAX];
	bool same = true;

	box_at(w->b, w->rank, limit - 1, last);
	for (unsigned i = 0; i < w->rank; i++) {
		w->low[i] = same ? w->p[i] : w->b->start[i];
		w->high[i] =
			same ? last[i] : w->b->start[i] + w->b->count[i] - 1;
		same = same && w->p[i] == last[i];
	}
}

/*
 * Return the number in the box of its first element, at the place or behind it, that is
 * in all of these axes; AXIS_NONE if there is none.  Coordinates stay those of the
 * place as long as they can.  The first that cannot moves to the next coordinate of its
 * axis; if that is outside the box, the axis before it moves instead.  Coordinates
 * behind it start anew.
 */
static uint64_t place_next(const struct box_place *w, const struct axis *a)
{
	const struct box *b = w->b;
	uint64_t first[RANK_MAX], next = 0, number = 0;
	unsigned i;

	for (i = 0; i < w->rank; i++) {
		first[i] = axis_from(&a[i], b->start[i]);
		if (first[i] >= b->start[i] + b->count[i])
			return AXIS_NONE;
	}
	for (i = 0; i < w->rank; i++) {
		next = axis_from(&a[i], w->p[i]);
		if (next != w->p[i])
			break;
	}
	while (i < w->rank && next >= b->start[i] + b->count[i]) {
		if (i-- == 0)
			return AXIS_NONE;
		next = axis_from(&a[i], w->p[i] + 1);
	}
	for (unsigned k = 0; k < w->rank; k++) {
		uint64_t c = k < i ? w->p[k] : k == i ? next : first[k];

		number = number * b->count[k] + (c - b->start[k]);
	}
	return number;
}

/* Return a number in the box before which no tile of the node is met; AXIS_NONE if none
 * is met at all. */
static uint64_t node_next(const struct mosaic *m, uint32_t node,
			  const struct box_place *w)
{
	const uint64_t *bounds = node_bounds(m, node);
	struct axis a[RANK_MAX];

	for (unsigned i = 0; i < m->rank; i++)
		if (bounds[2 * i] > w->high[i] ||
		    bounds[2 * i + 1] <= w->low[i])
			return AXIS_NONE;
	for (unsigned i = 0; i < m->rank; i++) {
		uint64_t n = bounds[2 * i + 1] - bounds[2 * i];

		a[i] = (struct axis){bounds[2 * i], n, 1, n};
	}
	return place_next(w, a);
}

struct candidate {
	struct leaf_range s;
	uint64_t next; /* what node_next returned */
};

/* Return the number of the first element before `limit` that a tile after `tile`
 * covers, or `limit`. */
static uint64_t find_later(const struct mosaic *m, const struct box_place *w,
			   int64_t tile, uint64_t limit)
{
	struct candidate stack[DEPTH_MAX], c;
	struct axis to[RANK_MAX];
	uint32_t first, end;
	unsigned n = m->leaves > 0;

	stack[0] = (struct candidate){{0, 0, m->leaves}, 0};
	while (n) {
		c = stack[--n];
		if (m->highest[c.s.node] <= tile || c.next >= limit)
			continue;
		if (c.s.n > 1) {
			struct candidate *x = &stack[n], *y = &stack[n + 1];

			leaf_range_halves(&c.s, &x->s, &y->s);
			x->next = node_next(m, x->s.node, w);
			y->next = node_next(m, y->s.node, w);
			if (x->next <= y->next) {
				c = *x;
				*x = *y;
				*y = c;
			}
			n += 2;
			continue;
		}
		leaf_range_tiles(m, &c.s, &first, &end);
		for (; first < end; first++) {
			if (m->order[first] <= tile)
				continue;
			tile_to(m, m->order[first], to);
			limit = min_u64(limit, place_next(w, to));
		}
	}
	return limit;
}

/* Return how many elements the tile covers from the place on: along the axes where the
 * box lies in one of its blocks, and along the next axis to the end of the block. */
static uint64_t tile_run(const struct mosaic *m, uint32_t tile,
			 const struct box_place *w)
{
	uint64_t run = 1, inner = 1, index = 0, inside = 0, c, left;
	const struct box *b = w->b;
	struct axis to[RANK_MAX];

	tile_to(m, tile, to);
	for (unsigned i = m->rank; i-- > 0;) {
		c = w->p[i] - b->start[i];
		axis_find(&to[i], w->p[i], &index, &inside);
		left = min_u64(to[i].block - inside, b->count[i] - c);
		run += (left - 1) * inner;
		if (c > inside || left < b->count[i] - c)
			break;
		inner *= b->count[i];
	}
	return run;
}

void mosaic_find(const struct mosaic *m, const struct box *b, uint64_t at,
		 struct mosaic_hit *out)
{
	struct box_place w = {.b = b, .rank = m->rank};
	uint64_t limit;

	box_at(b, m->rank, at, w.p);
	out->tile = find_tile(m, w.p);
	out->part = 0;
	limit = box_elements(b, m->rank);
	if (out->tile >= 0) {
		out->part = m->tiles.at[out->tile].part;
		limit = at + tile_run(m, (uint32_t)out->tile, &w);
	}
	place_limit(&w, limit);
	out->run = find_later(m, &w, out->tile, limit) - at;
}
