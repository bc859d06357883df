/* SPDX-License-Identifier: BSD-2-Clause */
/* Names that somebody has asked for, where there are too many to number them all. */
#ifndef BASE_LOOKUPS_H
#define BASE_LOOKUPS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Of those that nobody holds so many are kept, which were used last; of those that somebody
 * holds all, and others are refused when they are too many.  (The kernel holds what it has an
 * inode for, which takes it many times the memory.)  The number of one that went stays its
 * own: they are given in turn, from 0 to LOOKUPS_NUMBERS - 1, and again only when all were
 * given.
 */
#define LOOKUPS_MAX 65536
#define LOOKUPS_HELD_MAX (UINT32_C(1) << 24)
#define LOOKUPS_NUMBERS (UINT32_C(1) << 26)
#define LOOKUPS_NAME_MAX 512 /* with its end */

struct lookups;
/*
 * The number of `name`, the same as long as it is kept; *where is made with the first one.
 * `once`: no number is given to a second name.  Thread-safe, as all of these.
 * -ENOMEM; -ENAMETOOLONG; -ENOSPC: too many are held, or numbers are out.
 */
int lookups_number(_Atomic(struct lookups *) *where, const char *name,
		   bool once, uint32_t *out);
/* The name that has a number; false: none, or none any more.  `l` may be NULL. */
bool lookups_name(struct lookups *l, uint64_t number,
		  char buf[LOOKUPS_NAME_MAX]);
/* Hold a name n times more, or (n < 0) less.  -ENOENT: it is not kept any more. */
int lookups_hold(struct lookups *l, uint64_t number, int64_t n);
/* Never 0; another one for each *where that is made, and for each name that has the number. */
uint32_t lookups_generation(struct lookups *l, uint64_t number);
/* Tests: the next name gets this number, or one behind it. */
void lookups_skip(struct lookups *l, uint32_t number);
void lookups_free(struct lookups *l);

#endif
