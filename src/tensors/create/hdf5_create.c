/* SPDX-License-Identifier: BSD-2-Clause */
/* Make the files of a distributed tensor: all of them or none. */

/*
 * Parts of equal shape are equal files, so libhdf5 makes at most two, the first and the
 * last; the others are copies of the first, made by several threads, because each costs a
 * few round trips on a network file system.
 *
 * All files are made in a directory beside their places, with their final names:
 *
 *	.run_ALL.h5.tensorfs-XXXXXX/        locked while this process lives
 *	    run_00000-00100.h5 ...          new files
 *	    run_ALL.h5
 *	    old/                            the files that they replace, meanwhile
 *
 * When all are written and synced (the whole file system at once, if there are many
 * files), the old files go to old/, the main file first, and the new files to their
 * places, the main file last: so a main file always belongs to a complete set.  If a
 * rename fails, everything is moved back.  A directory without a lock was left by a
 * killed process; the next create of that main file puts its old files back and removes
 * it (tensors/create/sweep.c).
 */
#include "tensors/create/private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "base/pool.h"
#include "tensors/copy.h"

/* With more files than this, the whole file system is synced once. */
#define SYNC_EACH 64
/* Files in a job of a thread. */
#define BATCH 64

/* ---- existing files ------------------------------------------------------------ */

static int check_free(const struct create_set *s, struct error *err)
{
	char name[NAME_MAX + 1];
	struct stat st;

	for (uint64_t i = s->plan.parts + 1; i-- > 0;) {
		create_file_name(&s->plan, i, name);
		if (fstatat(s->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
			if (errno == ENOENT)
				continue;
			return error_errno(err, -errno, "'%s/%s'", s->plan.dir,
					   name);
		}
		if (S_ISDIR(st.st_mode))
			return error_set(err, -EISDIR, "'%s/%s' is a directory",
					 s->plan.dir, name);
		if (!s->plan.a->replace)
			return error_set(
				err, -EEXIST,
				"'%s/%s' already exists; --force replaces it",
				s->plan.dir, name);
	}
	return 0;
}

/* ---- making ------------------------------------------------------------------ */

static int make_fresh(struct create_set *s, struct error *err)
{
	char main_name[NAME_MAX + 1];
	const char *dir = s->plan.dir;

	create_main_name(&s->plan, main_name, sizeof main_name);
	if (asprintf(&s->path, "%s/.%s" CREATE_MARK CREATE_RANDOM, dir,
		     main_name) < 0) {
		s->path = NULL;
		return error_no_memory(err, "the name of a directory");
	}
	if (!mkdtemp(s->path)) {
		free(steal_pointer(&s->path));
		return error_errno(err, -errno, "cannot write to '%s'", dir);
	}
	s->name = strrchr(s->path, '/') + 1;
	s->fresh = openat(s->dir, s->name,
			  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->fresh < 0)
		return error_errno(err, -errno, "'%s'", s->path);
	/* Without locks, no other process removes it either. */
	flock(s->fresh, LOCK_EX | LOCK_NB);
	return 0;
}

static void create_fail(struct create_set *s, const struct error *why)
{
	lock_scope(&s->lock);

	if (!s->code) {
		*s->err = *why;
		s->code = why->code;
	}
}

struct batch {
	struct create_set *s;
	uint64_t first, end;
};

static int copy_part(struct create_set *s, int from, uint64_t part,
		     struct error *err)
{
	char name[NAME_MAX + 1];
	cleanup_close int to = -1;
	int r;

	create_part_name(&s->plan, part, name, sizeof name);
	to = openat(s->fresh, name,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (to < 0)
		return error_errno(err, -errno, "cannot make '%s/%s'",
				   s->plan.dir, name);
	r = copy_file(from, to, s->plan.a->stop, err);
	if (r == 0 && s->plan.parts <= SYNC_EACH && fsync(to) < 0)
		r = error_errno(err, -errno, "cannot write");
	/* Network file systems may report failures only here. */
	if (close(steal_fd(&to)) < 0 && r == 0)
		r = error_errno(err, -errno, "cannot write");
	if (r < 0)
		error_prefix(err, "'%s/%s': ", s->plan.dir, name);
	return r;
}

static void copy_batch(void *arg)
{
	struct batch *b = arg;
	struct create_set *s = b->s;
	char name[NAME_MAX + 1];
	cleanup_close int from = -1;
	struct error err = {0};
	int r = 0;

	create_part_name(&s->plan, 0, name, sizeof name);
	from = openat(s->fresh, name, O_RDONLY | O_CLOEXEC);
	if (from < 0)
		r = error_errno(&err, -errno, "'%s/%s'", s->path, name);
	for (uint64_t i = b->first; i < b->end && r == 0 && !s->code; i++)
		r = copy_part(s, from, i, &err);
	if (r < 0)
		create_fail(s, &err);
	free(b);
}

/* Make parts [first, end) as copies of part 0. */
static int copy_parts(struct create_set *s, uint64_t first, uint64_t end,
		      struct error *err)
{
	unsigned jobs =
		(unsigned)min_u64(s->plan.a->jobs, div_up(end - first, BATCH));
	struct pool *pool;
	int r = pool_new(&pool, "create", jobs, 2 * jobs, err);

	if (r < 0)
		return r;
	for (uint64_t i = first; i < end && r == 0 && !s->code; i += BATCH) {
		struct batch *b = malloc(sizeof *b);

		if (!b) {
			r = error_no_memory(err, "the parts to be made");
			break;
		}
		*b = (struct batch){s, i, min_u64(i + BATCH, end)};
		pool_submit(pool, copy_batch, b);
	}
	pool_free(pool);
	return r < 0 ? r : s->code;
}

/* Make a file with libhdf5.  Set *bytes to its size. */
static int make_one(struct create_set *s, uint64_t file, uint64_t *bytes,
		    struct error *err)
{
	char name[NAME_MAX + 1];
	cleanup_free char *path = NULL;
	cleanup_close int fd = -1;
	struct stat st;
	int r;

	create_file_name(&s->plan, file, name);
	if (asprintf(&path, "%s/%s", s->path, name) < 0) {
		path = NULL;
		return error_no_memory(err, "the name of a file");
	}
	r = file < s->plan.parts ? create_part(&s->plan, file, path, err)
				 : create_main(&s->plan, path, err);
	if (r < 0)
		return r;
	fd = openat(s->fresh, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fsync(fd) < 0 || fstat(fd, &st) < 0)
		return error_errno(err, -errno, "cannot write '%s/%s'",
				   s->plan.dir, name);
	*bytes = (uint64_t)st.st_size;
	return *s->plan.a->stop ? error_set(err, -EINTR, "interrupted") : 0;
}

static int make_files(struct create_set *s, struct create_result *out,
		      struct error *err)
{
	uint64_t n = s->plan.parts, first, last = 0, all;
	bool odd =
		create_end(&s->plan, n - 1) - create_begin(&s->plan, n - 1) !=
		create_end(&s->plan, 0);
	int r = make_one(s, 0, &first, err);

	if (r == 0 && odd)
		r = make_one(s, n - 1, &last, err);
	if (r == 0 && n - odd > 1)
		r = copy_parts(s, 1, n - odd, err);
	if (r == 0)
		r = make_one(s, n, &all, err);
	if (r == 0 && n > SYNC_EACH && syncfs(s->fresh) < 0)
		r = error_errno(err, -errno, "cannot sync '%s'", s->plan.dir);
	if (r == 0 && fsync(s->fresh) < 0 && errno != EINVAL)
		r = error_errno(err, -errno, "cannot sync '%s'", s->path);
	if (r == 0)
		out->bytes = first * (n - odd) + last + all;
	return r;
}

/* ---- all of it --------------------------------------------------------------- */

static int make_set(struct create_set *s, struct create_result *out,
		    struct error *err)
{
	char name[NAME_MAX + 1];
	int r = create_plan_names(&s->plan, err);

	if (r == 0)
		r = create_plan_shape(&s->plan, err);
	if (r == 0)
		r = create_check(&s->plan, out, err);
	if (r < 0)
		return r;
	s->dir = open(s->plan.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir < 0)
		return error_errno(err, -errno, "'%s'", s->plan.dir);
	create_sweep(s);
	r = check_free(s, err);
	if (r < 0)
		return r;
	create_main_name(&s->plan, name, sizeof name);
	if (asprintf(&out->main, "%s%s%s",
		     strchr(s->plan.a->pattern, '/') ? s->plan.dir : "",
		     strchr(s->plan.a->pattern, '/') ? "/" : "", name) < 0) {
		out->main = NULL;
		return error_no_memory(err, "the name of the main file");
	}
	out->parts = s->plan.parts;
	r = make_fresh(s, err);
	if (r == 0)
		r = make_files(s, out, err);
	if (r == 0)
		r = create_publish(s, err);
	if (r == 0)
		out->others = create_count_others(s);
	return r;
}

int hdf5_create(const struct create_args *a, struct create_result *out,
		struct error *err)
{
	struct create_set s = {.plan = {.a = a, .type = H5I_INVALID_HID},
			       .dir = -1,
			       .fresh = -1,
			       .old = -1,
			       .err = err,
			       .lock = PTHREAD_MUTEX_INITIALIZER};
	int r;

	*out = (struct create_result){0};
	r = make_set(&s, out, err);
	if (s.old >= 0)
		close(s.old);
	if (r < 0 && s.old >= 0 &&
	    unlinkat(s.fresh, CREATE_OLD, AT_REMOVEDIR) < 0)
		error_prefix(err, "the old files are in '%s/" CREATE_OLD "': ",
			     s.path);
	else if (s.name)
		create_remove(s.dir, s.name);
	if (s.fresh >= 0)
		close(s.fresh);
	if (s.dir >= 0)
		close(s.dir);
	free(s.path);
	free(s.plan.dir);
	free(s.plan.before);
	free(s.plan.after);
	if (r < 0)
		create_result_free(out);
	return r;
}

void create_result_free(struct create_result *r)
{
	free(steal_pointer(&r->main));
}
