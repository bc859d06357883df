/* SPDX-License-Identifier: BSD-2-Clause */
/* Count or end all descendants of this process. */

/*
 * The caller is a subreaper: a process whose parent dies becomes its child.  So the
 * parents that /proc names are enough to find every descendant.  A scan can miss a child
 * that is forked meanwhile; the next scan finds it, and scans go on until one finds no
 * process.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/vec.h"
#include "run/run.h"

/* Milliseconds after which a process that cannot be killed is left. */
#define GIVE_UP_MS 5000
#define LOOK_MS 10

struct process {
	pid_t pid, parent, group;
	bool dead;
};
struct processes {
	struct process *at;
	size_t n, room;
};

static bool read_process(int proc, const char *name, struct process *out)
{
	char path[64], text[512], *p, state;
	cleanup_close int fd = -1;
	int threads;
	ssize_t n;

	snprintf(path, sizeof path, "%.32s/stat", name);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	/* The name of the program may contain anything, also ")". */
	p = strrchr(text, ')');
	if (!p ||
	    sscanf(p + 1,
		   " %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d "
		   "%*d %*d %d",
		   &state, &out->parent, &out->group, &threads) != 4)
		return false;
	out->pid = (pid_t)strtol(name, NULL, 10);
	/* The first thread of a killed process can end before its other threads, which
	 * still have its files. */
	out->dead =
		(state == 'Z' || state == 'X' || state == 'x') && threads <= 1;
	return true;
}

bool run_process_lives(pid_t pid)
{
	cleanup_close int proc =
		open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct process p;
	char name[16];

	snprintf(name, sizeof name, "%d", (int)pid);
	return read_process(proc, name, &p) && !p.dead;
}

static void tree_scan_processes(struct processes *l)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	struct process p;

	memset(l, 0, sizeof *l);
	while (d && (e = readdir(d)))
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9' &&
		    read_process(dirfd(d), e->d_name, &p) && !vec_push(l, p))
			break;
	if (d)
		closedir(d);
}

void run_tree_begin(struct run *r)
{
	struct processes l;
	siginfo_t info;

	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
		return;
	tree_scan_processes(&l);
	r->strangers = calloc(l.n + 1, sizeof *r->strangers);
	for (size_t i = 0; i < l.n && r->strangers; i++)
		if (l.at[i].parent == getpid())
			r->strangers[r->n_strangers++] = l.at[i].pid;
	vec_free(&l);
}

static bool is_excepted(const struct run *r, pid_t pid)
{
	for (size_t i = 0; i < r->n_strangers; i++)
		if (r->strangers[i] == pid)
			return true;
	return pid == r->shared->daemon;
}

/* Move the descendants of this process to the front, except those that are left alone and
 * what is below these; return their number. */
static size_t sort_below(const struct run *r, struct processes *l)
{
	size_t n = 0, looked = 0;
	pid_t parent = getpid();

	for (;;) {
		for (size_t i = n; i < l->n; i++) {
			struct process p = l->at[i];

			if (p.parent != parent || is_excepted(r, p.pid))
				continue;
			l->at[i] = l->at[n];
			l->at[n++] = p;
		}
		if (looked == n)
			return n;
		parent = l->at[looked++].pid;
	}
}

/* Signal the descendants that are alive (0: only count them); return their number. */
static unsigned signal_below(struct run *r, int sig)
{
	struct processes l;
	unsigned n = 0;
	size_t below;

	tree_scan_processes(&l);
	below = sort_below(r, &l);
	for (size_t i = 0; i < below; i++) {
		if (l.at[i].dead || l.at[i].pid == r->shared->escort)
			continue;
		n++;
		if (sig)
			kill(l.at[i].pid, sig);
		/* A stopped process would not see the signal. */
		if (sig == SIGTERM)
			kill(l.at[i].pid, SIGCONT);
	}
	vec_free(&l);
	return n;
}

unsigned run_tree_count(struct run *r)
{
	run_reap(r);
	return signal_below(r, 0);
}

bool run_group_lives(pid_t group)
{
	struct processes l;
	bool found;

	if (kill(-group, 0) < 0 && errno == ESRCH)
		return false;
	/* kill() counts zombies as members, too. */
	tree_scan_processes(&l);
	found = l.n == 0; /* no /proc: believe the kernel */
	for (size_t i = 0; i < l.n && !found; i++)
		found = l.at[i].group == group && !l.at[i].dead;
	vec_free(&l);
	return found;
}

/* Wait for a child to end, for up to LOOK_MS. */
static void wait_child(void)
{
	const struct timespec moment = {0, LOOK_MS * 1000000L};
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigtimedwait(&child, NULL, &moment);
}

unsigned run_tree_end(struct run *r, unsigned grace)
{
	uint64_t begun = clock_ms();
	bool asked = false;
	unsigned n;

	for (;;) {
		uint64_t past = clock_ms() - begun;

		run_reap(r);
		if (grace == 0 || past >= grace) {
			n = signal_below(r, SIGKILL);
		} else {
			n = signal_below(r, asked ? 0 : SIGTERM);
			asked = true;
		}
		if (n == 0 || past > grace + GIVE_UP_MS)
			return n;
		wait_child();
	}
}
