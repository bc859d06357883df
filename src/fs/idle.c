/* SPDX-License-Identifier: BSD-2-Clause */
/* Is a processor idle?  Looked at now and then. */
/*
 * One is if fewer threads read than there are processors: of these, each keeps one busy, or
 * the worker that answers him.  Of more, all may wait for a disk or do something else than
 * read; so the kernel's account of what each processor did since the last look counts as
 * well (proc_stat(5)), where it says that half of one was not used.
 */
#include "fs/idle.h"

#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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
	_Atomic uint64_t next; /* look, when the clock says so */
	_Atomic bool unused;
	/* Of the one who looks: ticks, and those of them that nobody used, so far. */
	uint64_t ticks, idle;
};

struct idle *idle_new(void)
{
	struct idle *i = calloc(1, sizeof *i);

	if (i)
		i->cores = system_cores();
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
	char line[256];

	*ticks = *idle = 0;
	if (!f || sched_getaffinity(0, sizeof ours, &ours) < 0)
		return false;
	while (fgets(line, sizeof line, f)) {
		uint64_t t[8];
		unsigned cpu;

		if (sscanf(line,
			   "cpu%u %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
			   " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
			   &cpu, &t[0], &t[1], &t[2], &t[3], &t[4], &t[5],
			   &t[6], &t[7]) != 9) {
			if (*ticks) /* behind the processors */
				break;
			continue;
		}
		if (cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &ours))
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
	uint64_t next = atomic_load(&i->next), now;
	struct timespec t;

	if (readers(i) < i->cores)
		return true;
	clock_gettime(CLOCK_MONOTONIC, &t);
	now = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	if (!i->fixed && now >= next &&
	    atomic_compare_exchange_strong(&i->next, &next, now + LOOK))
		look(i);
	return atomic_load(&i->unused);
}

void idle_set_cores(struct idle *i, unsigned cores)
{
	i->cores = cores;
	i->fixed = true;
}
