/* SPDX-License-Identifier: BSD-2-Clause */
/* What the store knows of the calling thread. */
#ifndef STORE_THREAD_H
#define STORE_THREAD_H

#include <stdbool.h>
#include <stdint.h>

extern _Thread_local struct store_thread {
	/* It reads what it believes somebody will want: nobody is known to go forward
	 * by that, and nothing is guessed from it. */
	bool guesses;
	/* Chunks that it decoded, or fetched, so far. */
	uint64_t loads;
} store_thread;

#endif
