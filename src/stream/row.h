/* SPDX-License-Identifier: BSD-2-Clause */
/* Seek points while they are learnt: a row of windows, and their states. */
#ifndef STREAM_ROW_H
#define STREAM_ROW_H

#include "base/vec.h"
#include "stream/stream_private.h"

struct libdeflate_compressor;
/* A row of windows; embedded in a scan.  After a failure of one of these functions
 * the scan cannot go on. */
struct row {
	vec(struct stream_point) points;
	size_t open;  /* number of the window to which bytes go now */
	uint32_t crc; /* CRC-32 of the bytes of that window so far */
	uint64_t at;  /* decoded bytes that have passed */

	struct blob *states; /* NULL: there are none yet */
	struct libdeflate_compressor *deflater;
	/* Wanted and largest size of windows, in bytes. */
	uint32_t window, most;
	size_t memory; /* bytes of states that stay in memory */
	bool confined; /* a temporary file cannot be had */
};

void row_init(struct row *w);
void row_free(struct row *w);
/* As scan_wants_point, after `got` compressed bytes were read. */
bool row_wants(const struct row *w, uint64_t out, uint64_t got);
/* As scan_point. */
int row_add(struct row *w, const struct stream_point *p, const void *state,
	    size_t state_size, struct error *err);
/* As scan_bad. */
void row_bad(struct row *w, uint64_t out);
/* Pass the next n decoded bytes of the stream.  Return 0 or -errno. */
int row_pass(struct row *w, const unsigned char *data, size_t n,
	     struct error *err);
/* End the row and hand over the points (malloc'ed) and the states (*states is never
 * NULL).  Return 0 or -errno. */
int row_end(struct row *w, struct stream_point **points, uint64_t *n,
	    struct blob **states, struct error *err);

#endif
