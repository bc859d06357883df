/* SPDX-License-Identifier: BSD-2-Clause */
/* An HDF5 file without the data of its datasets, as one message. */
#ifndef VIEWS_MONOLITH_H
#define VIEWS_MONOLITH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 *	front bytes of the file, up to the first data | notes | parts | tail
 *
 * The data of each dataset are a part: contiguous, on a page of their own, in
 * ascending order; zeros are between them, and nothing behind the last one.  Numbers
 * are the host's.
 */
#define MONOLITH_PAGE 4096
struct monolith_part {
	uint64_t at, bytes; /* in the file; bytes > 0 */
};
struct monolith_tail {
	uint64_t front, size; /* of the file: bytes before data, all bytes */
	uint64_t notes;       /* bytes */
	uint64_t nparts;
};
/* What a message says; pointers are into it. */
struct monolith {
	struct monolith_tail tail;
	const char *notes; /* lines, what was left out; not terminated */
	const char *parts; /* unaligned */
};
/* Is it one?  -EIO: its numbers make no sense. */
int monolith_read(const void *data, size_t n, struct monolith *out,
		  struct error *err);
struct monolith_part monolith_part_at(const struct monolith *m, uint64_t i);

#endif
