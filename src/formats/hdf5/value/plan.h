/* SPDX-License-Identifier: BSD-2-Clause */
/* How elements of an HDF5 type lie in memory, as a tree. */
#ifndef FORMATS_HDF5_VALUE_PLAN_H
#define FORMATS_HDF5_VALUE_PLAN_H

#include <stdint.h>

#include "formats/hdf5/value/json.h"

/* Bytes of a number that is more than bytes to us. */
#define PLAN_NUMBER_MAX 64

enum plan_how {
	PLAN_DIRECT,    /* of 1, 2, 4 or 8 bytes, all bits used */
	PLAN_CONVERTED, /* by the library: to 64 bits; floats to long double */
	PLAN_WIDE,      /* by the library: to whole bytes, little-endian */
	PLAN_BYTES      /* not at all */
};
struct plan_enum {
	unsigned char value[8]; /* as stored */
	char *name;             /* the library's memory */
};
struct plan_node {
	H5T_class_t class;
	size_t size;
	hid_t type, into; /* REFERENCE: type; numbers: from, to; or negative */
	/* Numbers; ENUM: child 0 is the number, `names` sorted by value. */
	enum plan_how how;
	bool sign, big, is_bool;
	size_t nnames;
	struct plan_enum *names;
	/* STRING */
	bool vlen;
	H5T_str_t pad;
	/* COMPOUND: members; ARRAY, VLEN, ENUM: one, what it consists of. */
	size_t n;
	struct plan_node *child;
	char *name;    /* of a member, UTF-8 */
	size_t offset; /* of a member */
	unsigned rank; /* ARRAY */
	hsize_t *dims;
};

/* -ENOMEM; -EIO: the library does not say. */
int plan_node_open(struct plan_node *n, hid_t type, unsigned depth);
void plan_node_close(struct plan_node *n);
/* The enum's name for the number at p, or NULL. */
const char *plan_name(const struct plan_node *n, const unsigned char *p);

#endif
