/* SPDX-License-Identifier: BSD-2-Clause */
/* Read an HDF5 file without its data; every number of the message is checked. */
#include "views/monolith.h"

#include <errno.h>
#include <string.h>

#include "base/number.h"

struct monolith_part monolith_part_at(const struct monolith *m, uint64_t i)
{
	struct monolith_part p;

	memcpy(&p, m->parts + i * sizeof p, sizeof p);
	return p;
}

static bool monolith_sizes_fit(const struct monolith_tail *t, size_t n)
{
	uint64_t sum;

	return !mul_overflows(t->nparts, sizeof(struct monolith_part), &sum) &&
	       !add_overflows(sum, t->front, &sum) &&
	       !add_overflows(sum, t->notes, &sum) &&
	       !add_overflows(sum, sizeof *t, &sum) && sum == n;
}

/* Parts must follow each other, each on a page of its own, up to the end of the file. */
static bool monolith_parts_fit(const struct monolith *m)
{
	uint64_t end = m->tail.front;

	for (uint64_t i = 0; i < m->tail.nparts; i++) {
		struct monolith_part p = monolith_part_at(m, i);

		if (p.at % MONOLITH_PAGE || !p.bytes || p.at < end ||
		    (i == 0 && p.at != end) ||
		    add_overflows(p.at, p.bytes, &end))
			return false;
	}
	return end == m->tail.size && end <= INT64_MAX && m->tail.front;
}

int monolith_read(const void *data, size_t n, struct monolith *out,
		  struct error *err)
{
	const char *at = data;
	struct monolith_tail *t = &out->tail;

	if (n >= sizeof *t) {
		memcpy(t, at + n - sizeof *t, sizeof *t);
		if (monolith_sizes_fit(t, n)) {
			out->notes = at + t->front;
			out->parts = out->notes + t->notes;
			if (monolith_parts_fit(out))
				return 0;
		}
	}
	return error_set(err, -EIO, "the HDF5 file made of it is inconsistent");
}
