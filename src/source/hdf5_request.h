/* SPDX-License-Identifier: BSD-2-Clause */
/* What the daemon and its HDF5 workers send each other. */
#ifndef SOURCE_HDF5_REQUEST_H
#define SOURCE_HDF5_REQUEST_H

#include "extent/file.h"
#include "source/hdf5.h"
#include "source/hdf5_worker.h"

/* Strings and attributes in one answer at most. */
#define HDF5_TEXT_MAX ((uint64_t)1 << 30)

/* An answer is a reply and `size` bytes: a learnt, locations, the bytes of a
 * chunk, strings (each a uint64_t and so many bytes), text. */
enum op { LEARN, LOCATE, FETCH, STRINGS, ATTRIBUTES };
struct request {
	enum op op;
	struct tensor *t;
	uint32_t p;
	uint64_t first, n;
	uint32_t file; /* that the call is about */
	struct identity id;
	struct layout layout; /* LOCATE, FETCH; without pointers */
	struct grid grid;
};
struct reply {
	uint64_t size; /* of what follows */
	struct error err;
};
/* A layout by value. */
struct learnt {
	struct layout layout;
	bool zero; /* fill value */
	struct grid grid;
	struct pipeline pipeline;
};

#endif
