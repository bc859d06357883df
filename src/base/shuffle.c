/* SPDX-License-Identifier: BSD-2-Clause */
/* A random order that a seed makes: the same everywhere, and that of PyTorch. */

/*
 * Any good generator would do.  This one has the merit that users can make the same
 * order themselves, with one line of Python, and compare.  It is MT19937 (Matsumoto and
 * Nishimura, 1998), seeded with one word, and the shuffle of ATen's randperm on a CPU:
 * forward Fisher-Yates with numbers of 32 bits.  From MANY elements on their remainders
 * would be uneven, and numbers have 64.
 */
#include "base/shuffle.h"

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

static void turn(struct twister *t)
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
		turn(t);
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

void shuffle_order(uint64_t *order, uint64_t n, uint64_t seed)
{
	struct twister t;

	seed_with(&t, (uint32_t)seed);
	for (uint64_t i = 0; i < n; i++)
		order[i] = i;
	for (uint64_t i = 0; i + 1 < n; i++) {
		uint64_t r = n < MANY ? next_32(&t) : next_64(&t);
		uint64_t j = i + r % (n - i), was = order[i];

		order[i] = order[j];
		order[j] = was;
	}
}
