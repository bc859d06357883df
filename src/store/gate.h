/* SPDX-License-Identifier: BSD-2-Clause */
/* Lets loads begin while the memory that they need together stays bounded. */
#ifndef STORE_GATE_H
#define STORE_GATE_H

#include <pthread.h>
#include <stdint.h>

/* Embedded in its user's struct, which calls gate_init. */
struct gate {
	pthread_mutex_t lock;
	uint64_t limit;
	uint64_t sum;   /* bytes of all costs inside */
	unsigned large; /* number of those that are not small */
	struct gate_waiter *head, **tail;
};

void gate_init(struct gate *g, uint64_t limit);
void gate_destroy(struct gate *g);
/* Wait until `cost` bytes fit in addition to those inside, or nothing large is inside.
 * First come, first served; small costs go in at once. */
void gate_enter(struct gate *g, uint64_t cost);
/* Go in whatever the sum; never blocks. */
void gate_force(struct gate *g, uint64_t cost);
void gate_leave(struct gate *g, uint64_t cost);

#endif
