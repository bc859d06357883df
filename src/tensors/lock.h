/* SPDX-License-Identifier: BSD-2-Clause */
/* Is another process writing to a file that is going to be deleted or replaced? */
#ifndef TENSORS_LOCK_H
#define TENSORS_LOCK_H

#include "base/error.h"

/*
 * A process that writes a part has it locked in one of two ways (tensors/rows/copy.c).
 * Lock the file, which `fd` is open on for reading, against both until `fd` is closed.
 * Return 0, also on file systems without locks; -EBUSY if another process is writing.
 * `what` ends that sentence: "and is not deleted".
 */
int hdf5_lock_idle(int fd, const char *path, const char *what,
		   struct error *err);

#endif
