/* SPDX-License-Identifier: BSD-2-Clause */
/* Let a child walk a file first: libhdf5 crashes on some damaged ones. */
/*
 * The child has a copy of everything and does what this process is about to do,
 * with the same limit of memory (what fails for want of it may crash with more).
 * It sends a byte for every few objects, so that a big file may take its time
 * while one that keeps the library in a loop is given up, and another byte at
 * the end.  Its results are thrown away, errors included: this process finds
 * them again and reports them once.
 */
#include "formats/hdf5/worker/trial.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"

/* Time without a beat after which the child counts as hanging. */
#define SILENCE_MS 60000
enum { BEAT = '.', DONE = '!' };

static int listener = -1; /* in the child: where beats go */

void hdf5_trial_beat(void)
{
	const char c = BEAT;
	static unsigned objects;

	if (listener >= 0 && objects++ % 16 == 0 && write(listener, &c, 1) < 0)
		_exit(1); /* the parent has gone */
}

static _Noreturn void run_trial_child(int fd, hdf5_walk *walk,
				      struct hdf5_source *s,
				      const struct source_args *a)
{
	const struct rlimit none = {0, 0};
	const char c = DONE;
	struct error err;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_CORE, &none);
	log_set_level(LOG_LEVEL_ERROR);
	listener = fd;
	walk(s, a, &err);
	_exit(write(fd, &c, 1) == 1 ? 0 : 1);
}

/* Return 0 when the child is done, -EPIPE if it ended before that, -ETIMEDOUT if it
 * is silent. */
static int await_trial_child(int fd)
{
	for (;;) {
		struct pollfd p = {fd, POLLIN, 0};
		int r = poll(&p, 1, SILENCE_MS);
		char beats[256];
		ssize_t n;

		if (r == 0)
			return -ETIMEDOUT;
		n = r < 0 ? -1 : read(fd, beats, sizeof beats);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EPIPE;
		if (beats[n - 1] == DONE)
			return 0;
	}
}

int hdf5_trial(hdf5_walk *walk, struct hdf5_source *s,
	       const struct source_args *a, struct error *err)
{
	int pipes[2], status = 0, r;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return error_errno(err, -errno, "cannot make a pipe");
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		close(pipes[0]);
		run_trial_child(pipes[1], walk, s, a);
	}
	close(pipes[1]);
	if (pid < 0) {
		r = error_errno(err, -errno, "cannot fork");
		close(pipes[0]);
		return r;
	}
	r = await_trial_child(pipes[0]);
	close(pipes[0]);
	if (r != -EPIPE)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (r == -ETIMEDOUT)
		return error_set(err, -EBADMSG,
				 "libhdf5 does not return from reading it: the "
				 "file is damaged");
	if (r < 0)
		return error_set(err, -EBADMSG,
				 "libhdf5 crashes on it (%s): the file is "
				 "damaged",
				 WIFSIGNALED(status)
					 ? strsignal(WTERMSIG(status))
					 : "it ended");
	return 0;
}
