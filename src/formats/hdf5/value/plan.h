/* SPDX-License-Identifier: BSD-2-Clause */
/* How elements of an HDF5 type lie in memory, as a tree. */
#ifndef FORMATS_HDF5_VALUE_PLAN_H
#define FORMATS_HDF5_VALUE_PLAN_H

#include <stdint.h>

#include "formats/hdf5/value/json.h"

/* Limit of a number that is converted, in bytes. */
#define PLAN_NUMBER_MAX 64

enum plan_how {
	PLAN_DIRECT,    /* 1, 2, 4 or 8 bytes with all bits used */
	PLAN_CONVERTED, /* libhdf5 converts to 64 bits, floats to long double */
	PLAN_WIDE,      /* libhdf5 converts to whole bytes, little-endian */
	PLAN_BYTES      /* not converted; shown as bytes */
};
struct plan_enum {
	unsigned char value[8]; /* as stored */
	char *name;             /* the library's memory (H5free_memory) */
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

/* Describe a type. Return 0, -ENOMEM, or -EIO if the library cannot describe it. */
int plan_node_open(struct plan_node *n, hid_t type, unsigned depth);
void plan_node_close(struct plan_node *n);
/* Return the enum's name for the number at p, or NULL. */
const char *plan_name(const struct plan_node *n, const unsigned char *p);

#endif
