/* SPDX-License-Identifier: BSD-2-Clause */
/* What building a file and its file driver share. */
#ifndef TENSORS_BUILD_PRIVATE_H
#define TENSORS_BUILD_PRIVATE_H

#include <stdatomic.h>

#include "tensors/build.h"

/* A chunk that the library is being told of. */
struct build_spot {
	bool on;
	uint64_t pos, len;
	unsigned asked, written; /* how often it wanted room, and wrote */
};
struct build {
	int fd;
	char *path;
	uint64_t first;          /* no chunk is before it */
	_Atomic uint64_t end;    /* where the next chunk goes */
	_Atomic uint64_t behind; /* written back, or on the way, up to here */
	_Atomic bool no_copy;    /* the kernel does not copy for us */
	/* From build_open on, under the library's lock: */
	uint64_t chunks_end; /* metadata begins here */
	uint64_t eoa;        /* end of what the library has given out */
	struct build_spot spot;
	struct error failure; /* the first one, and the last that counts */
	struct build_file *file;
	const _Atomic int *stop; /* NULL: nothing stops it */
};
/* As the library has it open; outlives a build that was given up. */
struct build_file {
	H5FD_t pub;      /* the library's part, first */
	struct build *b; /* NULL: it is gone */
};

/* Make the file with the driver; lock held. */
int build_driver_create(struct build *b, hid_t fcpl, hid_t *file,
			struct error *err);

#endif
