/* SPDX-License-Identifier: BSD-2-Clause */
/* Write a planned copy: directories, files with all threads, links, times. */

/*
 * Decoded bytes are written directly from the cache's buffers.  Large files are
 * allocated before a byte is written, so that a lack of space shows at once.  A write of
 * 0 bytes counts as a lack of space, too.  The files are not mapped, so a lack of space
 * is an error and not a SIGBUS.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "staging/copy_private.h"

#define PAGE 4096u

static int cannot_write(const char *name, int code, struct error *err)
{
	return error_errno(err, code, "cannot write '%s'", name);
}

/* ---- bytes --------------------------------------------------------------- */

/* Write all of an iovec, which is modified.  Return 0 or -errno. */
static int write_all_iovecs(int fd, struct iovec *iov, unsigned n, uint64_t off)
{
	while (n) {
		ssize_t w = pwritev(fd, iov, (int)(n < IOV_MAX ? n : IOV_MAX),
				    (off_t)off);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return w < 0 ? -errno : -ENOSPC;
		off += (uint64_t)w;
		while (n && (size_t)w >= iov->iov_len) {
			w -= (ssize_t)iov->iov_len;
			iov++;
			n--;
		}
		if (n) {
			iov->iov_base = (char *)iov->iov_base + w;
			iov->iov_len -= (size_t)w;
		}
	}
	return 0;
}

static bool is_zero(const unsigned char *p, size_t n)
{
	return n && !p[0] && (n == 1 || !memcmp(p, p + 1, n - 1));
}

/* Write an iovec, except pages of zeros, which are holes in the new file already.
 * Return 0 or -errno. */
static int write_sparse(int fd, const struct iovec *iov, unsigned n,
			uint64_t off)
{
	int r = 0;

	for (unsigned i = 0; i < n && r == 0; i++) {
		unsigned char *at = iov[i].iov_base, *end = at + iov[i].iov_len;

		while (at < end && r == 0) {
			size_t piece = min_u64((uint64_t)(end - at),
					       PAGE - off % PAGE);
			struct iovec one = {at, piece};

			if (!is_zero(at, piece))
				r = write_all_iovecs(fd, &one, 1, off);
			at += piece;
			off += piece;
		}
	}
	return r;
}

/* Move *off behind a hole of the source: it is a hole in the new file already. */
static void pass_hole(struct copy_run *r, const struct copy_file *f,
		      uint64_t *off, uint64_t *len)
{
	uint64_t data = *off, n;
	int code = fs_seek(r->job->plan->fs, f->ino, *off, SEEK_DATA, &data);

	if (code == -ENXIO)
		data = *off + *len;
	n = min_u64(data - *off, *len);
	*off += n;
	*len -= n;
	atomic_fetch_add_explicit(&r->done, n, memory_order_relaxed);
}

/* Copy bytes [off, off + len) of a file of the source to `fd`.  Return 0 or -errno. */
static int copy_range(struct copy_run *r, const struct copy_file *f, int fd,
		      const char *name, uint64_t off, uint64_t len,
		      struct reply *reply, struct error *err)
{
	struct fs *fs = r->job->plan->fs;
	int code = 0;

	while (len && code == 0 && !copy_ends(r)) {
		size_t n;

		if (f->flags & COPY_HOLES)
			pass_hole(r, f, &off, &len);
		if (!len)
			break;
		n = min_u64(len, COPY_WINDOW);
		code = fs_read(fs, f->ino, off, n, reply);
		if (code < 0)
			return copy_fail(fs, f->ino, code, err);
		if (reply->len != n)
			code = -ESTALE;
		else if (f->flags & COPY_HOLES)
			code = write_sparse(fd, reply->iov, reply->niov, off);
		else
			code = write_all_iovecs(fd, reply->iov, reply->niov,
						off);
		fs_release(fs, reply);
		off += n;
		len -= n;
		atomic_fetch_add_explicit(&r->done, n, memory_order_relaxed);
	}
	return code < 0 ? cannot_write(name, code, err) : 0;
}

/* ---- files --------------------------------------------------------------- */

/* Return whether `code` is allowed because a part of the file is missing and skip_missing
 * is set; then mark the file. */
static bool may_lack(struct copy_run *r, struct copy_file *f, int code)
{
	if (code != -ENODATA || !r->job->options->skip_missing)
		return false;
	__atomic_fetch_or(&f->flags, COPY_MISSING, __ATOMIC_RELAXED);
	return true;
}

static int copy_make_file(const struct copy_file *f, int in, const char *name,
			  struct error *err)
{
	mode_t mode = f->flags & COPY_EXEC ? 0700 : 0600;
	int fd = openat(in, name,
			O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			mode);

	if (fd < 0)
		return cannot_write(name, -errno, err);
	if (f->flags & COPY_HOLES && ftruncate(fd, (off_t)f->size) < 0) {
		int r = cannot_write(name, -errno, err);

		close(fd);
		return r;
	}
	return fd;
}

/* Set attributes and times, and check the length.  Return 0 or -errno. */
static int end_file(const struct copy_plan *p, const struct copy_file *f,
		    int fd, const char *name, struct error *err)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}};
	struct entry e;
	struct stat st;
	int r = fs_getattr(p->fs, f->ino, &e);

	if (r < 0)
		return copy_fail(p->fs, f->ino, r, err);
	copy_xattrs(p, f->ino, fd);
	times[1] = e.st.st_mtim;
	if (futimens(fd, times) < 0 || fstat(fd, &st) < 0)
		return cannot_write(name, -errno, err);
	if ((uint64_t)st.st_size != f->size || e.st.st_size != st.st_size)
		return error_set(err, -EIO,
				 "'%s' has %lld bytes instead of %llu: it "
				 "or its source changed while it was staged",
				 name, (long long)st.st_size,
				 (unsigned long long)f->size);
	return 0;
}

static int write_whole(struct copy_run *r, struct copy_dirs *dirs,
		       struct copy_file *f, struct reply *reply,
		       struct error *err)
{
	const struct copy_plan *p = r->job->plan;
	char name[FILES_NAME_MAX + 1];
	int in = copy_dirs_get(dirs, f->dir, err), fd, code;

	code = in < 0 ? in : copy_name(p, f, name, err);
	if (code < 0)
		return code;
	fd = copy_make_file(f, in, name, err);
	if (fd < 0)
		return fd;
	code = copy_range(r, f, fd, name, 0, f->size, reply, err);
	if (code == 0 && !copy_ends(r))
		code = end_file(p, f, fd, name, err);
	if (close(fd) < 0 && code == 0)
		code = cannot_write(name, -errno, err);
	return may_lack(r, f, code) ? 0 : code;
}

static int write_piece(struct copy_run *r, struct copy_dirs *dirs,
		       struct copy_file *f, const struct copy_unit *u,
		       struct reply *reply, struct error *err)
{
	char name[FILES_NAME_MAX + 1];
	int in = copy_dirs_get(dirs, f->dir, err), fd, code;

	code = in < 0 ? in : copy_name(r->job->plan, f, name, err);
	if (code < 0)
		return code;
	fd = openat(in, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return cannot_write(name, -errno, err);
	code = copy_range(r, f, fd, name, u->off, u->len, reply, err);
	if (close(fd) < 0 && code == 0)
		code = cannot_write(name, -errno, err);
	return may_lack(r, f, code) ? 0 : code;
}

static int write_unit(struct copy_run *r, struct copy_dirs *dirs,
		      const struct copy_unit *u, struct reply *reply,
		      struct error *err)
{
	struct copy_file *f = r->job->plan->files.at;
	int code = 0;

	for (uint64_t i = u->first; i < u->first + u->n && code == 0; i++) {
		if (copy_ends(r))
			break;
		code = u->whole ? write_whole(r, dirs, &f[i], reply, err)
				: write_piece(r, dirs, &f[i], u, reply, err);
	}
	return code;
}

/* ---- files that are made in advance -------------------------------------- */

static int allocate(int fd, const struct copy_file *f)
{
	int r;

	if (f->flags & COPY_HOLES || !f->size)
		return 0;
	do
		r = fallocate(fd, 0, 0, (off_t)f->size);
	while (r < 0 && errno == EINTR);
	if (r < 0 && errno != EOPNOTSUPP && errno != ENOSYS)
		return -errno;
	return r == 0 || ftruncate(fd, (off_t)f->size) == 0 ? 0 : -errno;
}

static int each_apart(struct copy_job *job, struct error *err,
		      int (*fn)(const struct copy_plan *p,
				const struct copy_file *f, int in,
				const char *name, struct error *err))
{
	const struct copy_plan *p = job->plan;
	char name[FILES_NAME_MAX + 1];
	struct copy_dirs dirs;
	int r = 0;

	copy_dirs_init(&dirs, p, job->to);
	for (uint64_t i = 0; r == 0 && i < p->files.n; i++) {
		const struct copy_file *f = &p->files.at[i];

		if (!(f->flags & COPY_APART))
			continue;
		r = copy_dirs_get(&dirs, f->dir, err);
		if (r >= 0) {
			int in = r;

			r = copy_name(p, f, name, err);
			r = r < 0 ? r : fn(p, f, in, name, err);
		}
		if (r == 0 && *job->stop)
			r = error_set(err, -EINTR, "interrupted");
	}
	copy_dirs_free(&dirs);
	return r;
}

static int make_apart(const struct copy_plan *p, const struct copy_file *f,
		      int in, const char *name, struct error *err)
{
	cleanup_close int fd = copy_make_file(f, in, name, err);
	int r = fd < 0 ? fd : allocate(fd, f);

	(void)p;
	if (fd < 0)
		return fd;
	return r < 0 ? cannot_write(name, r, err) : 0;
}

static int end_apart(const struct copy_plan *p, const struct copy_file *f,
		     int in, const char *name, struct error *err)
{
	cleanup_close int fd =
		openat(in, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return cannot_write(name, -errno, err);
	return f->flags & COPY_MISSING ? 0 : end_file(p, f, fd, name, err);
}

/* ---- files with missing parts -------------------------------------------- */

static int remove_missing(struct copy_job *job, struct error *err)
{
	struct copy_plan *p = job->plan;
	char name[FILES_NAME_MAX + 1];
	struct copy_dirs dirs;
	int r = 0;

	copy_dirs_init(&dirs, p, job->to);
	for (uint64_t i = 0; r == 0 && i < p->files.n; i++) {
		const struct copy_file *f = &p->files.at[i];

		if (!(f->flags & COPY_MISSING))
			continue;
		job->missing++;
		r = copy_dirs_get(&dirs, f->dir, err);
		if (r >= 0) {
			int in = r;

			r = copy_name(p, f, name, err);
			if (r == 0 && unlinkat(in, name, 0) < 0)
				r = cannot_write(name, -errno, err);
		}
	}
	copy_dirs_free(&dirs);
	return r;
}

/* ---- all of it ----------------------------------------------------------- */

int copy_write(struct copy_job *job, struct error *err)
{
	const struct copy_plan *p = job->plan;
	mode_t mask = umask(0077);
	int r = copy_make_dirs(p, job->to, job->stop, err);

	job->missing = 0;
	if (r == 0)
		r = each_apart(job, err, make_apart);
	if (r == 0)
		r = copy_run_units(job, write_unit, err);
	if (r == 0)
		r = each_apart(job, err, end_apart);
	if (r == 0 && job->options->skip_missing)
		r = remove_missing(job, err);
	if (r == 0)
		r = copy_make_links(p, job->to, job->stop, err);
	if (r == 0)
		r = copy_finish_dirs(p, job->to, job->stop, err);
	umask(mask);
	return r;
}
