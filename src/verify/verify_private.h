/* SPDX-License-Identifier: BSD-2-Clause */
/* Check one part of a tensor, with jobs for all cores. */
#ifndef VERIFY_VERIFY_PRIVATE_H
#define VERIFY_VERIFY_PRIVATE_H

#include "app/report.h"
#include "verify/verify.h"

struct part_check {
	struct verify *v;
	struct tensor *t;
	uint32_t part;
	struct report_rows rows; /* the rows of its dataset that are checked */
	const struct layout *layout;
	_Atomic unsigned refs; /* references: the jobs, and the main thread */
	_Atomic bool spoiled;
	_Atomic bool read; /* some bytes of it were read */
	/* some of the bytes that were read have no checksum */
	_Atomic bool unsummed;
	bool whole; /* all places of its grid are looked at */
	/* chunks that were found; if `whole`, as many as its index counts */
	_Atomic uint64_t found;
};
/* Report an error that concerns the whole part, once. */
void verify_spoil(struct part_check *c, int code, const struct error *err);
/* Drop a reference; the last one compares what was found with the index, and frees
 * `c`. */
void verify_part_unref(struct part_check *c);

/* Return true if checksums cover all data of part p.  Chunks that were stored without
 * filters are not looked for.  May block for reading. */
bool verify_has_checksum(struct tensor *t, uint32_t p, const struct layout *l);
/* Queue a part that is not a virtual dataset itself.  Returns 0 or -ENOMEM. */
int verify_queue_part(struct part_check *c);

#endif
