/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the processes that write parts. */

/*
 * libhdf5 may crash on a damaged file.  So each part is written by a process of its own,
 * which changes a copy only.  Processes also let the parts encode on all cores, which
 * one process could not do because of libhdf5's lock.
 *
 * Only one process at a time reads a stream.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "app/interrupt.h"
#include "app/progress.h"
#include "app/write.h"
#include "base/number.h"
#include "base/system.h"
#include "codec/codec.h"

#define JOBS_MOST 32
/* Memory for a part is at most this many times its rows: the rows, their chunks, encoded
 * chunks, chunks decoded before. */
#define SHARE 6
#define TICK_MS 200
/* Seconds that a process has to stop; in libhdf5 it may hang for ever. */
#define PATIENCE 10

struct worker {
	pid_t pid; /* 0 if the slot is free */
	int pipe;  /* hangs up when the process ends */
	size_t part;
};
/* In memory that all these processes share. */
struct shared_state {
	_Atomic uint64_t bytes;
	struct error err[JOBS_MOST];
};
struct jobs {
	const struct write_plan *p;
	struct write_input *in;
	struct write_options o;
	struct progress progress;
	unsigned n;
	struct worker workers[JOBS_MOST];
	struct shared_state *shared;
	size_t next;
	uint64_t done;
	bool told; /* SIGTERM was sent to the workers */
	time_t when;
	int code;
	struct error *err;
};

static void fail_jobs(struct jobs *j, const struct error *why)
{
	if (!j->code) {
		*j->err = *why;
		j->code = why->code;
	}
}

static struct write_rows rows_of(const struct jobs *j, size_t i)
{
	const struct write_part *p = &j->p->parts.at[i];

	return (struct write_rows){.path = p->path,
				   .data = p->data,
				   .flags = p->flags,
				   .first = p->first,
				   .rows = p->end - p->begin,
				   .flags_first = p->flags_first,
				   .input = p->begin - j->p->begin,
				   .last = i + 1 == j->p->parts.n};
}

static _Noreturn void run_worker(struct jobs *j, unsigned slot, size_t part,
				 pid_t parent)
{
	const struct rlimit none = {0, 0};
	struct write_rows rows = rows_of(j, part);
	struct error err = {0};
	int r;

	/* The worker cleans up after SIGTERM, which the kernel also sends when the
	 * parent dies. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	setrlimit(RLIMIT_CORE, &none);
	if (getppid() != parent)
		interrupted = SIGTERM;
	r = hdf5_write_rows(&rows, &j->o, j->in, &err);
	codec_thread_cleanup();
	if (r < 0)
		j->shared->err[slot] = err;
	_exit(r < 0 ? 1 : 0);
}

static void start_worker(struct jobs *j, unsigned slot)
{
	struct worker *w = &j->workers[slot];
	pid_t parent = getpid();
	struct error err = {0};
	int pipes[2];

	j->shared->err[slot].code = 0;
	if (pipe(pipes) < 0) {
		error_errno(&err, -errno, "cannot make a pipe");
		fail_jobs(j, &err);
		return;
	}
	w->pid = fork();
	if (w->pid == 0) {
		close(pipes[0]);
		run_worker(j, slot, j->next, parent);
	}
	close(pipes[1]);
	if (w->pid < 0) {
		error_errno(&err, -errno, "cannot fork");
		fail_jobs(j, &err);
		close(pipes[0]);
		w->pid = 0;
		return;
	}
	w->pipe = pipes[0];
	w->part = j->next++;
}

/* Drop the buffered first bytes of the stream that this part has used. */
static void use_early(struct jobs *j, size_t part)
{
	const struct write_part *p = &j->p->parts.at[part];
	uint64_t n =
		min_u64((p->end - p->begin) * j->p->row_bytes, j->in->n_early);

	memmove(j->in->early, j->in->early + n, j->in->n_early - n);
	j->in->n_early -= (unsigned)n;
}

static void end_worker(struct jobs *j, unsigned slot)
{
	struct worker *w = &j->workers[slot];
	const char *path = j->p->parts.at[w->part].path;
	struct error err = {0};
	int status = 0;

	close(w->pipe);
	while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
		;
	w->pid = 0;
	use_early(j, w->part);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		j->done++;
		return;
	}
	err = j->shared->err[slot];
	if (!err.code && j->told)
		error_set(&err, -EINTR, "interrupted");
	else if (!err.code)
		error_set(&err, -EBADMSG,
			  "'%s': libhdf5 crashed on it (%s): the part is "
			  "damaged, and was not changed",
			  path,
			  WIFSIGNALED(status) ? strsignal(WTERMSIG(status))
					      : "it ended");
	if (!j->o.no_lock)
		hdf5_write_sweep(path);
	fail_jobs(j, &err);
}

static void signal_workers(struct jobs *j, int n)
{
	for (unsigned i = 0; i < j->n; i++)
		if (j->workers[i].pid)
			kill(j->workers[i].pid, n);
}

/* Wait until a worker ends, or for TICK_MS. */
static void wait_for_some(struct jobs *j)
{
	struct pollfd p[JOBS_MOST];
	unsigned slot[JOBS_MOST], n = 0;

	for (unsigned i = 0; i < j->n; i++)
		if (j->workers[i].pid) {
			p[n] = (struct pollfd){j->workers[i].pipe, POLLIN, 0};
			slot[n++] = i;
		}
	if (interrupted && !j->told) {
		j->told = true;
		j->when = time(NULL);
		signal_workers(j, SIGTERM);
	} else if (j->told && time(NULL) - j->when > PATIENCE) {
		signal_workers(j, SIGKILL);
	}
	if (poll(p, n, TICK_MS) > 0)
		for (unsigned i = 0; i < n; i++)
			if (p[i].revents)
				end_worker(j, slot[i]);
	progress_update(&j->progress,
			min_u64(j->shared->bytes, j->progress.total));
}

static unsigned running_workers(const struct jobs *j)
{
	unsigned n = 0;

	for (unsigned i = 0; i < j->n; i++)
		n += j->workers[i].pid != 0;
	return n;
}

static void run_jobs(struct jobs *j)
{
	while (running_workers(j) ||
	       (j->next < j->p->parts.n && !j->code && !interrupted)) {
		for (unsigned i = 0; i < j->n && !j->code && !interrupted; i++)
			if (!j->workers[i].pid && j->next < j->p->parts.n)
				start_worker(j, i);
		if (running_workers(j))
			wait_for_some(j);
	}
	progress_clear(&j->progress);
	if (interrupted && j->done < j->p->parts.n) {
		struct error err = {0};

		error_set(&err, -EINTR, "interrupted");
		fail_jobs(j, &err);
	}
}

/* Choose the number of processes by threads and memory. */
static void choose_jobs(struct jobs *j, const struct settings *s)
{
	unsigned threads = s->threads ? s->threads : system_cores();
	uint64_t memory = s->pack.memory ? s->pack.memory : system_memory() / 4;
	uint64_t largest = 1;

	for (size_t i = 0; i < j->p->parts.n; i++)
		largest = max_u64(largest, (j->p->parts.at[i].end -
					    j->p->parts.at[i].begin) *
						   j->p->row_bytes);
	j->n = (unsigned)min_u64(min_u64(threads, JOBS_MOST), j->p->parts.n);
	if (largest > memory / SHARE / j->n)
		j->n = (unsigned)max_u64(memory / SHARE / largest, 1);
	if (j->in->fd >= 0 && j->in->stream)
		j->n = 1;
	j->o.threads = (unsigned)max_u64(threads / j->n, 1);
	j->o.memory = memory / j->n;
}

int write_jobs_run(const struct write_plan *p, const struct settings *s,
		   struct write_input *in, uint64_t *done, struct error *err)
{
	struct jobs j = {.p = p,
			 .in = in,
			 .err = err,
			 .o = {.rank = p->rank,
			       .shape = p->shape,
			       .dtype = &p->dtype,
			       .flag = s->pack.flag,
			       .no_lock = s->pack.no_lock,
			       .stop = &interrupted}};
	void *shared = mmap(NULL, sizeof *j.shared, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	*done = 0;
	if (shared == MAP_FAILED)
		return error_no_memory(err, "what the writing processes share");
	j.shared = shared;
	j.o.done = &j.shared->bytes;
	choose_jobs(&j, s);
	progress_init(&j.progress,
		      s->quiet      ? "none"
		      : s->progress ? s->progress
				    : "auto",
		      "writing",
		      in->fd < 0 ? 0 : (p->end - p->begin) * p->row_bytes);
	run_jobs(&j);
	munmap(shared, sizeof *j.shared);
	*done = j.done;
	return j.code;
}
