/* SPDX-License-Identifier: BSD-2-Clause */
/* What the store knows of the calling thread. */
#ifndef STORE_THREAD_H
#define STORE_THREAD_H

#include <stdbool.h>
#include <stdint.h>

extern _Thread_local struct store_thread {
	/* It reads on behalf of a reader that may come: no reader is detected by this READ,
	 * and nothing is decoded ahead of it. */
	bool guesses;
	/* The file that it reads is one of several that are read in order. */
	bool forward;
	/* It reads only to have chunks decoded, and gives their bytes to no reader. */
	bool decodes;
	/* Chunks that it decoded, or fetched, so far. */
	uint64_t loads;
} store_thread;

#endif
