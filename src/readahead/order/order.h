/* SPDX-License-Identifier: BSD-2-Clause */
/* The samples of an epoch in the order in which they are read. */
#ifndef READAHEAD_ORDER_ORDER_H
#define READAHEAD_ORDER_ORDER_H

#include "readahead/order/spec.h"

/* More than these, and the permutation of all or what is kept of it take more memory than
 * anybody expects: 64 MiB each. */
#define ORDER_SAMPLES_MAX (UINT64_C(1) << 24)
#define ORDER_KEPT_MAX (UINT64_C(1) << 23)

/* Of n samples; by value.  With `list` (borrowed) every epoch is that. */
struct order {
	struct order_spec spec;
	uint32_t n;
	const uint32_t *list;
	uint32_t length; /* samples of an epoch; 0: none */
};
/* -E2BIG with a sentence. */
int order_of_samples(struct order *out, const struct order_spec *s, uint64_t n,
		     struct error *err);
int order_of_list(struct order *out, const uint32_t *list, uint64_t n,
		  struct error *err);
/* Is there one order, whatever the epoch? */
bool order_is_fixed(const struct order *o);
/* The first k samples of an epoch (k <= length).  With k = length: all; that takes 4 bytes
 * for each of n more while it is made.  False: no memory. */
bool order_epoch(const struct order *o, uint32_t epoch, uint32_t k,
		 uint32_t *out);
/* About how many steps that takes. */
uint64_t order_cost(const struct order *o, uint32_t k);

#endif
