/* SPDX-License-Identifier: BSD-2-Clause */
/* A random order from a seed: the same everywhere, and the one that PyTorch makes. */

/*
 * Any good generator would do.  This one lets users make the same order themselves, with
 * one line of Python, and compare.  It is MT19937 (Matsumoto and Nishimura, 1998), seeded
 * with one word, and the shuffle of ATen's randperm on a CPU: a forward Fisher-Yates
 * shuffle with numbers of 32 bits.  From MANY elements on, remainders of these would be
 * uneven, and numbers of 64 bits are used.
 */
#include "base/shuffle.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS = 624, MIDDLE = 397 };
#define MANY (UINT64_C(0xffffffff) / 20)

struct twister {
	uint32_t at[WORDS];
	unsigned next;
};

static void seed_with(struct twister *t, uint32_t seed)
{
	t->at[0] = seed;
	for (unsigned i = 1; i < WORDS; i++)
		t->at[i] =
			1812433253u * (t->at[i - 1] ^ t->at[i - 1] >> 30) + i;
	t->next = WORDS;
}

static void twister_refill(struct twister *t)
{
	for (unsigned i = 0; i < WORDS; i++) {
		uint32_t y = (t->at[i] & 0x80000000u) |
			     (t->at[(i + 1) % WORDS] & 0x7fffffffu);

		t->at[i] = t->at[(i + MIDDLE) % WORDS] ^ y >> 1 ^
			   (y & 1 ? 0x9908b0dfu : 0);
	}
	t->next = 0;
}

static uint32_t next_32(struct twister *t)
{
	uint32_t y;

	if (t->next == WORDS)
		twister_refill(t);
	y = t->at[t->next++];
	y ^= y >> 11;
	y ^= y << 7 & 0x9d2c5680u;
	y ^= y << 15 & 0xefc60000u;
	return y ^ y >> 18;
}

static uint64_t next_64(struct twister *t)
{
	uint64_t high = next_32(t);

	return high << 32 | next_32(t);
}

/* Choose one of the n - i places that are left, from i on. */
static uint64_t draw_position(struct twister *t, uint64_t n, uint64_t i)
{
	uint64_t r = n < MANY ? next_32(t) : next_64(t);

	return i + r % (n - i);
}

void shuffle_order(uint64_t *order, uint64_t n, uint64_t seed)
{
	struct twister t;

	seed_with(&t, (uint32_t)seed);
	for (uint64_t i = 0; i < n; i++)
		order[i] = i;
	for (uint64_t i = 0; i + 1 < n; i++) {
		uint64_t j = draw_position(&t, n, i), was = order[i];

		order[i] = order[j];
		order[j] = was;
	}
}

void shuffle_order_32(uint32_t *order, uint32_t n, uint64_t seed)
{
	struct twister t;

	seed_with(&t, (uint32_t)seed);
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	for (uint32_t i = 0; (uint64_t)i + 1 < n; i++) {
		uint32_t j = (uint32_t)draw_position(&t, n, i), was = order[i];

		order[i] = order[j];
		order[j] = was;
	}
}

/* ---- only its head ------------------------------------------------------- */

/*
 * After k steps the first k elements are final.  All others are in their own places
 * except at most k, and these are kept in a hash table: place -> element.
 */
struct moved {
	uint32_t place, element;
};
#define NOWHERE UINT32_MAX

/* Return the slot of `place` in the table, or the empty slot where it would be. */
static struct moved *moved_at(struct moved *table, uint32_t mask,
			      uint32_t place)
{
	uint32_t i = place * 2654435761u & mask;

	while (table[i].place != NOWHERE && table[i].place != place)
		i = (i + 1) & mask;
	return &table[i];
}

static uint32_t element_at(struct moved *table, uint32_t mask, uint32_t place)
{
	struct moved *m = moved_at(table, mask, place);

	return m->place == place ? m->element : place;
}

bool shuffle_head(uint32_t *order, uint32_t k, uint32_t n, uint64_t seed)
{
	uint32_t mask = 15;
	struct moved *table;
	struct twister t;

	while (mask / 2 < k)
		mask = 2 * mask + 1;
	table = malloc(((size_t)mask + 1) * sizeof *table);
	if (!table)
		return false;
	memset(table, 0xff, ((size_t)mask + 1) * sizeof *table);
	seed_with(&t, (uint32_t)seed);
	for (uint32_t i = 0; i < k; i++) {
		uint32_t j = i + 1 < n ? (uint32_t)draw_position(&t, n, i) : i;

		order[i] = element_at(table, mask, j);
		if (j != i) /* the place i is never asked for again */
			*moved_at(table, mask, j) =
				(struct moved){j, element_at(table, mask, i)};
	}
	free(table);
	return true;
}
