/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of the table of backing files that consist of several files. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/cleanup.h"
#include "extent/handles_private.h"

uint32_t handles_add_joined(struct handles *h, const char *name,
			    const struct handles_piece *p, unsigned n)
{
	struct joined *j = malloc(sizeof *j + n * sizeof *p);
	uint32_t file = n && j ? handles_add(h, name) : NONE;

	if (file == NONE) {
		free(j);
		return NONE;
	}
	j->n = n;
	memcpy(j->piece, p, n * sizeof *p);
	lock_scope(&h->lock);
	free(h->files.at[file].joined);
	h->files.at[file].joined = j;
	atomic_store(&h->any_joined, true);
	return file;
}

bool handles_is_joined(struct handles *h, uint32_t file)
{
	lock_scope(&h->lock);

	return file < h->files.n && h->files.at[file].joined;
}

/* Return the last piece that begins at or before `pos`, or the first one.  The lock is
 * held. */
static const struct handles_piece *joined_piece_at(const struct joined *j,
						   uint64_t pos)
{
	struct bisect b = bisect_in(1, j->n);

	while (bisect_next(&b))
		bisect_answer(&b, j->piece[b.mid].begin > pos);
	return &j->piece[b.lo - 1];
}

bool handles_piece_at(struct handles *h, uint32_t file, uint64_t pos,
		      struct handles_piece *out)
{
	lock_scope(&h->lock);
	const struct joined *j =
		file < h->files.n ? h->files.at[file].joined : NULL;

	*out = j ? *joined_piece_at(j, pos)
		 : (struct handles_piece){0, UINT64_MAX, file};
	return pos >= out->begin && pos - out->begin < out->size;
}

bool handles_in_one(struct handles *h, uint32_t *file, uint64_t *pos,
		    uint64_t len)
{
	struct handles_piece p;

	if (!handles_piece_at(h, *file, *pos, &p) ||
	    len > p.size - (*pos - p.begin))
		return false;
	*file = p.file;
	*pos -= p.begin;
	return true;
}
