/* SPDX-License-Identifier: BSD-2-Clause */
/* The gate's queue: in order, giants included, and the small pass by. */
#include "store/gate.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "test.h"

static struct gate gate;
static _Atomic unsigned order;
static void *enter_giant(void *arg)
{
	gate_enter(&gate, 1000);
	*(unsigned *)arg = atomic_fetch_add(&order, 1);
	gate_leave(&gate, 1000);
	return NULL;
}
static void *enter_medium(void *arg)
{
	gate_enter(&gate, 50);
	*(unsigned *)arg = atomic_fetch_add(&order, 1);
	gate_leave(&gate, 50);
	return NULL;
}

static void wait_for_queue(pthread_t *t, void *(*fn)(void *), unsigned *arg)
{
	struct gate_waiter **before, **now;

	pthread_mutex_lock(&gate.lock);
	before = gate.tail;
	pthread_mutex_unlock(&gate.lock);
	CHECK_OK(pthread_create(t, NULL, fn, arg));
	do {
		/* It polls: only the queue ends the loop. */
		usleep(100);
		pthread_mutex_lock(&gate.lock);
		now = gate.tail;
		pthread_mutex_unlock(&gate.lock);
	} while (now == before);
}

TEST(giants_are_not_overtaken)
{
	unsigned giant, medium;
	pthread_t t[2];

	gate_init(&gate, 100);
	gate_enter(&gate, 40);
	wait_for_queue(&t[0], enter_giant, &giant);
	wait_for_queue(&t[1], enter_medium, &medium); /* would fit */
	gate_enter(&gate, 1); /* the small do not wait */
	gate_leave(&gate, 40);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	gate_leave(&gate, 1);
	CHECK_EQ_U(giant, 0);
	CHECK_EQ_U(medium, 1);
	CHECK_EQ_U(gate.sum, 0);
	CHECK_EQ_U(gate.large, 0);
	gate_destroy(&gate);
}

TEST(nothing_large_inside_lets_anything_in)
{
	gate_init(&gate, 100);
	gate_enter(&gate, 1);
	gate_enter(&gate, UINT64_C(1) << 50);
	gate_enter(&gate, 1);
	gate_force(&gate, 70);
	CHECK_EQ_U(gate.large, 2);
	gate_leave(&gate, UINT64_C(1) << 50);
	gate_enter(&gate, 28); /* 1 + 1 + 70 + 28: exactly full */
	CHECK_EQ_U(gate.sum, 100);
	gate_leave(&gate, 28);
	gate_leave(&gate, 70);
	gate_leave(&gate, 1);
	gate_leave(&gate, 1);
	CHECK_EQ_U(gate.sum, 0);
	CHECK_EQ_U(gate.large, 0);
	gate_destroy(&gate);
}

int main(void)
{
	RUN(giants_are_not_overtaken);
	RUN(nothing_large_inside_lets_anything_in);
	return test_done();
}
