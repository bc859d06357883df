/* SPDX-License-Identifier: BSD-2-Clause */
/* Signals that end long work: the work notices them, cleans up, and then dies of them. */
#include "app/interrupt.h"

#include <signal.h>
#include <stddef.h>

_Atomic int interrupted;

static void catch (int n)
{
	interrupted = n;
}

void interrupt_catch(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
	struct sigaction a = {.sa_handler = catch,
			      .sa_flags = (int)SA_RESETHAND};

	sigemptyset(&a.sa_mask);
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
		struct sigaction before;

		if (sigaction(signals[i], NULL, &before) == 0 &&
		    before.sa_handler != SIG_IGN)
			sigaction(signals[i], &a, NULL);
	}
}

void interrupt_die(void)
{
	if (!interrupted)
		return;
	signal(interrupted, SIG_DFL);
	raise(interrupted);
}
