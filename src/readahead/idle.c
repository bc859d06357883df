/* SPDX-License-Identifier: BSD-2-Clause */
/* Is a processor idle?  Looked at now and then. */
/*
 * The kernel says what each processor did since the last look (proc_stat(5)).  If half of one
 * was not used, one is idle.  But what we read ahead uses it, so that the next look would find
 * none.  Where there are few processors the threads that read are counted as well.  While they
 * are fewer than the processors, one is idle but for our own work.  A thread counts for some
 * time after each READ, because a chunk that it waits for keeps a processor busy, too.
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

/* Processors up to which readers are counted. */
#define FEW 16
/* Places for readers.  Two in one place count as one. */
#define PLACES 64
/* Milliseconds after its last READ that a reader counts: longer than most chunks take to
 * decode. */
#define COUNTS 100
/* Milliseconds between two counts of the readers: two ticks of the coarse clock. */
#define COUNT_AGAIN 8
/* Milliseconds between two looks: reading the account of a hundred processors takes about
 * one. */
#define LOOK 200

struct idle {
	unsigned cores;
	bool fixed; /* the kernel's account is not read: for tests */
	/* Milliseconds of the clock at the last READ of a thread; 0: none yet. */
	_Atomic uint64_t last[PLACES];
	_Atomic uint64_t counted; /* the same, of the last count of readers */
	_Atomic bool few;         /* they were fewer than the processors */
	_Atomic bool unused;      /* half of one was, at the last look */
	atomic_flag looks;        /* protects what follows */
	uint64_t next;        /* milliseconds of the clock at the next look */
	uint64_t ticks, idle; /* since the machine began, at the last look */
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

	/* Written only when it changes, so that processors can share it. */
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

/* Of the processors that we may use, since the machine began; false: nobody knows. */
static bool idle_read_proc_stat(uint64_t *ticks, uint64_t *idle)
{
	cleanup_fclose FILE *f = fopen("/proc/stat", "re");
	cpu_set_t ours;
	/* A mask of more than CPU_SETSIZE processors: all count. */
	bool all = sched_getaffinity(0, sizeof ours, &ours) < 0;
	char line[256];

	*ticks = *idle = 0;
	if (!f)
		return false;
	while (fgets(line, sizeof line, f)) {
		uint64_t t[8];
		unsigned cpu;

		/* The first line is the sum of all. */
		if (!strncmp(line, "cpu ", 4))
			continue;
		if (sscanf(line,
			   "cpu%u %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
			   " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
			   &cpu, &t[0], &t[1], &t[2], &t[3], &t[4], &t[5],
			   &t[6], &t[7]) != 9) {
			if (*ticks) /* behind the processors */
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
	/* The first account is of all that has been. */
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
	/* Another thread that looks just now is as good. */
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
