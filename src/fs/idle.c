/* SPDX-License-Identifier: BSD-2-Clause */
/* Is a processor idle?  Looked at now and then. */
/*
 * The kernel says what each processor did since the last look (proc_stat(5)): if half of one
 * was not used, one is idle.  But what we read ahead uses it, so that the next look would find
 * none.  Where there are few processors the number of threads that read is known as well: as
 * long as there are fewer of them than processors, a processor is idle but for our own work.
 */
#include "fs/idle.h"

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

/* READs by which it is known how many read. */
#define READERS 16
/* Nanoseconds between two looks: reading the account of a hundred processors takes about
 * a millisecond. */
#define LOOK UINT64_C(200000000)

struct idle {
	unsigned cores;
	bool fixed; /* nobody looks; for tests */
	_Atomic pid_t reader[READERS];
	_Atomic unsigned reads;
	_Atomic bool unused;  /* half of one was, at the last look */
	atomic_flag looks;    /* protects what follows */
	uint64_t next;        /* nanoseconds of the clock at the next look */
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

void idle_note(struct idle *i, pid_t reader)
{
	unsigned n =
		atomic_fetch_add_explicit(&i->reads, 1, memory_order_relaxed);

	atomic_store_explicit(&i->reader[n % READERS], reader,
			      memory_order_relaxed);
}

static unsigned readers(const struct idle *i)
{
	pid_t seen[READERS];
	unsigned n = 0;

	for (unsigned k = 0; k < READERS; k++) {
		pid_t pid = atomic_load_explicit(&i->reader[k],
						 memory_order_relaxed);
		unsigned j = 0;

		while (j < n && seen[j] != pid)
			j++;
		if (pid && j == n)
			seen[n++] = pid;
	}
	return n;
}

/* Of the processors that we may use, since the machine began; false: nobody knows. */
static bool account(uint64_t *ticks, uint64_t *idle)
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

static void look(struct idle *i)
{
	uint64_t ticks, idle, passed, unused;

	if (!account(&ticks, &idle))
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
	struct timespec t;
	uint64_t now;

	if (i->cores <= READERS && readers(i) < i->cores)
		return true;
	clock_gettime(CLOCK_MONOTONIC, &t);
	now = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	/* Another thread that looks just now is as good. */
	if (!i->fixed && !atomic_flag_test_and_set(&i->looks)) {
		if (now >= i->next) {
			i->next = now + LOOK;
			look(i);
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
