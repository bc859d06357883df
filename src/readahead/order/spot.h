/* SPDX-License-Identifier: BSD-2-Clause */
/* Where in an order are those who read? */
#ifndef READAHEAD_ORDER_SPOT_H
#define READAHEAD_ORDER_SPOT_H

#include <stdbool.h>
#include <stdint.h>

#define SPOT_READS 32

/* Samples that were read lately, each once. */
struct spot_reads {
	unsigned n;
	uint32_t at[SPOT_READS];
};
/* Of `of` positions these are looked through, in which readers may be `stretch` (> 0) apart;
 * so many orders are tried. */
struct spot_search {
	const uint32_t *list;
	uint32_t n, of, stretch;
	uint64_t tries;
};
struct spot {
	uint32_t low,
		high; /* positions of those that were found near each other */
};
/* Could so many reads tell anything?  Looks at no list. */
bool spot_could(const struct spot_search *s, unsigned reads);
/* False: fewer of the reads are near each other than would be so by chance once in a
 * thousand searches (of all tries together), or than half of them. */
bool spot_find(const struct spot_search *s, const struct spot_reads *reads,
	       struct spot *out);

#endif
