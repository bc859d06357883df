/* SPDX-License-Identifier: BSD-2-Clause */
/* An order of making new chunks that decodes old ones as seldom as possible. */
/*
 * The number of old chunks that a box touches is a product over the axes, and so is its
 * sum over all tiles.  With pieces of n new chunks along an axis, the factor is the
 * number of old intervals there, plus one for each end of a piece that lies within an
 * interval.  So each axis has a list of reasonable n (a larger one must save decodes),
 * and the plan is one n from each list: their product is at most what fits, and the
 * product of the sums is as small as possible.
 *
 * This is a knapsack problem.  Axes are added one by one to a list of the best products
 * so far, from which everything that is not better than something smaller is dropped.
 * Long lists are thinned.
 */
#include "tensors/rechunk/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"

#define STATES_MOST 1024
#define CHOICES_MOST 4096 /* before they are thinned */
#define CHOICES_KEPT 64
/* The largest divisor that is looked for. */
#define DIVISORS_TO 65536
/* When a list is thinned, a choice must save at least this factor. */
#define WORTH 0.98

struct choice {
	uint64_t n, touched;
};
struct choices {
	size_t n;
	struct choice at[CHOICES_MOST];
};
struct state {
	uint64_t n; /* new chunks of a tile, so far */
	double touched;
	uint64_t tile[RANK_MAX];
};
struct states {
	size_t n;
	struct state *at;
};

static uint64_t gcd(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

uint64_t rechunk_touched(uint64_t shape, uint64_t in, uint64_t piece)
{
	uint64_t ends = div_up(shape, piece) - 1;

	/* Some ends coincide with the end of an interval. */
	return div_up(shape, in) + ends - ends / (in / gcd(piece, in));
}

/* ---- one axis ------------------------------------------------------------ */

static void choices_add(struct choices *c, uint64_t n)
{
	if (c->n < CHOICES_MOST)
		c->at[c->n++].n = n;
}

static int choice_compare(const void *one, const void *two)
{
	const struct choice *a = one, *b = two;

	return a->n < b->n ? -1 : a->n > b->n;
}

/* Drop choices that save nothing, or (keep < 1) too little, over a smaller one. */
static void choices_thin(struct choices *c, double keep)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++) {
		bool last = i + 1 == c->n;
		double was = n ? (double)c->at[n - 1].touched : 0;

		if (n && (double)c->at[i].touched >= was * (last ? 1 : keep))
			continue;
		c->at[n++] = c->at[i];
	}
	c->n = n;
}

/* List reasonable lengths of pieces along an axis, in new chunks. */
static void choices_make(struct choices *c, uint64_t shape, uint64_t in,
			 uint64_t out, uint64_t most)
{
	uint64_t all = div_up(shape, out), period = in / gcd(in, out);

	c->n = 0;
	/* Lengths whose ends coincide with those of old chunks, all or some of them. */
	for (uint64_t d = 1; d <= DIVISORS_TO && d <= period / d; d++) {
		if (period % d)
			continue;
		choices_add(c, d);
		choices_add(c, period / d);
	}
	/* Lengths that give fewer pieces. */
	for (uint64_t pieces = 1; c->n < CHOICES_MOST;) {
		uint64_t n = div_up(all, pieces);

		choices_add(c, n);
		if (n == 1)
			break;
		pieces = div_up(all, n - 1);
	}
	choices_add(c, 1);
	if (c->n == CHOICES_MOST) /* there were more of them */
		c->at[CHOICES_MOST - 1].n = 1;
	qsort(c->at, c->n, sizeof *c->at, choice_compare);
	while (c->n > 1 &&
	       (c->at[c->n - 1].n > most || c->at[c->n - 1].n > all))
		c->n--;
	for (size_t i = 0; i < c->n; i++)
		c->at[i].touched = rechunk_touched(shape, in, c->at[i].n * out);
	choices_thin(c, 1);
	for (double keep = WORTH; c->n > CHOICES_KEPT; keep *= keep)
		choices_thin(c, keep);
}

/* ---- all axes ------------------------------------------------------------------- */

static int state_compare(const void *one, const void *two)
{
	const struct state *a = one, *b = two;

	if (a->n != b->n)
		return a->n < b->n ? -1 : 1;
	return a->touched < b->touched ? -1 : a->touched > b->touched;
}

static void thin_states(struct states *s, double keep)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		bool last = i + 1 == s->n;

		if (n && s->at[i].touched >=
				 s->at[n - 1].touched * (last ? 1 : keep))
			continue;
		if (n != i)
			s->at[n] = s->at[i];
		n++;
	}
	s->n = n;
}

/* Combine every state with every choice for one more axis. */
static int states_extend(struct states *s, const struct choices *c,
			 unsigned axis, uint64_t most, struct error *err)
{
	struct states next = {0, NULL};

	next.at = malloc(s->n * c->n * sizeof *next.at);
	if (!next.at)
		return error_no_memory(err, "the order of chunks");
	for (size_t i = 0; i < s->n; i++)
		for (size_t k = 0; k < c->n; k++) {
			struct state *to = &next.at[next.n];

			*to = s->at[i];
			if (mul_overflows(to->n, c->at[k].n, &to->n) ||
			    to->n > most)
				break;
			to->touched *= (double)c->at[k].touched;
			to->tile[axis] = c->at[k].n;
			next.n++;
		}
	qsort(next.at, next.n, sizeof *next.at, state_compare);
	thin_states(&next, 1);
	for (double keep = 0.999; next.n > STATES_MOST; keep *= keep)
		thin_states(&next, keep);
	free(s->at);
	*s = next;
	return 0;
}

void rechunk_plan_count(struct rechunk_plan *p, unsigned rank,
			const uint64_t *shape, const uint64_t *in,
			const uint64_t *out)
{
	p->tiles = p->chunks = p->decodes = 1;
	for (unsigned i = 0; i < rank; i++) {
		uint64_t piece = rechunk_times(p->tile[i], out[i]);

		p->tiles = rechunk_times(p->tiles, div_up(shape[i], piece));
		p->chunks = rechunk_times(p->chunks, div_up(shape[i], in[i]));
		p->decodes = rechunk_times(
			p->decodes, rechunk_touched(shape[i], in[i], piece));
	}
}

int rechunk_plan_make(struct rechunk_plan *p, unsigned rank,
		      const uint64_t *shape, const uint64_t *in,
		      const uint64_t *out, uint64_t most, struct error *err)
{
	cleanup_free struct choices *c = malloc(sizeof *c);
	struct states s = {1, calloc(1, sizeof *s.at)};
	int r = c && s.at ? 0 : error_no_memory(err, "the order of chunks");

	if (r == 0) {
		s.at[0].n = 1;
		s.at[0].touched = 1;
	}
	for (unsigned i = 0; i < rank && r == 0; i++) {
		choices_make(c, shape[i], in[i], out[i], most);
		r = states_extend(&s, c, i, most, err);
	}
	if (r == 0) {
		memset(p, 0, sizeof *p);
		memcpy(p->tile, s.at[s.n - 1].tile, sizeof p->tile);
		rechunk_plan_count(p, rank, shape, in, out);
	}
	free(s.at);
	return r;
}
