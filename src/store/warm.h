/* SPDX-License-Identifier: BSD-2-Clause */
/* Bring source files into the page cache that are read here and there. */
#ifndef STORE_WARM_H
#define STORE_WARM_H

#include "extent/handles.h"

struct warm;
/* `most`: bytes of a file that is worth it, at most.  Starts a thread. */
int warm_new(struct warm **out, struct handles *h, uint64_t most,
	     struct error *err);
/* A reader is given `len` bytes of a file as they are.  Cheap; takes no lock. */
void warm_note(struct warm *w, uint32_t file, uint64_t len);
/* Waits for what is being read; `w` may be NULL. */
void warm_free(struct warm *w);

#endif
