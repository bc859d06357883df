/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds where in an order some reads are. */
/*
 * Reads that follow an order are near each other in it, but not each of them: workers
 * are at several batches, and other processes may read as well.  How many must be near
 * each other depends on what happens by chance: of r random reads, k are in a given
 * stretch of a share f of all positions with a probability of about C(r, k) f^k.
 */
#include "readahead/order/spot.h"

#define CHANCE 1e-3
/* A sample may be at several positions of a list. */
#define HITS_MAX 256
#define TABLE 128

/* Return how many of `r` reads are too many to be near each other by chance; r + 1 if
 * any number could be. */
static unsigned spot_reads_needed(const struct spot_search *s, unsigned r)
{
	double share = (double)s->stretch / s->of;
	double places = (double)s->n / s->stretch;
	double p = (places > 1 ? places : 1) * (double)s->tries, most = 1;
	unsigned need = r + 1;

	/* C(r, k) f^k, from k = 0 on. */
	for (unsigned k = 0; k < r; k++) {
		most *= (double)(r - k) / (k + 1) * share;
		if (k + 1 >= (r + 1) / 2 && most * p < CHANCE) {
			need = k + 1;
			break;
		}
	}
	return need;
}

struct table {
	/* Bit i is set if a key has i in its low 6 bits: most samples are ruled out by
	 * it. */
	uint64_t bits;
	uint32_t key[TABLE];
	bool used[TABLE];
};

static unsigned table_slot(uint32_t sample)
{
	return sample * 2654435761u >> 25;
}

static void table_fill(struct table *t, const struct spot_reads *reads)
{
	*t = (struct table){0};
	for (unsigned i = 0; i < reads->n; i++) {
		unsigned k = table_slot(reads->at[i]);

		while (t->used[k])
			k = (k + 1) % TABLE;
		t->used[k] = true;
		t->key[k] = reads->at[i];
		t->bits |= UINT64_C(1) << (reads->at[i] & 63);
	}
}

static bool table_has(const struct table *t, uint32_t sample)
{
	unsigned k = table_slot(sample);

	for (; t->used[k]; k = (k + 1) % TABLE)
		if (t->key[k] == sample)
			return true;
	return false;
}

bool spot_could(const struct spot_search *s, unsigned reads)
{
	return spot_reads_needed(s, reads) <= reads;
}

bool spot_find(const struct spot_search *s, const struct spot_reads *reads,
	       struct spot *out)
{
	unsigned n = 0, first = 0, best = 0,
		 need = spot_reads_needed(s, reads->n);
	uint32_t hit[HITS_MAX];
	struct table t;

	if (need > reads->n)
		return false;
	table_fill(&t, reads);
	for (uint32_t i = 0; i < s->n && n < HITS_MAX; i++)
		if (t.bits >> (s->list[i] & 63) & 1 &&
		    table_has(&t, s->list[i]))
			hit[n++] = i;
	for (unsigned i = 0; i < n; i++) {
		while (hit[i] - hit[first] >= s->stretch)
			first++;
		if (i - first + 1 > best) {
			best = i - first + 1;
			*out = (struct spot){hit[first], hit[i]};
		}
	}
	return best >= need;
}
