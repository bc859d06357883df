/* SPDX-License-Identifier: BSD-2-Clause */
/* Seek points while they are learnt: a row of windows, and their states. */
#ifndef STREAM_ROW_H
#define STREAM_ROW_H

#include "base/vec.h"
#include "stream/stream_private.h"

struct libdeflate_compressor;
/* Embedded in a scan.  Any failure of these is the end of it. */
struct row {
	vec(struct stream_point) points;
	size_t open;  /* the window that bytes go to now */
	uint32_t crc; /* of them */
	uint64_t at;  /* bytes that passed */

	struct blob *states; /* NULL: none yet */
	struct libdeflate_compressor *deflater;
	uint32_t window, most; /* sizes wanted */
	size_t memory;         /* bytes of states in it */
	bool confined;         /* there is no temporary file */
};

void row_init(struct row *w);
void row_free(struct row *w);
/* As scan_wants_point, when `got` compressed bytes were read. */
bool row_wants(const struct row *w, uint64_t out, uint64_t got);
/* As scan_point. */
int row_add(struct row *w, const struct stream_point *p, const void *state,
	    size_t state_size, struct error *err);
/* As scan_bad. */
void row_bad(struct row *w, uint64_t out);
/* These bytes follow those before them. */
int row_pass(struct row *w, const unsigned char *data, size_t n,
	     struct error *err);
/* No more will: what there is, handed over (*states is never NULL). */
int row_end(struct row *w, struct stream_point **points, uint64_t *n,
	    struct blob **states, struct error *err);

#endif
