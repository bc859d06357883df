/* SPDX-License-Identifier: BSD-2-Clause */
/* What a hit in the cache costs, alone and with others at it. */
/*
 * Usage: bench-hits [THREADS...]
 *
 * So many threads (default 1 2 4 8 16 32) each take and give back references to
 * 4096 chunks that are in the cache, a few of them more often, for a second;
 * printed are hits a second of all of them, the CPU time that one takes, and the
 * involuntary and voluntary switches for a million: a lock that is waited for shows
 * in the latter.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "store/cache.h"

#define CHUNKS 4096

static struct cache *cache;
static _Atomic bool stop;
static _Atomic uint64_t hits;

static int load(void *ctx, _Atomic uint64_t *gauge, struct buf **out,
		struct error *err)
{
	(void)ctx;
	(void)err;
	*out = buf_new(1000, gauge);
	return 0;
}

static void *hit(void *arg)
{
	uint64_t seed = (uint64_t)(uintptr_t)arg * 77 + 1, n = 0;

	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		struct buf *b;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		/* Half of them go to a sixteenth of the chunks. */
		b = cache_peek(cache, 1,
			       (seed >> 40) %
				       (seed >> 63 ? CHUNKS / 16 : CHUNKS));
		buf_unref(b);
		n++;
	}
	atomic_fetch_add(&hits, n);
	return NULL;
}

static void run(unsigned threads)
{
	pthread_t *t = calloc(threads, sizeof *t);
	const struct timespec second = {.tv_sec = 1};
	struct rusage a, b;
	double cpu, n;

	getrusage(RUSAGE_SELF, &a);
	atomic_store(&stop, false);
	atomic_store(&hits, 0);
	for (unsigned i = 0; i < threads; i++)
		if (!t || pthread_create(&t[i], NULL, hit,
					 (void *)(uintptr_t)(i + 1)))
			exit(1);
	nanosleep(&second, NULL);
	atomic_store(&stop, true);
	for (unsigned i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	free(t);
	getrusage(RUSAGE_SELF, &b);
	n = (double)atomic_load(&hits) / 1e6;
	cpu = (double)(b.ru_utime.tv_sec - a.ru_utime.tv_sec +
		       b.ru_stime.tv_sec - a.ru_stime.tv_sec) +
	      1e-6 * (double)(b.ru_utime.tv_usec - a.ru_utime.tv_usec +
			      b.ru_stime.tv_usec - a.ru_stime.tv_usec);
	printf("%7u %9.1f %9.0f %9.0f %9.0f\n", threads, n, 1e3 * cpu / n,
	       (double)(b.ru_nvcsw - a.ru_nvcsw) / n,
	       (double)(b.ru_nivcsw - a.ru_nivcsw) / n);
}

int main(int argc, char **argv)
{
	static const unsigned standard[] = {1, 2, 4, 8, 16, 32};
	struct error err;

	if (cache_new(&cache, (uint64_t)1 << 30, &err) < 0)
		return 1;
	for (uint64_t i = 0; i < CHUNKS; i++) {
		struct buf *b;

		if (cache_get(cache, 1, i, 1000, 0, load, NULL, &b, &err) < 0)
			return 1;
		buf_unref(b);
	}
	printf("%7s %9s %9s %9s %9s\n", "threads", "M hits/s", "ns CPU",
	       "waits/M", "preempt/M");
	for (int i = 1; i < argc; i++)
		run((unsigned)strtoul(argv[i], NULL, 10));
	for (unsigned i = 0; argc < 2 && i < sizeof standard / sizeof *standard;
	     i++)
		run(standard[i]);
	cache_free(cache);
	return 0;
}
