/* SPDX-License-Identifier: BSD-2-Clause */
/* What has to do with headers of the source, in a process of its own. */
/*
 * libhdf5 reads these headers with whatever is wrong with them, and may not survive that.
 * So it is done in a child, when no other thread is there; what it has to say comes
 * through a pipe.  A child that copies other objects leaves a trail; when it dies, the next
 * one leaves alone what it died of.  Nothing is lost: all that it wrote is behind the chunks,
 * where the next one writes the same.
 */
#include "tensors/rechunk/hdf5_rechunk_private.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/hdf5/file/driver.h"

/* How often it is seen whether we are to stop. */
#define LOOK_MS 100

static void child(struct rechunk *w, rechunk_task *task, const char *name,
		  int to)
{
	struct rechunk_answer a = {0};
	struct error err = {0};
	const char *at = (const char *)&a;

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* it may copy for long */
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

static bool is_stopped(const struct rechunk *w)
{
	return w->o->stop && atomic_load(w->o->stop);
}

/* A signal that came to us alone is handed on, once. */
static bool read_answer(const struct rechunk *w, pid_t pid, int from,
			struct rechunk_answer *a)
{
	struct pollfd p = {.fd = from, .events = POLLIN};
	bool told = false;
	size_t n = 0;

	while (n < sizeof *a) {
		ssize_t got;

		if (is_stopped(w) && !told) {
			told = true;
			kill(pid, SIGTERM);
		}
		if (poll(&p, 1, told ? -1 : LOOK_MS) <= 0)
			continue;
		got = read(from, (char *)a + n, sizeof *a - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		n += (size_t)got;
	}
	return true;
}

/* 0: it has not told. */
static int run_child(struct rechunk *w, rechunk_task *task, const char *name,
		     struct rechunk_answer *a, int *status, struct error *err)
{
	int ends[2];
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
	told = read_answer(w, pid, ends[0], a);
	close(ends[0]);
	while (waitpid(pid, status, 0) < 0 && errno == EINTR)
		;
	return told;
}

/* What the child was at when it died is left alone from now on.  False: it was left alone
 * already, or it is not known. */
static bool learn(struct rechunk *w)
{
	char *was;

	if (!w->trail || !*w->trail || w->n_deadly == RECHUNK_DEADLY)
		return false;
	w->trail[REST_TRAIL - 1] = '\0';
	for (unsigned i = 0; i < w->n_deadly; i++)
		if (!strcmp(w->deadly[i], w->trail))
			return false;
	was = strdup(w->trail);
	if (!was)
		return false;
	w->deadly[w->n_deadly++] = was;
	return true;
}

static int died(struct rechunk *w, int status, struct error *err)
{
	w->of_source = true;
	return error_set(err, -EBADMSG,
			 "%s: libhdf5 did not survive reading its header%s%s: "
			 "it is damaged",
			 w->t->source ? w->t->source : w->t->name,
			 WIFSIGNALED(status) ? ": " : "",
			 WIFSIGNALED(status) ? strsignal(WTERMSIG(status))
					     : "");
}

int rechunk_apart(struct rechunk *w, rechunk_task *task, const char *name,
		  struct rechunk_answer *a, struct error *err)
{
	int status = 0, told;

	if (w->rest && !w->trail) {
		w->trail = mmap(NULL, REST_TRAIL, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (w->trail == MAP_FAILED)
			w->trail = NULL;
	}
	do {
		if (w->trail)
			*w->trail = '\0';
		told = run_child(w, task, name, a, &status, err);
		if (told < 0)
			return told;
		if (!told && is_stopped(w))
			return error_set(err, -EINTR, "interrupted");
	} while (!told && learn(w));
	if (!told)
		return died(w, status, err);
	return a->code < 0 ? error_set(err, a->code, "%s", a->text) : 0;
}

void rechunk_apart_free(struct rechunk *w)
{
	if (w->trail)
		munmap(w->trail, REST_TRAIL);
	for (unsigned i = 0; i < w->n_deadly; i++)
		free(w->deadly[i]);
}
