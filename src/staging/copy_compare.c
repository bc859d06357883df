/* SPDX-License-Identifier: BSD-2-Clause */
/* Compare a copy with its source: each name and byte, and that there is nothing else. */

/*
 * The caller opens the sources again and makes a new plan.  The copy must have the
 * names, sizes and links of that plan and each byte of the sources, and nothing else.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "extent/file.h"
#include "staging/copy_private.h"

static int differs(const char *name, const char *how, struct error *err)
{
	return error_set(err, COPY_DIFFERS,
			 "'%s' in the staged tree differs from its source: %s",
			 name, how);
}

/* Return COPY_DIFFERS if `code` means that something is missing in the copy or has
 * another type, else `code`: the copy cannot be read. */
static int unreachable(int code, struct error *err)
{
	if (code != -ENOENT && code != -ENOTDIR && code != -ELOOP &&
	    code != -EACCES)
		return code;
	if (err)
		err->code = COPY_DIFFERS;
	return COPY_DIFFERS;
}

static int open_dir(struct copy_dirs *dirs, uint32_t dir, struct error *err)
{
	int fd = copy_dirs_get(dirs, dir, err);

	return fd < 0 ? unreachable(fd, err) : fd;
}

/* ---- bytes --------------------------------------------------------------- */

/* Return 0 if the file has the bytes of `reply` at `off`, else -errno. */
static int same_bytes(int fd, const char *name, const struct reply *reply,
		      uint64_t off, char *buf, struct error *err)
{
	for (unsigned i = 0; i < reply->niov; i++) {
		const char *want = reply->iov[i].iov_base;
		size_t left = reply->iov[i].iov_len;

		while (left) {
			size_t n = min_u64(left, COPY_WINDOW);
			ssize_t have = file_read(fd, off, buf, n);

			if (have < 0)
				return error_errno(err, (int)have,
						   "cannot read '%s'", name);
			if ((size_t)have < n || memcmp(buf, want, n))
				return differs(name, "its bytes differ", err);
			want += n;
			off += n;
			left -= n;
		}
	}
	return 0;
}

static int compare_range(struct copy_run *r, const struct copy_file *f, int fd,
			 const char *name, uint64_t off, uint64_t len,
			 struct reply *reply, struct error *err)
{
	cleanup_free char *buf = malloc(COPY_WINDOW);
	struct fs *fs = r->job->plan->fs;
	int code = buf ? 0 : error_no_memory(err, "the comparison buffer");

	while (len && code == 0 && !copy_ends(r)) {
		size_t n = min_u64(len, COPY_WINDOW);

		code = fs_read(fs, f->ino, off, n, reply);
		if (code < 0)
			return copy_fail(fs, f->ino, code, err);
		code = reply->len == n
			       ? same_bytes(fd, name, reply, off, buf, err)
			       : differs(name, "its length differs", err);
		fs_release(fs, reply);
		off += n;
		len -= n;
		atomic_fetch_add_explicit(&r->done, n, memory_order_relaxed);
	}
	return code;
}

/* Check that a file that the copy lacks was left out for a good reason: a part of it must
 * be missing in the source.  Return 0 or -errno. */
static int compare_lacking(struct copy_run *r, const struct copy_file *f,
			   const struct copy_unit *u, const char *name,
			   struct reply *reply, struct error *err)
{
	struct fs *fs = r->job->plan->fs;
	int code = 0;

	if (!u->whole) /* the missing part may be in another piece */
		return 0;
	for (uint64_t off = 0; off < f->size && !copy_ends(r);
	     off += COPY_WINDOW) {
		code = fs_read(fs, f->ino, off,
			       min_u64(f->size - off, COPY_WINDOW), reply);
		if (code < 0)
			break;
		fs_release(fs, reply);
	}
	if (code == -ENODATA || (code == 0 && copy_ends(r)))
		return 0;
	return code < 0 ? copy_fail(fs, f->ino, code, err)
			: differs(name, "it is missing", err);
}

static int compare_file(struct copy_run *r, struct copy_dirs *dirs,
			const struct copy_file *f, const struct copy_unit *u,
			struct reply *reply, struct error *err)
{
	const struct copy_plan *p = r->job->plan;
	char name[FILES_NAME_MAX + 1];
	cleanup_close int fd = -1;
	struct stat st;
	int in = open_dir(dirs, f->dir, err), code;

	code = in < 0 ? in : copy_name(p, f, name, err);
	if (code < 0)
		return code;
	fd = openat(in, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && r->job->options->skip_missing)
		return compare_lacking(r, f, u, name, reply, err);
	if (fd < 0 || fstat(fd, &st) < 0)
		return unreachable(
			error_errno(err, -errno, "cannot read '%s'", name),
			err);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != f->size)
		return differs(name, "its length differs", err);
	return compare_range(r, f, fd, name, u->whole ? 0 : u->off,
			     u->whole ? f->size : u->len, reply, err);
}

static int compare_unit(struct copy_run *r, struct copy_dirs *dirs,
			const struct copy_unit *u, struct reply *reply,
			struct error *err)
{
	const struct copy_file *f = r->job->plan->files.at;
	int code = 0;

	for (uint64_t i = u->first; i < u->first + u->n && code == 0; i++)
		if (!copy_ends(r))
			code = compare_file(r, dirs, &f[i], u, reply, err);
	return code;
}

/* ---- names --------------------------------------------------------------- */

static int compare_link(const struct copy_plan *p, struct copy_dirs *dirs,
			const struct copy_file *f, struct error *err)
{
	char name[FILES_NAME_MAX + 1], have[PATH_MAX];
	const char *want;
	int in = open_dir(dirs, f->dir, err), r;
	ssize_t n;

	r = in < 0 ? in : copy_name(p, f, name, err);
	if (r < 0)
		return r;
	r = fs_readlink(p->fs, f->ino, &want);
	if (r < 0)
		return copy_fail(p->fs, f->ino, r, err);
	n = readlinkat(in, name, have, sizeof have);
	if (n < 0 || (size_t)n != strlen(want) || memcmp(have, want, (size_t)n))
		return differs(name, "the target of the link differs", err);
	return 0;
}

/* Return the number of entries of an open directory, or -1 if it cannot be read. */
static int64_t count_entries(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	int64_t n = 0;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static int compare_counts(const struct copy_job *job, struct copy_dirs *dirs,
			  struct error *err)
{
	const struct copy_plan *p = job->plan;
	uint64_t want = copy_plan_entries(p) - 1 - job->missing, have = 0;

	for (uint32_t i = 0; i < p->dirs.n; i++) {
		int fd = copy_dirs_get(dirs, i, err);
		int64_t n = fd < 0 ? -1 : count_entries(fd);

		if (n < 0)
			return error_set(err, COPY_DIFFERS,
					 "a directory of the staged tree "
					 "cannot be read");
		have += (uint64_t)n;
	}
	return have == want ? 0
			    : error_set(err, COPY_DIFFERS,
					"the staged tree does not have as many "
					"files as its source");
}

int copy_compare(struct copy_job *job, struct error *err)
{
	const struct copy_plan *p = job->plan;
	int r = copy_run_units(job, compare_unit, err);
	struct copy_dirs dirs;

	copy_dirs_init(&dirs, p, job->to);
	for (size_t i = 0; r == 0 && i < p->links.n; i++)
		r = compare_link(p, &dirs, &p->links.at[i], err);
	if (r == 0)
		r = compare_counts(job, &dirs, err);
	copy_dirs_free(&dirs);
	return r;
}
