/* SPDX-License-Identifier: BSD-2-Clause */
/* Run the parts of one piece of work on this thread and on others that are idle. */
/*
 * The calling thread takes parts like every helper, so it only waits for parts that a
 * helper has begun.  A helper that comes late, because all were busy, finds no part left;
 * the work is freed when the last thread has looked.
 */
#include "base/team.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "base/pool.h"

struct work {
	_Atomic unsigned refs;
	_Atomic size_t next; /* the next part to take */
	size_t n;
	team_fn *fn;
	void *ctx;            /* the caller's; used only while parts are left */
	pthread_mutex_t lock; /* protects all below */
	pthread_cond_t all_done;
	size_t done, failed; /* parts done; the first part that failed, or n */
	struct error why;
};

static struct {
	pthread_mutex_t lock; /* held while the team starts and stops */
	unsigned users;
	_Atomic unsigned threads;
	struct pool *_Atomic pool; /* NULL: there is no team */
} team = {.lock = PTHREAD_MUTEX_INITIALIZER};

int team_start(unsigned threads, struct error *err)
{
	struct pool *p = NULL;
	int r = 0;

	lock_scope(&team.lock);
	if (threads && !atomic_load(&team.pool))
		r = pool_new(&p, "team", threads, threads, err);
	if (r < 0)
		return r;
	if (p) {
		atomic_store(&team.threads, threads);
		atomic_store(&team.pool, p);
	}
	team.users++;
	return 0;
}

void team_stop(void)
{
	lock_scope(&team.lock);
	if (!team.users || --team.users)
		return;
	pool_free(atomic_exchange(&team.pool, NULL));
	atomic_store(&team.threads, 0);
}

unsigned team_size(void)
{
	return 1 + atomic_load(&team.threads);
}

/* ---- a piece of work ----------------------------------------------------- */

static void team_part_done(struct work *w, size_t i, int r,
			   const struct error *why)
{
	lock_scope(&w->lock);
	if (r < 0 && i < w->failed) {
		w->failed = i;
		w->why = *why;
		w->why.code = r;
	}
	if (++w->done == w->n)
		pthread_cond_signal(&w->all_done);
}

static void team_do_parts(struct work *w)
{
	size_t i;

	while ((i = atomic_fetch_add(&w->next, 1)) < w->n) {
		struct error why = {0};

		team_part_done(w, i, w->fn(w->ctx, i, &why), &why);
	}
}

static void team_work_unref(struct work *w)
{
	if (atomic_fetch_sub(&w->refs, 1) != 1)
		return;
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->all_done);
	free(w);
}

static void team_help(void *arg)
{
	team_do_parts(arg);
	team_work_unref(arg);
}

static void ask_for_help(struct work *w)
{
	struct pool *p = atomic_load(&team.pool);
	size_t n = p ? min_u64(w->n - 1, team_size() - 1) : 0;

	while (n-- > 0) {
		atomic_fetch_add(&w->refs, 1);
		if (pool_try_submit(p, team_help, w))
			continue;
		team_work_unref(w);
		return;
	}
}

/* Run all parts on the caller's thread, one after the other. */
static int run_alone(size_t n, team_fn *fn, void *ctx, struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++)
		r = fn(ctx, i, err);
	return r < 0 ? r : 0;
}

int team_run(size_t n, team_fn *fn, void *ctx, struct error *err)
{
	struct work *w = NULL;
	int r = 0;

	if (n > 1 && atomic_load(&team.pool))
		w = malloc(sizeof *w);
	if (!w)
		return run_alone(n, fn, ctx, err);
	*w = (struct work){
		.refs = 1, .n = n, .failed = n, .fn = fn, .ctx = ctx};
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->all_done, NULL);
	ask_for_help(w);
	team_do_parts(w);
	pthread_mutex_lock(&w->lock);
	while (w->done < w->n)
		pthread_cond_wait(&w->all_done, &w->lock);
	if (w->failed < w->n) {
		r = w->why.code;
		if (err)
			*err = w->why;
	}
	pthread_mutex_unlock(&w->lock);
	team_work_unref(w);
	return r;
}
