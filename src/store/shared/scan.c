/* SPDX-License-Identifier: BSD-2-Clause */
/* Go through the entries: count them, and tell which are in use. */

/*
 * The kernel knows whether an entry is in use, and is right whatever died when: a write
 * lease is only given on a file that no other process has open, and a mapped file is
 * open.  While we have the lease no process can open the file either (with O_NONBLOCK it
 * is told so at once), so an entry that was found free is still free when its name is
 * removed.  A process that tries to open it "breaks" the lease, of which the kernel tells
 * us with a signal: SIGURG, which does nothing.
 *
 * Only entries that no process uses are evicted, or the limit would not hold: bytes of a
 * mapped file would stay in memory without its name.
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
/* The oldest entries that are collected; there is room for twice as many. */
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

/* Take a write lease.  Return a descriptor that is the file's only one, and stays so;
 * -EBUSY if there are others; or another -errno. */
static int take_lease(const struct shared *sh, const char *name)
{
	int fd = openat(sh->dir.fd, name,
			O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK |
				O_NOCTTY);

	if (fd < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	/* Where the file system has no leases (EINVAL), it is not known. */
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

/* Collect an entry; keep the oldest half when there is no more room. */
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

/* Remove a part if the process that made it has died; return true if it was removed. */
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
	/* For a file with two names the entry's name counts. */
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
		int r = error_errno(err, -errno, "cannot read '%s'",
				    sh->dir.path);

		if (fd >= 0)
			close(fd);
		return r;
	}
	/* If memory for the list is out there is nothing to evict. */
	s->oldest = malloc(2 * VICTIMS * sizeof *s->oldest);
	while ((e = readdir(d)))
		scan_count(sh, s, e->d_name);
	closedir(d);
	if (s->oldest)
		qsort(s->oldest, s->n, sizeof *s->oldest, compare_victim_times);
	return 0;
}
