/* SPDX-License-Identifier: BSD-2-Clause */
/* Is another process writing to a file that is going to be deleted or replaced? */
#include "tensors/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "extent/file.h"

int hdf5_lock_idle(int fd, const char *path, const char *what,
		   struct error *err)
{
	struct flock l = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
	bool busy = fcntl(fd, F_OFD_SETLK, &l) < 0 &&
		    (errno == EAGAIN || errno == EACCES);

	if (!busy &&
	    (flock(fd, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK))
		return 0;
	return error_set(err, -EBUSY,
			 "%s is open for writing in another program, %s",
			 file_shown(path), what);
}
