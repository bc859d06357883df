/* SPDX-License-Identifier: BSD-2-Clause */
/* Bring source files that are read in a random order into the page cache. */
#ifndef STORE_WARM_H
#define STORE_WARM_H

#include "extent/handles.h"

struct warm;
/* Start a thread that reads files of at most `most` bytes ahead.  Return 0, or -errno
 * with a sentence. */
int warm_new(struct warm **out, struct handles *h, uint64_t most,
	     struct error *err);
/* Note that a reader was given `len` bytes of a file verbatim.  Cheap; takes no lock. */
void warm_note(struct warm *w, uint32_t file, uint64_t len);
/* Wait for the piece that is being read, and free `w`, which may be NULL. */
void warm_free(struct warm *w);

#endif
