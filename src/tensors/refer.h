/* SPDX-License-Identifier: BSD-2-Clause */
/* References to objects of a file, translated to the same objects of its copy. */
#ifndef TENSORS_REFER_H
#define TENSORS_REFER_H

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

struct refer {
	/* Any object of source and copy, or the files themselves. */
	hid_t from, to;
	/* Return the address in the copy of the object at `addr` in the source, or
	 * HADDR_UNDEF. */
	haddr_t (*find)(void *ctx, haddr_t addr);
	void *ctx;
	uint64_t lost; /* references to objects that are not in the copy */
};
/* Does a type contain references, at any depth? */
bool refer_is_in(hid_t type);
/* Does a type contain values of variable length, at any depth? */
bool refer_points(hid_t type);
/* Translate all references in `n` elements of a type in memory.  References to objects
 * that are not in the copy become null and are counted in x->lost.  The library's lock is
 * held. */
void refer_translate(struct refer *x, hid_t type, unsigned char *data,
		     uint64_t n);

#endif
