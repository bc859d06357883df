/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that process units of work until none is left, or one thread has failed. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/pool.h"
#include "staging/copy_private.h"

/* Time between two calls of job->progress, in ns. */
#define PROGRESS_INTERVAL 100000000

bool copy_ends(const struct copy_run *r)
{
	return atomic_load_explicit(&r->failed, memory_order_relaxed) ||
	       *r->job->stop;
}

struct worker {
	struct copy_run *run;
	copy_unit_fn *fn;
};

static void copy_run_fail(struct copy_run *r, const struct error *err)
{
	pthread_mutex_lock(&r->lock);
	if (!atomic_load(&r->failed))
		r->failure = *err;
	atomic_store(&r->failed, true);
	pthread_mutex_unlock(&r->lock);
}

static void copy_run_thread(void *arg)
{
	struct worker *w = arg;
	struct copy_run *r = w->run;
	struct reply *reply = malloc(sizeof *reply);
	struct copy_dirs dirs;
	struct copy_unit unit;
	struct error err = {0};

	copy_dirs_init(&dirs, r->job->plan, r->job->to);
	if (!reply) {
		error_no_memory(&err, "the copy's read buffer");
		copy_run_fail(r, &err);
	}
	while (!copy_ends(r) && copy_queue_take(&r->queue, &unit))
		if (w->fn(r, &dirs, &unit, reply, &err) < 0)
			copy_run_fail(r, &err);
	copy_dirs_free(&dirs);
	free(reply);
	pthread_mutex_lock(&r->lock);
	if (--r->running == 0)
		pthread_cond_signal(&r->ended);
	pthread_mutex_unlock(&r->lock);
}

/* Wait until all threads have ended, and report progress meanwhile. */
static void copy_run_wait(struct copy_run *r)
{
	struct timespec t;

	pthread_mutex_lock(&r->lock);
	while (r->running) {
		clock_gettime(CLOCK_REALTIME, &t);
		t.tv_nsec += PROGRESS_INTERVAL;
		if (t.tv_nsec >= 1000000000) {
			t.tv_nsec -= 1000000000;
			t.tv_sec++;
		}
		pthread_cond_timedwait(&r->ended, &r->lock, &t);
		pthread_mutex_unlock(&r->lock);
		r->job->progress(r->job->ctx, atomic_load(&r->done));
		pthread_mutex_lock(&r->lock);
	}
	pthread_mutex_unlock(&r->lock);
}

int copy_run_units(struct copy_job *job, copy_unit_fn *fn, struct error *err)
{
	unsigned threads = job->options->threads;
	struct copy_run r = {.job = job, .running = threads};
	struct worker w = {&r, fn};
	struct pool *pool;
	int code;

	copy_queue_init(&r.queue, job->plan);
	pthread_mutex_init(&r.lock, NULL);
	pthread_cond_init(&r.ended, NULL);
	code = pool_new(&pool, "stage", threads, threads, err);
	if (code == 0) {
		for (unsigned i = 0; i < threads; i++)
			pool_submit(pool, copy_run_thread, &w);
		copy_run_wait(&r);
		pool_free(pool);
		if (atomic_load(&r.failed)) {
			code = r.failure.code;
			if (err)
				*err = r.failure;
		}
	}
	/* An interruption counts more than any failure. */
	if (*job->stop)
		code = error_set(err, -EINTR, "interrupted");
	pthread_cond_destroy(&r.ended);
	pthread_mutex_destroy(&r.lock);
	pthread_mutex_destroy(&r.queue.lock);
	return code;
}
