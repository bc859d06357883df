/* SPDX-License-Identifier: BSD-2-Clause */
/* Checking a source: what it needs of whoever asks for that. */
#ifndef FORMATS_CHECK_H
#define FORMATS_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"

/* Something bad. */
struct source_bad {
	const char *name; /* of a member, or of the source */
	int code;
	const char *why;
	/* Members that it belongs to, where `name` is none of them: those that
	 * are listed, and how many there are. */
	char *const *members;
	size_t listed;
	uint64_t n_members;
};
/*
 * Embedded by its user.  All functions may be called by any thread; the pool's
 * jobs are waited for before source_ops.verify returns.
 */
struct source_check {
	struct pool *pool;
	unsigned threads;
	const char *prefix; /* in front of members' paths: "", "/a/b.tar" */
	/* List it. */
	void (*bad)(struct source_check *c, const struct source_bad *bad);
	/* There is work for this many bytes of progress; they are done. */
	void (*expect)(struct source_check *c, uint64_t bytes);
	void (*advance)(struct source_check *c, uint64_t bytes);
	/* Chunks that were decoded, to so many bytes. */
	void (*count)(struct source_check *c, uint64_t chunks, uint64_t stored,
		      uint64_t decoded);
	/* Members that were looked at. */
	void (*members)(struct source_check *c, uint64_t n);
	/* Members of archive `name` that are not shown, so not looked at. */
	void (*left_out)(struct source_check *c, const char *name, uint64_t n);
	/* Bytes were read that no checksum covers: changed ones are not noticed. */
	void (*no_checksums)(struct source_check *c);
	/* Set by source_ops.verify when it compared checksums that cover all bytes of
	 * the source: those of the tensors and sources in it need none of their own. */
	bool covered;
	/* Between these, so much memory is used; blocks while it is too much. */
	void (*enter)(struct source_check *c, uint64_t bytes);
	void (*leave)(struct source_check *c, uint64_t bytes);
};

#endif
