/* SPDX-License-Identifier: BSD-2-Clause */
/* List the shared chunks of this user, and remove them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/shared/private.h"

/* Open the store without creating anything.  Return 0, 1 if there is no store, or
 * -errno. */
static int survey_open(struct shared *sh, const char *base, struct error *err)
{
	int r;

	*sh = (struct shared){.limit = UINT64_MAX};
	sh->home = sh->dir = (struct shm_dir)SHM_DIR_INIT;
	r = shm_home_open(&sh->home, base, false, err);
	if (r == 0)
		r = shm_dir_open(&sh->dir, &sh->home, SHARED_DIR, false, err);
	if (r < 0)
		shm_dir_close(&sh->home);
	return r == -ENOENT ? 1 : r;
}

static void survey_close(struct shared *sh)
{
	shm_dir_close(&sh->dir);
	shm_dir_close(&sh->home);
}

static bool store_is_open(const struct shared *sh)
{
	if (flock(sh->dir.fd, LOCK_EX | LOCK_NB) < 0)
		return true;
	flock(sh->dir.fd, LOCK_UN);
	return false;
}

/* Add each entry to the summary; with `away` remove it, too. */
static int survey_entries(struct shared *sh, bool away,
			  struct shared_summary *out, struct error *err)
{
	int fd = openat(sh->dir.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	struct stat st;
	int r = 0;

	if (!d) {
		r = error_errno(err, -errno, "cannot read '%s'", sh->dir.path);
		if (fd >= 0)
			close(fd);
		return r;
	}
	while ((e = readdir(d))) {
		if (!scan_is_entry(e->d_name) ||
		    fstatat(sh->dir.fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) <
			    0)
			continue;
		out->entries++;
		out->bytes += ledger_cost((uint64_t)st.st_size);
		out->used += scan_in_use(sh, e->d_name);
		if (away && unlinkat(sh->dir.fd, e->d_name, 0) < 0 &&
		    errno != ENOENT && r == 0)
			r = error_errno(err, -errno, "cannot remove '%s/%s'",
					sh->dir.path, e->d_name);
	}
	closedir(d);
	return r;
}

int shared_survey(const char *base, struct shared_summary *out,
		  struct error *err)
{
	struct shared sh;
	int r;

	*out = (struct shared_summary){0};
	r = survey_open(&sh, base, err);
	if (r)
		return r < 0 ? r : 0;
	out->live = store_is_open(&sh);
	r = survey_entries(&sh, false, out, err);
	survey_close(&sh);
	return r;
}

int shared_clear(const char *base, struct shared_summary *out,
		 struct error *err)
{
	struct shared sh;
	int r;

	*out = (struct shared_summary){0};
	r = survey_open(&sh, base, err);
	if (r)
		return r < 0 ? r : 0;
	out->live = flock(sh.dir.fd, LOCK_EX | LOCK_NB) < 0;
	r = survey_entries(&sh, true, out, err);
	if (r == 0 && out->live)
		r = ledger_settle(&sh, err);
	else if (r == 0) /* no process can open it while we have the lock */
		r = shm_remove(&sh.home, SHARED_DIR, err);
	if (r == 0)
		rmdir(sh.home.path); /* only succeeds if nothing else is there */
	survey_close(&sh);
	return r;
}
