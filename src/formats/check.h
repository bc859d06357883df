/* SPDX-License-Identifier: BSD-2-Clause */
/* What a source reports to its caller while it is checked. */
#ifndef FORMATS_CHECK_H
#define FORMATS_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"

/* A problem that was found. */
struct source_bad {
	const char *name; /* of a member or of the source */
	int code;
	const char *why;
	/* If `name` is not a member: the members that the problem affects, the first
	 * `listed` of `n_members`. */
	char *const *members;
	size_t listed;
	uint64_t n_members;
};
/*
 * The caller embeds this struct in its own.  Any thread may call the functions.
 * source_ops.verify waits for the pool's jobs before it returns.
 */
struct source_check {
	struct pool *pool;
	unsigned threads;
	const char *prefix; /* put before members' paths: "", "/a/b.tar" */
	/* List a problem. */
	void (*bad)(struct source_check *c, const struct source_bad *bad);
	/* Add `bytes` to the expected and to the done work that progress shows. */
	void (*expect)(struct source_check *c, uint64_t bytes);
	void (*advance)(struct source_check *c, uint64_t bytes);
	/* Count decoded chunks, with their bytes as stored and as decoded. */
	void (*count)(struct source_check *c, uint64_t chunks, uint64_t stored,
		      uint64_t decoded);
	/* Count checked members. */
	void (*members)(struct source_check *c, uint64_t n);
	/* Count members of archive `name` that are not shown and therefore not
	 * checked. */
	void (*left_out)(struct source_check *c, const char *name, uint64_t n);
	/* Record that bytes without a checksum were read, in which changes go
	 * unnoticed. */
	void (*no_checksums)(struct source_check *c);
	/* Set by source_ops.verify if it compared checksums that cover all bytes of the
	 * source: the tensors and sources in it then need no checksums of their own. */
	bool covered;
	/* Call `enter` before and `leave` after using `bytes` of memory; `enter` blocks
	 * while too much is in use. */
	void (*enter)(struct source_check *c, uint64_t bytes);
	void (*leave)(struct source_check *c, uint64_t bytes);
};

#endif
