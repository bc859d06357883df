/* SPDX-License-Identifier: BSD-2-Clause */
/* tar: make a member table from the headers of an archive. */
#ifndef FORMATS_TAR_TAR_H
#define FORMATS_TAR_TAR_H

#include "members/members.h"
#include "stream/input.h"

/* The version of tables that tar_scan makes; an index of another version is made
 * anew. */
#define TAR_MAKER "tar 3"

/* Return how certain it is, from 0 to 100, that a file is a tar: its first block is
 * a header with the right checksum, or zeros.  `head` is its first `n` bytes:
 * TAR_PROBE of them, or the whole file if that is shorter. */
#define TAR_PROBE 16384
int tar_probe(const unsigned char *head, size_t n);

struct tar_scanned {
	uint64_t headers; /* headers that were read */
	/* Bytes up to the end-of-archive blocks, and with them. */
	uint64_t end;
	bool damaged; /* something is missing behind the last member */
};
/*
 * Read all headers, and skip everything else that the input can skip.  The position
 * of a member is the input's `at`.  Damage is noted, and passed over as far as that
 * is safe, so that intact members are shown.  Return 0, -EBADMSG if there is no
 * header at all, -ENOMEM, or an error of the input; but an input error after the
 * first member becomes a note.  `so_far` (may be NULL) is called from time to time
 * with the position in bytes.
 */
int tar_scan(struct input *in, struct members_builder *b,
	     struct tar_scanned *out, void (*so_far)(void *ctx, uint64_t at),
	     void *ctx, struct error *err);

#endif
