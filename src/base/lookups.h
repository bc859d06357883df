/* SPDX-License-Identifier: BSD-2-Clause */
/* Names that were looked up, where there are too many to number them all. */
#ifndef BASE_LOOKUPS_H
#define BASE_LOOKUPS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The kernel holds a name while it has an inode for it, which takes it many times the
 * memory.  All held names are kept, up to LOOKUPS_HELD_MAX, and then further names are
 * refused; of the others the LOOKUPS_MAX that were used last are kept.  Numbers are given
 * in turn, from 0 to LOOKUPS_NUMBERS - 1.  The number of a name that was dropped is given
 * to another name only after all numbers were given.
 */
#define LOOKUPS_MAX 65536
#define LOOKUPS_HELD_MAX (UINT32_C(1) << 24)
#define LOOKUPS_NUMBERS (UINT32_C(1) << 26)
#define LOOKUPS_NAME_MAX 512 /* bytes, with its NUL */

struct lookups;
/*
 * Set *out to the number of `name`, which stays the same as long as the name is kept.
 * The first call makes *where.  With `once`, no number is given to a second name.
 * Thread-safe, as are all of these.  Return 0, -ENOMEM, -ENAMETOOLONG, or -ENOSPC if too
 * many names are held or no number is left.
 */
int lookups_number(_Atomic(struct lookups *) *where, const char *name,
		   bool once, uint32_t *out);
/* Copy the name that has this number to `buf`.  Return false if there is none, or no
 * longer.  `l` may be NULL. */
bool lookups_name(struct lookups *l, uint64_t number,
		  char buf[LOOKUPS_NAME_MAX]);
/* Add n to the holds of a name (n may be negative).  Return 0, or -ENOENT if the name is
 * no longer kept. */
int lookups_hold(struct lookups *l, uint64_t number, int64_t n);
/* The generation of a number; never 0.  It differs for each *where that is made, and for
 * each name that gets the same number. */
uint32_t lookups_generation(struct lookups *l, uint64_t number);
/* For tests: the next name gets this number, or a later one if it is taken. */
void lookups_skip(struct lookups *l, uint32_t number);
void lookups_free(struct lookups *l);

#endif
