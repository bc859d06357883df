/* SPDX-License-Identifier: BSD-2-Clause */
/* Compare a packed file with the directory that it was made of. */
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
	char *buf;    /* VERIFY_WINDOW bytes */
	char *parent; /* path of the directory that was looked up last */
	uint64_t parent_ino;
	uint64_t entries, differences;
	/* directories were packed; if not, they are not counted */
	bool directories;
	/* the entry whose bytes come in pieces */
	uint64_t ino;
	bool bad;
};
/* Report how the entry `path` differs, and count it. */
void verify_differs(struct verifier *v, const char *path, const char *how);
/* Look a path up in the packed file: 0, -ENOENT or -ENOMEM. */
int verify_find(struct verifier *v, const char *path, struct entry *out);
/* Compare every sample with the rows of the tensor.  Returns 0 or -errno; differences are
 * counted in `v`. */
int verify_samples(struct verifier *v, const char *top,
		   const struct feed_options *o, struct error *err);

#endif
