/* SPDX-License-Identifier: BSD-2-Clause */
/* Is somebody writing to a file that is going to be deleted or replaced? */
#ifndef TENSORS_LOCK_H
#define TENSORS_LOCK_H

#include "base/error.h"

/*
 * Who writes a part has it locked in one of two ways (tensors/rows/copy.c); nobody can do
 * either until `fd`, which is open for reading, is closed.  Where there are no locks
 * nobody is known to write.  -EBUSY: somebody does; `what` ends the sentence: "and is not
 * deleted".
 */
int hdf5_lock_idle(int fd, const char *path, const char *what,
		   struct error *err);

#endif
