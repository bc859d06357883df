/* SPDX-License-Identifier: BSD-2-Clause */
/* Checking one part of a tensor: jobs for all cores. */
#ifndef VERIFY_VERIFY_PRIVATE_H
#define VERIFY_VERIFY_PRIVATE_H

#include "app/report.h"
#include "verify/verify.h"

struct part_check {
	struct verify *v;
	struct tensor *t;
	uint32_t part;
	struct report_rows rows; /* of its dataset */
	const struct layout *layout;
	_Atomic unsigned refs; /* jobs, and the main thread */
	_Atomic bool spoiled;
	_Atomic bool read;      /* some bytes of it were, */
	_Atomic bool unsummed;  /* and some of these have no checksum */
	bool whole;             /* all places of its grid are looked at, so */
	_Atomic uint64_t found; /* as many chunks as its index counts */
};
/* Something that concerns the whole part: say it once. */
void verify_spoil(struct part_check *c, int code, const struct error *err);
/* The last one to put it compares what was found with the index. */
void verify_put(struct part_check *c);

/* Do checksums cover what there is of part p?  Chunks that were stored without filters are
 * not looked for.  Blocks. */
bool verify_has_checksum(struct tensor *t, uint32_t p, const struct layout *l);
/* Queue a part that is no mosaic of others.  -ENOMEM. */
int verify_queue(struct part_check *c);

#endif
