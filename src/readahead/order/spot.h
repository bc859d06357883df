/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds where in an order some reads are. */
#ifndef READAHEAD_ORDER_SPOT_H
#define READAHEAD_ORDER_SPOT_H

#include <stdbool.h>
#include <stdint.h>

#define SPOT_READS 32

/* Samples that were read lately, without duplicates. */
struct spot_reads {
	unsigned n;
	uint32_t at[SPOT_READS];
};
/* A search through `n` of the order's `of` positions, in which readers may be `stretch`
 * (> 0) positions apart; `tries` orders are tried in all. */
struct spot_search {
	const uint32_t *list;
	uint32_t n, of, stretch;
	uint64_t tries;
};
struct spot {
	uint32_t low,
		/* First and last position of the reads found near each other. */
		high;
};
/* Return true if this many reads could be enough to find a place.  Does not use the
 * list. */
bool spot_could(const struct spot_search *s, unsigned reads);
/* Find the place where most of the reads are near each other.  Returns false if they are
 * fewer than half of the reads, or so few that chance would bring them together once in
 * a thousand searches (of all tries together). */
bool spot_find(const struct spot_search *s, const struct spot_reads *reads,
	       struct spot *out);

#endif
