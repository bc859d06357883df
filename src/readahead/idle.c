/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells whether a processor is idle. */
/*
 * The kernel accounts for the time of each processor (proc_stat(5)).  If half of one was
 * unused since the last measurement, one is idle.  But reading ahead uses it, so the
 * next measurement would find none.  So on machines with few processors the threads that
 * read are counted as well: while they are fewer than the processors, one is idle but
 * for the daemon's own work.  A thread counts for some time after each READ, because a
 * chunk that it waits for keeps a processor busy, too.
 */
#include "readahead/idle.h"

#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/system.h"

/* The most processors with which readers are counted. */
#define FEW 16
/* Slots for readers.  Two readers in one slot count as one. */
#define PLACES 64
/* Milliseconds after its last READ that a reader counts: longer than most chunks take to
 * decode. */
#define COUNTS 100
/* Milliseconds between two counts of the readers: two ticks of the coarse clock. */
#define COUNT_AGAIN 8
/* Milliseconds between two measurements: reading /proc/stat of a hundred processors
 * takes about one. */
#define LOOK 200

struct idle {
	unsigned cores;
	bool fixed; /* for tests: /proc/stat is not read */
	/* Milliseconds of the clock at the last READ of a thread; 0: none yet. */
	_Atomic uint64_t last[PLACES];
	/* Milliseconds of the clock at the last count of readers. */
	_Atomic uint64_t counted;
	/* Readers were fewer than the processors. */
	_Atomic bool few;
	/* Half of a processor was unused at the last measurement. */
	_Atomic bool unused;
	atomic_flag looks; /* protects all below */
	/* Milliseconds of the clock at the next measurement. */
	uint64_t next;
	/* Since the machine started, at the last measurement. */
	uint64_t ticks, idle;
};

struct idle *idle_new(void)
{
	struct idle *i = calloc(1, sizeof *i);

	if (!i)
		return NULL;
	i->cores = system_cores();
	atomic_flag_clear(&i->looks);
	return i;
}

void idle_free(struct idle *i)
{
	free(i);
}

static uint64_t idle_time(const _Atomic uint64_t *n)
{
	return atomic_load_explicit(n, memory_order_relaxed);
}

static void idle_time_set(_Atomic uint64_t *n, uint64_t to)
{
	atomic_store_explicit(n, to, memory_order_relaxed);
}

static uint64_t idle_clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void idle_note(struct idle *i, pid_t reader)
{
	_Atomic uint64_t *last = &i->last[(uint32_t)reader % PLACES];
	uint64_t now = idle_clock_ms();

	/* It is written only when it changes, so that processors can share the cache
	 * line. */
	if (idle_time(last) != now)
		idle_time_set(last, now);
}

static unsigned idle_count_readers(const struct idle *i, uint64_t now)
{
	unsigned n = 0;

	for (unsigned k = 0; k < PLACES; k++) {
		uint64_t last = idle_time(&i->last[k]);

		n += last && last + COUNTS > now;
	}
	return n;
}

/* Return true if fewer threads read than there are processors, which are few. */
static bool few_read(struct idle *i, uint64_t now)
{
	if (i->cores > FEW)
		return false;
	if (i->fixed || now - idle_time(&i->counted) >= COUNT_AGAIN) {
		idle_time_set(&i->counted, now);
		atomic_store_explicit(&i->few,
				      idle_count_readers(i, now) < i->cores,
				      memory_order_relaxed);
	}
	return atomic_load_explicit(&i->few, memory_order_relaxed);
}

/* Set *ticks and *idle to the time of the processors that this process may use, in all
 * and idle, in ticks since the machine started.  Returns false if it is unknown. */
static bool idle_read_proc_stat(uint64_t *ticks, uint64_t *idle)
{
	cleanup_fclose FILE *f = fopen("/proc/stat", "re");
	cpu_set_t ours;
	/* This fails with more than CPU_SETSIZE processors; then all count. */
	bool all = sched_getaffinity(0, sizeof ours, &ours) < 0;
	char line[256];

	*ticks = *idle = 0;
	if (!f)
		return false;
	while (fgets(line, sizeof line, f)) {
		uint64_t t[8];
		unsigned cpu;

		/* The first line is the sum of all processors. */
		if (!strncmp(line, "cpu ", 4))
			continue;
		if (sscanf(line,
			   "cpu%u %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
			   " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
			   &cpu, &t[0], &t[1], &t[2], &t[3], &t[4], &t[5],
			   &t[6], &t[7]) != 9) {
			/* This line is behind those of the processors. */
			if (*ticks)
				break;
			continue;
		}
		if (!all && (cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &ours)))
			continue;
		*idle += t[3] + t[4];
		for (unsigned k = 0; k < 8; k++)
			*ticks += t[k];
	}
	return *ticks > 0;
}

static void idle_update(struct idle *i)
{
	uint64_t ticks, idle, passed, unused;

	if (!idle_read_proc_stat(&ticks, &idle))
		return;
	passed = ticks - i->ticks;
	unused = idle - i->idle;
	/* The first measurement covers all time since the machine started: it does not
	 * count. */
	atomic_store(&i->unused,
		     i->ticks && passed && 2 * unused * i->cores >= passed);
	i->ticks = ticks;
	i->idle = idle;
}

bool idle_now(struct idle *i)
{
	uint64_t now = idle_clock_ms();

	if (few_read(i, now))
		return true;
	/* If another thread measures just now, its result will do. */
	if (!i->fixed && !atomic_flag_test_and_set(&i->looks)) {
		if (now >= i->next) {
			i->next = now + LOOK;
			idle_update(i);
		}
		atomic_flag_clear(&i->looks);
	}
	return atomic_load(&i->unused);
}

void idle_set_cores(struct idle *i, unsigned cores)
{
	i->cores = cores;
	i->fixed = true;
}
