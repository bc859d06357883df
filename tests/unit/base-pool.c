/* SPDX-License-Identifier: BSD-2-Clause */
/* The pool runs every job once, says when it is full, drains and ends. */
#include "base/pool.h"

#include <pthread.h>
#include <stdatomic.h>

#include "test.h"

static _Atomic unsigned ran;
static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;

static void count(void *arg)
{
	atomic_fetch_add((_Atomic unsigned *)arg, 1);
}

static void at_door(void *arg)
{
	pthread_mutex_lock(&door);
	pthread_mutex_unlock(&door);
	count(arg);
}

static struct pool *new_pool(unsigned threads, unsigned depth)
{
	struct error err = {0};
	struct pool *p = NULL;

	CHECK_OK(pool_new(&p, "a rather long name", threads, depth, &err));
	return p;
}

TEST(every_job_once)
{
	static _Atomic unsigned each[5000];
	struct pool *p = new_pool(4, 7);

	for (unsigned i = 0; i < 5000; i++)
		pool_submit(p, count, &each[i]);
	pool_drain(p);
	for (unsigned i = 0; i < 5000; i++)
		CHECK_EQ_U(each[i], 1);
	pool_drain(p);
	pool_free(p);
}

TEST(full_queue_refuses)
{
	struct pool *p = new_pool(1, 2);
	unsigned taken = 0;

	ran = 0;
	pthread_mutex_lock(&door);
	for (unsigned i = 0; i < 10; i++)
		taken += pool_try_submit(p, at_door, &ran);
	/* Two in the queue, and one more if the worker was quick. */
	CHECK(taken == 2 || taken == 3);
	CHECK_EQ_U(ran, 0);
	pthread_mutex_unlock(&door);
	pool_drain(p);
	CHECK_EQ_U(ran, taken);
	CHECK(pool_try_submit(p, count, &ran));
	pool_free(p);
	CHECK_EQ_U(ran, taken + 1);
}

TEST(free_finishes_the_queue)
{
	struct pool *p = new_pool(2, 100);

	ran = 0;
	pthread_mutex_lock(&door);
	for (unsigned i = 0; i < 100; i++)
		pool_submit(p, at_door, &ran);
	pthread_mutex_unlock(&door);
	pool_free(p);
	CHECK_EQ_U(ran, 100);
	pool_free(NULL);
}

static struct pool *shared;
static void *submitter(void *arg)
{
	for (unsigned i = 0; i < 5000; i++)
		pool_submit(shared, count, arg);
	return NULL;
}

TEST(many_submitters)
{
	pthread_t t[4];

	shared = new_pool(3, 1);
	ran = 0;
	for (unsigned i = 0; i < 4; i++)
		CHECK_OK(pthread_create(&t[i], NULL, submitter, &ran));
	for (unsigned i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	pool_drain(shared);
	CHECK_EQ_U(ran, 20000);
	pool_free(shared);
}

int main(void)
{
	RUN(every_job_once);
	RUN(full_queue_refuses);
	RUN(free_finishes_the_queue);
	RUN(many_submitters);
	return test_done();
}
