/* SPDX-License-Identifier: BSD-2-Clause */
/* Close ranges of file descriptors. */
#include "base/descriptors.h"

#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

/* The most descriptors that are closed one by one. */
#define FILES_MOST (1u << 20)

static bool close_range_of_descriptors(unsigned from, unsigned to)
{
	struct rlimit l;

	if (close_range(from, to, 0) == 0)
		return true;
	if (getrlimit(RLIMIT_NOFILE, &l) < 0 || l.rlim_max > FILES_MOST)
		return false;
	for (; from <= to && from < l.rlim_max; from++)
		close((int)from);
	return true;
}

bool descriptors_keep_only(const int *fds, unsigned n, unsigned from)
{
	unsigned next;

	do {
		next = UINT32_MAX;
		for (unsigned i = 0; i < n; i++)
			if ((unsigned)fds[i] >= from && (unsigned)fds[i] < next)
				next = (unsigned)fds[i];
		if (next > from && !close_range_of_descriptors(from, next - 1))
			return false;
		from = next + 1;
	} while (next != UINT32_MAX);
	return true;
}
