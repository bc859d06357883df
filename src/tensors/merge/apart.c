/* SPDX-License-Identifier: BSD-2-Clause */
/* The file is made in a process of its own, for libhdf5 may not survive the main one. */

/*
 * What is copied by the library (objects behind links, attributes) is read by it, and a
 * damaged file may bring it down, or have it go round in circles.  No thread of ours is
 * running now, so a fork has all there is; what it writes is in the data file, which the
 * parent publishes when it hears that all went well.  It dies with the parent, and is
 * killed when it does not stop in time.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tensors/merge/private.h"

#define LOOK_MS 100
#define PATIENCE 50 /* looks after it was told to stop */

/* Its error, all of it or nothing. */
static bool receive(int fd, struct error *err)
{
	size_t have = 0;

	while (have < sizeof *err) {
		ssize_t n = read(fd, (char *)err + have, sizeof *err - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		have += (size_t)n;
	}
	err->text[sizeof err->text - 1] = '\0';
	return true;
}

/* Until it says something, or is gone; passes on that it shall stop. */
static void wait_for(const struct merge *m, int fd, pid_t pid)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int looks = 0;

	while (poll(&p, 1, LOOK_MS) <= 0) {
		if (!*m->o.stop)
			continue;
		if (looks == 0)
			kill(pid, SIGTERM);
		if (looks++ == PATIENCE)
			kill(pid, SIGKILL);
	}
}

static void child_main(struct merge *m, int fd, pid_t parent)
{
	struct error err = {.code = 0, .text = ""};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent)
		merge_make(m, &err);
	if (write(fd, &err, sizeof err) < 0)
		_exit(1);
	_exit(0);
}

int merge_make_apart(struct merge *m, struct error *err)
{
	struct error said = {.code = 0};
	pid_t parent = getpid(), pid;
	int pair[2], status = 0;
	bool heard;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return error_errno(err, -errno, "cannot start a process");
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		child_main(m, pair[1], parent);
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return error_errno(err, -errno, "cannot start a process");
	}
	wait_for(m, pair[0], pid);
	heard = receive(pair[0], &said);
	close(pair[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!heard && *m->o.stop)
		return error_set(err, -EINTR, "interrupted");
	if (!heard)
		return error_set(
			err, -EBADMSG, "%s: libhdf5 does not survive it (%s)",
			file_shown(m->o.main),
			WIFSIGNALED(status) ? strsignal(WTERMSIG(status))
					    : "it ended");
	if (said.code)
		*err = said;
	return said.code;
}
