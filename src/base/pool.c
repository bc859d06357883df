/* SPDX-License-Identifier: BSD-2-Clause */
/* Worker threads that take jobs from one bounded queue. */
#include "base/pool.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"

/*
 * A ring of jobs under one lock, with a condition for each event that threads wait for: a
 * job (workers), room (submitters), rest (pool_drain).  Workers run with every signal
 * blocked, so signals go to the thread that handles them.
 */
struct job {
	pool_fn *fn;
	void *arg;
};
struct pool {
	pthread_mutex_t lock; /* protects all but `threads`, `thread` */
	pthread_cond_t has_job, has_room, at_rest;
	bool stopping;
	unsigned busy;    /* workers that are running a job */
	unsigned depth;   /* jobs that fit in `ring` */
	unsigned head, n; /* index of the first job, and number of jobs */
	struct job *ring;
	unsigned threads; /* number of threads started and not joined */
	pthread_t *thread;
};

static void *pool_worker(void *arg)
{
	struct pool *p = arg;
	struct job job;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		while (!p->n && !p->stopping)
			pthread_cond_wait(&p->has_job, &p->lock);
		if (!p->n)
			break;
		job = p->ring[p->head];
		p->head = (p->head + 1) % p->depth;
		p->n--;
		p->busy++;
		pthread_cond_signal(&p->has_room);
		pthread_mutex_unlock(&p->lock);
		job.fn(job.arg);
		pthread_mutex_lock(&p->lock);
		p->busy--;
		if (!p->busy && !p->n)
			pthread_cond_broadcast(&p->at_rest);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

static int pool_start(struct pool *p, const char *name, unsigned threads,
		      struct error *err)
{
	sigset_t all, old;
	char label[16]; /* the kernel keeps 16 bytes of a thread's name */
	int r = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (p->threads < threads && !r) {
		r = pthread_create(&p->thread[p->threads], NULL, pool_worker,
				   p);
		if (r)
			break;
		snprintf(label, sizeof label, "%.11s-%u", name,
			 p->threads % 1000);
		pthread_setname_np(p->thread[p->threads], label);
		p->threads++;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r)
		return error_errno(err, -r, "cannot start %s thread %u of %u",
				   name, p->threads + 1, threads);
	return 0;
}

int pool_new(struct pool **out, const char *name, unsigned threads,
	     unsigned depth, struct error *err)
{
	struct pool *p = calloc(1, sizeof *p);
	int r;

	*out = NULL;
	if (!p)
		return error_set(err, -ENOMEM, "out of memory for %s threads",
				 name);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->has_job, NULL);
	pthread_cond_init(&p->has_room, NULL);
	pthread_cond_init(&p->at_rest, NULL);
	p->depth = depth ? depth : 1;
	p->ring = calloc(p->depth, sizeof *p->ring);
	p->thread = calloc(threads, sizeof *p->thread);
	if (!p->ring || !p->thread)
		r = error_set(err, -ENOMEM, "out of memory for %s threads",
			      name);
	else
		r = pool_start(p, name, threads, err);
	if (r < 0) {
		pool_free(p);
		return r;
	}
	*out = p;
	return 0;
}

/* Append a job.  The caller holds the lock and has checked that there is room. */
static void pool_push(struct pool *p, pool_fn *fn, void *arg)
{
	p->ring[(p->head + p->n) % p->depth] = (struct job){fn, arg};
	p->n++;
	pthread_cond_signal(&p->has_job);
}

void pool_submit(struct pool *p, pool_fn *fn, void *arg)
{
	lock_scope(&p->lock);
	while (p->n == p->depth)
		pthread_cond_wait(&p->has_room, &p->lock);
	pool_push(p, fn, arg);
}

bool pool_try_submit(struct pool *p, pool_fn *fn, void *arg)
{
	lock_scope(&p->lock);
	if (p->n == p->depth)
		return false;
	pool_push(p, fn, arg);
	return true;
}

void pool_drain(struct pool *p)
{
	lock_scope(&p->lock);
	while (p->n || p->busy)
		pthread_cond_wait(&p->at_rest, &p->lock);
}

void pool_free(struct pool *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stopping = true;
	pthread_cond_broadcast(&p->has_job);
	pthread_mutex_unlock(&p->lock);
	for (unsigned i = 0; i < p->threads; i++)
		pthread_join(p->thread[i], NULL);
	pthread_cond_destroy(&p->has_job);
	pthread_cond_destroy(&p->has_room);
	pthread_cond_destroy(&p->at_rest);
	pthread_mutex_destroy(&p->lock);
	free(p->thread);
	free(p->ring);
	free(p);
}
