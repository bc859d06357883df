/* SPDX-License-Identifier: BSD-2-Clause */
/* Lets loads begin while the memory that they need together stays bounded. */
#include "store/gate.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

/*
 * Threads that must wait stand in a queue, and only its head may go in: a giant load that
 * needs all the room is not overtaken for ever by others that still fit.  When nothing
 * large is inside, the head goes in whatever it costs, so the queue always moves as long
 * as those inside leave.
 *
 * Small loads (tables of chunk locations, texts) never wait.  They count, but a few of
 * them behind a giant's seconds of decoding would stall readers that need hardly any
 * memory.  Their sum is bounded by the number of threads: 64 of them make one limit.
 */
#define SMALL_SHARE 64

struct gate_waiter {
	struct gate_waiter *next;
	uint64_t cost;
	bool admitted;
	pthread_cond_t turn;
};

void gate_init(struct gate *g, uint64_t limit)
{
	pthread_mutex_init(&g->lock, NULL);
	g->limit = limit;
	g->sum = 0;
	g->large = 0;
	g->head = NULL;
	g->tail = &g->head;
}

void gate_destroy(struct gate *g)
{
	pthread_mutex_destroy(&g->lock);
}

static bool gate_cost_is_small(const struct gate *g, uint64_t cost)
{
	return cost <= g->limit / SMALL_SHARE;
}

static bool gate_fits(const struct gate *g, uint64_t cost)
{
	return !g->large || (g->sum <= g->limit && cost <= g->limit - g->sum);
}

static void gate_let_in(struct gate *g, uint64_t cost)
{
	g->sum += cost;
	g->large += !gate_cost_is_small(g, cost);
}

void gate_enter(struct gate *g, uint64_t cost)
{
	struct gate_waiter w = {.cost = cost};

	lock_scope(&g->lock);
	if (gate_cost_is_small(g, cost) || (!g->head && gate_fits(g, cost))) {
		gate_let_in(g, cost);
		return;
	}
	pthread_cond_init(&w.turn, NULL);
	*g->tail = &w;
	g->tail = &w.next;
	while (!w.admitted)
		pthread_cond_wait(&w.turn, &g->lock);
	pthread_cond_destroy(&w.turn);
}

void gate_force(struct gate *g, uint64_t cost)
{
	lock_scope(&g->lock);
	gate_let_in(g, cost);
}

void gate_leave(struct gate *g, uint64_t cost)
{
	struct gate_waiter *w;

	lock_scope(&g->lock);
	g->sum -= cost;
	g->large -= !gate_cost_is_small(g, cost);
	while ((w = g->head) && gate_fits(g, w->cost)) {
		g->head = w->next;
		if (!g->head)
			g->tail = &g->head;
		gate_let_in(g, w->cost);
		w->admitted = true;
		pthread_cond_signal(&w->turn);
	}
}
