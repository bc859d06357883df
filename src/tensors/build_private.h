/* SPDX-License-Identifier: BSD-2-Clause */
/* What build.c and build_driver.c share. */
#ifndef TENSORS_BUILD_PRIVATE_H
#define TENSORS_BUILD_PRIVATE_H

#include <stdatomic.h>

#include "tensors/build.h"

/* The chunk that the library is being told of. */
struct build_spot {
	bool on;
	uint64_t pos, len;
	unsigned asked, written; /* requests for room, and writes */
};
struct build {
	int fd;
	char *path;
	uint64_t first;          /* the lowest position of a chunk */
	_Atomic uint64_t end;    /* where the next chunk goes */
	_Atomic uint64_t behind; /* write-back was started up to here */
	_Atomic bool no_copy;    /* copy_file_range does not work here */
	/* From build_open on, guarded by the library's lock: */
	uint64_t chunks_end; /* metadata begins here */
	uint64_t eoa;        /* end of what the library has allocated */
	struct build_spot spot;
	struct error failure; /* the first failure */
	struct build_file *file;
	const _Atomic int *stop; /* NULL: not stoppable */
};
/* The library's open file; it may outlive the build. */
struct build_file {
	H5FD_t pub;      /* the library's part; must be first */
	struct build *b; /* NULL: the build was freed */
};

/* Create the file with the driver.  The library's lock is held. */
int build_driver_create(struct build *b, hid_t fcpl, hid_t *file,
			struct error *err);

#endif
