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
 * Each dataset's data are one part, contiguous, on pages of their own.  Parts are in
 * ascending order, with zeros between them and nothing behind the last one.  Numbers
 * have the host's byte order.
 */
#define MONOLITH_PAGE 4096
struct monolith_part {
	uint64_t at, bytes; /* offset and size in the file; bytes > 0 */
};
struct monolith_tail {
	/* bytes of the file before the data, and in all */
	uint64_t front, size;
	uint64_t notes; /* bytes of the notes */
	uint64_t nparts;
};
/* The contents of a message; pointers point into the message. */
struct monolith {
	struct monolith_tail tail;
	const char *notes; /* lines, what was left out; not NUL-terminated */
	const char *parts; /* unaligned */
};
/* Read and check a message of `n` bytes.  Return 0, or -EIO if its numbers contradict
 * each other. */
int monolith_read(const void *data, size_t n, struct monolith *out,
		  struct error *err);
/* Return part `i` of a message, i < m->tail.nparts. */
struct monolith_part monolith_part_at(const struct monolith *m, uint64_t i);

#endif
