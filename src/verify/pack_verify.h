/* SPDX-License-Identifier: BSD-2-Clause */
/* Comparing what was packed with the directory: what trees and tensors share. */
#ifndef VERIFY_PACK_VERIFY_H
#define VERIFY_PACK_VERIFY_H

#include "app/pack.h"

#define VERIFY_WINDOW (UINT64_C(1) << 20)

struct verifier {
	const struct command *c;
	const struct sink_args *args;
	struct scan *scan;
	struct session *session;
	struct progress progress;
	char *buf;    /* of VERIFY_WINDOW bytes */
	char *parent; /* path of the directory that was looked up last */
	uint64_t parent_ino;
	uint64_t entries, differences;
	bool directories; /* that were packed; else they are not counted */
	/* the entry whose bytes come in pieces */
	uint64_t ino;
	bool bad;
};
/* Say how it differs, and count. */
void verify_differs(struct verifier *v, const char *path, const char *how);
/* Look a path up in what was packed: 0, -ENOENT, -ENOMEM. */
int verify_find(struct verifier *v, const char *path, struct entry *out);
/* Every sample against the rows of the tensor. */
int verify_samples(struct verifier *v, const char *top,
		   const struct feed_options *o, struct error *err);

#endif
