/* SPDX-License-Identifier: BSD-2-Clause */
/* Going through the entries: counting them, telling which are in use. */

/*
 * Whether an entry is in use is the kernel's knowledge, and so right whatever died
 * when: a write lease is only given on a file that nobody else has open, and what is
 * mapped is open.  While we have it nobody can open the file either (O_NONBLOCK: he
 * is told at once that he cannot), so what is tested to be free is free when its name
 * is removed.  Whoever tries "breaks" the lease, of which we are told by a signal:
 * SIGURG, which does nothing.
 *
 * Evicting only what is in nobody's hands keeps the promise of SIZE: bytes of a file
 * that is mapped would stay in memory without its name.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "store/shared/private.h"

#define NAME_LEN 32
/* Entries that are collected at once; twice as many have room. */
#define VICTIMS 2048

bool scan_is_entry(const char *name)
{
	return strspn(name, "0123456789abcdef") == NAME_LEN && !name[NAME_LEN];
}

static bool is_part(const char *name)
{
	return strspn(name, "0123456789abcdef") == NAME_LEN &&
	       !strcmp(name + NAME_LEN, SHARED_PART);
}

/* ---- in use? --------------------------------------------------------------- */

/* A descriptor that is the only one of the file, and stays that; -EBUSY; -errno. */
static int take_lease(const struct shared *sh, const char *name)
{
	int fd = openat(sh->dir.fd, name,
			O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK |
				O_NOCTTY);

	if (fd < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	/* Where there are no leases (EINVAL), nobody can tell. */
	if (fcntl(fd, F_SETSIG, SIGURG) < 0 ||
	    (fcntl(fd, F_SETLEASE, F_WRLCK) < 0 &&
	     (errno == EAGAIN || errno == EBUSY))) {
		close(fd);
		return -EBUSY;
	}
	return fd;
}

bool scan_evict(const struct shared *sh, const char *name)
{
	cleanup_close int fd = take_lease(sh, name);

	return fd >= 0 && unlinkat(sh->dir.fd, name, 0) == 0;
}

bool scan_in_use(const struct shared *sh, const char *name)
{
	cleanup_close int fd = take_lease(sh, name);

	return fd == -EBUSY;
}

/* ---- counting -------------------------------------------------------------- */

static int compare_victim_times(const void *a, const void *b)
{
	const struct victim *x = a, *y = b;

	return (x->time > y->time) - (x->time < y->time);
}

/* Keep the oldest half when there is no more room. */
static void scan_collect(struct scan *s, const char *name,
			 const struct stat *st)
{
	struct victim *v;

	if (!s->oldest)
		return;
	if (s->n == 2 * VICTIMS) {
		qsort(s->oldest, s->n, sizeof *s->oldest, compare_victim_times);
		s->n = VICTIMS;
	}
	v = &s->oldest[s->n++];
	v->time =
		(int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
	v->cost = ledger_cost((uint64_t)st->st_size);
	memcpy(v->name, name, sizeof v->name);
}

/* Has the process that made it died?  Then it is removed. */
static bool remove_dead_part(const struct shared *sh, const char *name)
{
	cleanup_close int fd =
		openat(sh->dir.fd, name,
		       O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
	       unlinkat(sh->dir.fd, name, 0) == 0;
}

static void scan_count(const struct shared *sh, struct scan *s,
		       const char *name)
{
	bool part = is_part(name);
	struct stat st;

	if ((!part && !scan_is_entry(name)) ||
	    fstatat(sh->dir.fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISREG(st.st_mode))
		return;
	/* Of one with two names the other one counts. */
	if (part &&
	    (remove_dead_part(sh, name) || st.st_nlink > 1 || !st.st_size))
		return;
	if (!part)
		scan_collect(s, name, &st);
	s->bytes += ledger_cost((uint64_t)st.st_size);
	s->entries++;
}

int scan_run(const struct shared *sh, struct scan *s, struct error *err)
{
	int fd = openat(sh->dir.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	*s = (struct scan){0};
	if (!d) {
		int r = error_errno(err, -errno, "'%s'", sh->dir.path);

		if (fd >= 0)
			close(fd);
		return r;
	}
	/* Without memory for it there is nothing to evict. */
	s->oldest = malloc(2 * VICTIMS * sizeof *s->oldest);
	while ((e = readdir(d)))
		scan_count(sh, s, e->d_name);
	closedir(d);
	if (s->oldest)
		qsort(s->oldest, s->n, sizeof *s->oldest, compare_victim_times);
	return 0;
}
