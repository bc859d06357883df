/* SPDX-License-Identifier: BSD-2-Clause */
/* Remove or undo what killed processes have left of a `create`. */

/*
 * A directory of new files without a lock was left by a killed process.  Its main file
 * would have been moved last: while that is still there, the files in old/ are all that
 * is left of a tensor that was being replaced, and go back to their places.
 */
#include "tensors/create/private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"

static DIR *open_list(int dir, const char *name)
{
	int fd = openat(dir, name,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d && fd >= 0)
		close(fd);
	return d;
}

static bool is_dots(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

static void remove_tree(int dir, const char *name, int depth)
{
	DIR *d = open_list(dir, name);
	const struct dirent *e;

	while (d && (e = readdir(d)))
		if (!is_dots(e->d_name) &&
		    unlinkat(dirfd(d), e->d_name, 0) < 0 && depth == 0)
			remove_tree(dirfd(d), e->d_name, depth + 1);
	if (d)
		closedir(d);
	unlinkat(dir, name, AT_REMOVEDIR);
}

void create_remove(int dir, const char *name)
{
	remove_tree(dir, name, 0);
}

static bool create_is_there(int dir, const char *name)
{
	return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Put an old file back.  If the new file has its place already, that goes back first. */
static int create_put_back(const struct create_set *s, int fresh, int old,
			   const char *name)
{
	int r = create_move(old, s->dir, name);

	if (r != -EEXIST || create_is_there(fresh, name))
		return r;
	r = create_move(s->dir, fresh, name);
	return r < 0 ? r : create_move(old, s->dir, name);
}

/* Put back the parts, then the main file. */
static int create_put_all_back(const struct create_set *s, int fresh,
			       const char *main_name)
{
	DIR *d = open_list(fresh, CREATE_OLD);
	const struct dirent *e;
	int r = d ? 0 : -errno;

	while (d && r == 0 && (e = readdir(d)))
		if (!is_dots(e->d_name) && strcmp(e->d_name, main_name) != 0)
			r = create_put_back(s, fresh, dirfd(d), e->d_name);
	if (r == 0 && create_is_there(dirfd(d), main_name))
		r = create_put_back(s, fresh, dirfd(d), main_name);
	if (d)
		closedir(d);
	if (r == 0 && fsync(s->dir) < 0 && errno != EINVAL)
		r = -errno;
	return r;
}

/* Clean up one directory, if no process has it locked. */
static void create_sweep_one(const struct create_set *s, const char *name,
			     const char *main_name)
{
	cleanup_close int fd = openat(
		s->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return;
	if (create_is_there(fd, main_name) &&
	    unlinkat(fd, CREATE_OLD, AT_REMOVEDIR) < 0 && errno != ENOENT) {
		int r = create_put_all_back(s, fd, main_name);

		if (r < 0) {
			log_warn("'%s/%s/" CREATE_OLD
				 "' has the files that a killed create --force "
				 "was replacing, and they cannot be put back: "
				 "%s",
				 s->plan.dir, name, strerror(-r));
			return;
		}
		log_warn("'%s/%s' was put back: a create --force was killed "
			 "while it was replacing it",
			 s->plan.dir, main_name);
	}
	create_remove(s->dir, name);
}

/* Is this the name of a directory of new files for this main file? */
static bool is_fresh(const char *name, const char *main_name)
{
	size_t n = strlen(main_name);

	return name[0] == '.' && !strncmp(name + 1, main_name, n) &&
	       !strncmp(name + 1 + n, CREATE_MARK, strlen(CREATE_MARK)) &&
	       strlen(name + 1 + n) == strlen(CREATE_MARK CREATE_RANDOM);
}

void create_sweep(const struct create_set *s)
{
	char main_name[NAME_MAX + 1];
	DIR *d = open_list(s->dir, ".");
	const struct dirent *e;

	create_main_name(&s->plan, main_name, sizeof main_name);
	while (d && (e = readdir(d)))
		if (is_fresh(e->d_name, main_name))
			create_sweep_one(s, e->d_name, main_name);
	if (d)
		closedir(d);
}

uint64_t create_count_others(const struct create_set *s)
{
	DIR *d = open_list(s->dir, ".");
	const struct dirent *e;
	uint64_t parts = 0;

	while (d && (e = readdir(d)))
		parts += create_looks_like_part(&s->plan, e->d_name);
	if (d)
		closedir(d);
	return parts > s->plan.parts ? parts - s->plan.parts : 0;
}
