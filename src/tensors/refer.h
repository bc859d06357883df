/* SPDX-License-Identifier: BSD-2-Clause */
/* References to objects of a file, which become those to the same objects of its copy. */
#ifndef TENSORS_REFER_H
#define TENSORS_REFER_H

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

struct refer {
	hid_t from, to; /* an object, or the file itself, of source and copy */
	/* Where the object that is at `addr` of the source is in the copy;
	 * HADDR_UNDEF: it has none. */
	haddr_t (*find)(void *ctx, haddr_t addr);
	void *ctx;
	uint64_t lost; /* references that lead to no object of the copy */
};
/* Has a type references in it, at any depth? */
bool refer_is_in(hid_t type);
/* Has it values of variable length in it, at any depth? */
bool refer_points(hid_t type);
/* Translate all references in `n` elements of a type in memory.  One that leads to nothing in
 * the copy becomes null, and is counted in x->lost.  Lock of the library held. */
void refer_translate(struct refer *x, hid_t type, unsigned char *data,
		     uint64_t n);

#endif
