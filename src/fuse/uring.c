/* SPDX-License-Identifier: BSD-2-Clause */
/* FUSE over io_uring, and why it is not used. */
/*
 * A request then takes less processor time (docs/performance.md), but:
 *
 *	- Each processor has a queue of its own, which one thread of libfuse answers.  An
 *	  answer takes from 10 microseconds to seconds, and what waits behind a slow one is not
 *	  taken by an idle thread.  Samples of compressed chunks are mostly read more slowly.
 *	- The queues take 8 MiB for each processor, used or not.
 *
 * So FUSE_URING_ENABLE, which a user sets for all mounts, does not hold for ours.
 */
#include "fuse/uring.h"

#include <stddef.h>
#include <stdlib.h>

/* The first version of libfuse with FUSE over io_uring, as fuse_version() has it. */
#define FIRST 318

bool uring_is_wanted(int libfuse, const char *value)
{
	/* libfuse reads the value as a number, too. */
	return libfuse >= FIRST && value && strtol(value, NULL, 10) != 0;
}
