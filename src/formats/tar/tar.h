/* SPDX-License-Identifier: BSD-2-Clause */
/* tar: from headers to a member table. */
#ifndef FORMATS_TAR_TAR_H
#define FORMATS_TAR_TAR_H

#include "members/members.h"
#include "stream/input.h"

/* Version of what tar_scan makes, for the index. */
#define TAR_MAKER "tar 3"

/* Is this the first block of a tar (a header with the right checksum, or zeros)?
 * 0 to 100.  `n` bytes of its beginning, TAR_PROBE of them if there are so many. */
#define TAR_PROBE 16384
int tar_probe(const unsigned char *head, size_t n);

struct tar_scanned {
	uint64_t headers; /* that were read */
	uint64_t end;     /* bytes up to and with the end-of-archive blocks */
	bool damaged;     /* something is missing behind what was found */
};
/*
 * Read all headers, and nothing else that can be skipped.  Positions of members
 * are the input's `at`.  What is damaged is noted, and passed over as far as that
 * is safe: members that are intact are shown.  -EBADMSG: no header at all;
 * -ENOMEM.  Other errors are the input's, unless members were found before: then
 * they are a note.  `so_far` (may be NULL) is called now and then.
 */
int tar_scan(struct input *in, struct members_builder *b,
	     struct tar_scanned *out, void (*so_far)(void *ctx, uint64_t at),
	     void *ctx, struct error *err);

#endif
