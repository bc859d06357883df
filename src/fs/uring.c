/* SPDX-License-Identifier: BSD-2-Clause */
/* FUSE over io_uring, and why not. */
/*
 * A request then takes less processor time (docs/performance.md), but:
 *
 *	- Each processor has a queue of its own, which one thread answers.  Ours takes from
 *	  10 microseconds to seconds for an answer, so that others have to take what waits
 *	  behind a slow one.
 *	- The queues take 8 MiB for each processor, used or not.
 *
 * So what a user sets for all of his mounts is not for this one.
 */
#include "fs/uring.h"

#include <stddef.h>
#include <stdlib.h>

/* The first libfuse that has it. */
#define FIRST 318

bool uring_is_wanted(int libfuse, const char *value)
{
	/* A number, as libfuse reads it. */
	return libfuse >= FIRST && value && strtol(value, NULL, 10) != 0;
}
