/* SPDX-License-Identifier: BSD-2-Clause */
/* Names that somebody has asked for, where there are too many to number them all. */
#ifndef BASE_LOOKUPS_H
#define BASE_LOOKUPS_H

#include <stdint.h>

/* So many at most; more are refused. */
#define LOOKUPS_MAX 65536

struct lookups;
/* The number of `name`, the same each time; *where is made with the first one.  Thread-safe.
 * -ENOMEM, -ENOSPC: there are LOOKUPS_MAX. */
int lookups_number(_Atomic(struct lookups *) *where, const char *name,
		   uint32_t *out);
/* The name that has a number, or NULL; `l` may be NULL.  Takes no lock. */
const char *lookups_name(struct lookups *l, uint64_t number);
/* Never 0, and another one for each *where that is made. */
uint32_t lookups_generation(const struct lookups *l);
void lookups_free(struct lookups *l);

#endif
