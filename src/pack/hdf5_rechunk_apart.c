/* SPDX-License-Identifier: BSD-2-Clause */
/* What has to do with headers of the source, in a process of its own. */
/*
 * libhdf5 reads these headers with whatever is wrong with them, and may not survive that.
 * So it is done in a child, when no other thread is there; what it has to say comes
 * through a pipe.
 */
#include "pack/hdf5_rechunk_private.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "source/hdf5_driver.h"

static void child(struct rechunk *w, rechunk_task *task, const char *name,
		  int to)
{
	struct rechunk_answer a = {0};
	struct error err = {0};
	const char *at = (const char *)&a;

	a.code = hdf5_init(&err);
	if (a.code == 0)
		a.code = task(w, name, &a, &err);
	memcpy(a.text, err.text, sizeof a.text);
	for (size_t n = 0; n < sizeof a;) {
		ssize_t done = write(to, at + n, sizeof a - n);

		if (done <= 0)
			_exit(1);
		n += (size_t)done;
	}
	_exit(0);
}

static bool read_answer(int from, struct rechunk_answer *a)
{
	size_t n = 0;

	while (n < sizeof *a) {
		ssize_t got = read(from, (char *)a + n, sizeof *a - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		n += (size_t)got;
	}
	return true;
}

int rechunk_apart(struct rechunk *w, rechunk_task *task, const char *name,
		  struct rechunk_answer *a, struct error *err)
{
	int ends[2], status = 0;
	bool told;
	pid_t pid;

	if (pipe(ends) < 0)
		return error_errno(err, -errno, "cannot make a pipe");
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		child(w, task, name, ends[1]);
	}
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return error_errno(err, -errno, "cannot make a process");
	}
	told = read_answer(ends[0], a);
	close(ends[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!told) {
		w->of_source = true;
		return error_set(
			err, -EBADMSG,
			"%s: libhdf5 did not survive reading its "
			"headers%s%s: it is damaged; --keep=none looks at %s "
			"alone",
			w->t->source ? w->t->source : w->t->name,
			WIFSIGNALED(status) ? ": " : "",
			WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "",
			w->t->name);
	}
	return a->code < 0 ? error_set(err, a->code, "%s", a->text) : 0;
}
