/* SPDX-License-Identifier: BSD-2-Clause */
/* What the store knows about the calling thread. */
#ifndef STORE_THREAD_H
#define STORE_THREAD_H

#include <stdbool.h>
#include <stdint.h>

extern _Thread_local struct store_thread {
	/* The thread reads for a reader that may come: this READ does not count for
	 * detecting readers, and nothing is decoded ahead of it. */
	bool guesses;
	/* The file that the thread reads is one of several that are read in order. */
	bool forward;
	/* The thread reads only to have chunks decoded, and gives their bytes to no
	 * reader. */
	bool decodes;
	/* Chunks that the thread has decoded or fetched so far. */
	uint64_t loads;
} store_thread;

#endif
