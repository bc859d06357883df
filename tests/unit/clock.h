/* SPDX-License-Identifier: BSD-2-Clause */
/* The clocks that the code under test reads; a test sets them forward or stops them. */
#ifndef TESTS_UNIT_CLOCK_H
#define TESTS_UNIT_CLOCK_H

/*
 * Code that compares times (the age of a file, when it last looked) is tested without
 * waiting.  The definition of clock_gettime() below is the one that the linker binds
 * the calls of the program to; shared libraries and the kernel keep the real time, so
 * pthread_cond_timedwait() until a time of a clock that was set forward takes longer.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

#define CLOCKS 12

static _Atomic int64_t clock_added[CLOCKS];   /* nanoseconds */
static _Atomic int64_t clock_stopped[CLOCKS]; /* where it stands; 0: it runs */

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	int64_t at = 0, stopped = 0;
	long r = syscall(SYS_clock_gettime, clock, ts);

	if (r == 0 && clock >= 0 && clock < CLOCKS) {
		at = (int64_t)ts->tv_sec * 1000000000 + ts->tv_nsec +
		     atomic_load(&clock_added[clock]);
		stopped = atomic_load(&clock_stopped[clock]);
		at = stopped ? stopped : at;
		ts->tv_sec = (time_t)(at / 1000000000);
		ts->tv_nsec = (long)(at % 1000000000);
	}
	return (int)r;
}

/* Add `ms` milliseconds to all that `clock` says from now on. */
TEST_MAYBE static void clock_forward(clockid_t clock, unsigned ms)
{
	atomic_fetch_add(&clock_added[clock], (int64_t)ms * 1000000);
}

/* Let `clock` say `ns` nanoseconds until clock_runs. */
TEST_MAYBE static void clock_stops(clockid_t clock, int64_t ns)
{
	atomic_store(&clock_stopped[clock], ns);
}

TEST_MAYBE static void clock_runs(clockid_t clock)
{
	atomic_store(&clock_stopped[clock], 0);
}

/* Return once a change to a file in the directory of `path` gets another time than
 * one before this call: file systems have a clock of their own, which stands for
 * some milliseconds. */
TEST_MAYBE static void clock_of_files_ticks(const char *path)
{
	struct stat before, now;
	char name[256];
	int fd;

	snprintf(name, sizeof name, "%s.XXXXXX", path);
	fd = mkstemp(name);
	CHECK(fd >= 0);
	CHECK_OK(unlink(name));
	CHECK_OK(fstat(fd, &before));
	do {
		CHECK_OK(fchmod(fd, 0600));
		CHECK_OK(fstat(fd, &now));
	} while (now.st_ctim.tv_sec == before.st_ctim.tv_sec &&
		 now.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
	close(fd);
}

#endif
