/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the order in which the samples of an epoch are read. */
#ifndef READAHEAD_ORDER_ORDER_H
#define READAHEAD_ORDER_ORDER_H

#include "readahead/order/spec.h"

/* With more samples, or more of them kept, the permutation of all or the part that is
 * kept would take more memory than users expect: 64 MiB each. */
#define ORDER_SAMPLES_MAX (UINT64_C(1) << 24)
#define ORDER_KEPT_MAX (UINT64_C(1) << 23)

/* The order of `n` samples; it is copied by value.  With `list` (borrowed) every epoch
 * has that order. */
struct order {
	struct order_spec spec;
	uint32_t n;
	const uint32_t *list;
	uint32_t length; /* samples of an epoch; may be 0 */
};
/* Set *out to an order of `n` samples, or to a list.  Returns 0, or -E2BIG with a
 * sentence. */
int order_of_samples(struct order *out, const struct order_spec *s, uint64_t n,
		     struct error *err);
int order_of_list(struct order *out, const uint32_t *list, uint64_t n,
		  struct error *err);
/* Return true if all epochs have the same order. */
bool order_is_fixed(const struct order *o);
/* Set out[] to the first `k` samples of an epoch (k <= length).  With k = length that
 * takes 4 bytes more for each of `n` samples while it runs.  Returns false if memory is
 * short. */
bool order_epoch(const struct order *o, uint32_t epoch, uint32_t k,
		 uint32_t *out);
/* Return about how many steps order_epoch takes for `k` samples. */
uint64_t order_cost(const struct order *o, uint32_t k);

#endif
