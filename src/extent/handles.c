/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of backing files: opening, comparing and closing them. */
#include "extent/handles_private.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/counters.h"
#include "base/number.h"

/*
 * A distributed tensor has more files than a process may have descriptors, and a file
 * that changes while it is mounted must never be served as if it had not.  So every
 * file is a row here, known by number; its descriptor comes and goes.
 *
 *     closed --get--> pinned --put (last pin)--> idle --get--> pinned
 *       ^                                          |
 *       +------------ evicted, oldest first -------+
 *
 * Idle files form a list by time of use.  `open_now` counts descriptors and the opens
 * under way.  A get that would exceed `limit` closes idle files first.  Where all are
 * pinned it exceeds the limit rather than wait, because a reader that waits while it
 * holds pins deadlocks; the put of such a pin closes the file again.
 *
 * The identity of a file is (device, inode, size, mtime).  It is learnt at the first
 * open, or declared before that by a caller that has already shown its size.  Each get
 * compares what fstat says of the descriptor: that detects writes and truncation, but
 * not a file that replaced ours by rename.  For that the path is examined as well, at
 * most once a second and file.  A file that was removed can be read as long as its
 * descriptor stays open, as in any program.  A write that keeps the size and falls into
 * the same tick of the file system's clock as the first open cannot be detected.
 * Failures are not remembered: a file that appears later, or is put back, works from
 * then on.
 *
 * One mutex guards everything; it is held for a few instructions, never across a system
 * call on a file.  Relative paths keep the meaning they had when the first one was
 * added, whatever directory the daemon changes to.
 */

#define LOOK_MS 1000

/* ---- small things ------------------------------------------------------- */

static uint32_t handles_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint32_t)((uint64_t)ts.tv_sec * 1000 +
			  (uint64_t)ts.tv_nsec / 1000000);
}

/* Return the path that is opened for row `file`; it stays valid.  The lock is held. */
static const char *row_path(const struct handles *h, uint32_t file)
{
	const struct part *part = h->files.at[file].part;

	return part ? part->path : h->paths.at[file];
}

/* Return a handle of an open row; the lock is held. */
static struct handle row_handle(const struct handles *h, uint32_t file)
{
	const struct file *f = &h->files.at[file];
	struct handle pin = {f->fd, file, f->id.size, 0};

	if (f->part) {
		pin.base = min_u64(f->part->pos, f->id.size);
		pin.size = min_u64(f->part->size, f->id.size - pin.base);
	}
	return pin;
}

/* ---- the list of idle files; the lock is held --------------------------- */

static void idle_push(struct handles *h, uint32_t file)
{
	struct file *f = &h->files.at[file];

	f->newer = NONE;
	f->older = h->newest;
	if (h->newest != NONE)
		h->files.at[h->newest].newer = file;
	else
		h->oldest = file;
	h->newest = file;
}

static void idle_remove(struct handles *h, uint32_t file)
{
	struct file *f = &h->files.at[file];

	if (f->newer != NONE)
		h->files.at[f->newer].older = f->older;
	else
		h->newest = f->older;
	if (f->older != NONE)
		h->files.at[f->older].newer = f->newer;
	else
		h->oldest = f->newer;
	f->newer = f->older = NONE;
}

static void file_pin(struct handles *h, uint32_t file)
{
	if (h->files.at[file].pins++ == 0)
		idle_remove(h, file);
}

/* Take the descriptor of the file that has been idle longest, for the caller to close;
 * -1 if no file is idle. */
static int idle_take(struct handles *h)
{
	uint32_t file = h->oldest;
	int fd;

	if (file == NONE)
		return -1;
	idle_remove(h, file);
	fd = h->files.at[file].fd;
	h->files.at[file].fd = -1;
	h->open_now--;
	return fd;
}

/* ---- closing ------------------------------------------------------------ */

/* Close one idle file; without `force`, only while the table is over its limit.
 * Returns true if a file was closed. */
static bool close_idle(struct handles *h, bool force)
{
	int fd = -1;

	{
		lock_scope(&h->lock);
		if (force || h->open_now > h->limit)
			fd = idle_take(h);
	}
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

void handles_close_idle(struct handles *h, uint32_t file)
{
	cleanup_close int fd = -1;
	lock_scope(&h->lock);
	struct file *f = &h->files.at[file];

	if (f->fd < 0 || f->pins || f->kept)
		return;
	idle_remove(h, file);
	fd = steal_fd(&f->fd);
	h->open_now--;
}

/* Count an open that is about to happen, and make room for it. */
static void open_reserve(struct handles *h)
{
	{
		lock_scope(&h->lock);
		h->open_now++;
	}
	while (close_idle(h, false))
		;
}

static void open_cancel(struct handles *h)
{
	lock_scope(&h->lock);
	h->open_now--;
}

/* ---- a file that grows -------------------------------------------------- */

/* Return true if `is`, the identity of the open file `fd`, is what `was` became through
 * a writer that only appends. */
static bool row_has_grown(struct handles *h, uint32_t file, int fd,
			  const struct identity *is, const struct identity *was)
{
	unsigned char bits, wanted;
	uint64_t mark;

	{
		lock_scope(&h->lock);
		const struct file *f = &h->files.at[file];

		mark = f->mark;
		wanted = f->mark_bits;
	}
	return wanted && is->dev == was->dev && is->ino == was->ino &&
	       is->size >= was->size && file_read(fd, mark, &bits, 1) == 1 &&
	       (bits & wanted) == wanted;
}

bool handles_is_same(struct handles *h, uint32_t file, int fd,
		     const struct identity *is, const struct identity *was)
{
	return identity_equal(is, was) || row_has_grown(h, file, fd, is, was);
}

/* Return true if `is`, the identity of the open file `fd`, is the one that row `file`
 * knows.  If the file has only grown, its new identity is known from then on.  *was is
 * set to the identity that was known before. */
static bool row_is_known(struct handles *h, uint32_t file, int fd,
			 const struct identity *is, struct identity *was)
{
	{
		lock_scope(&h->lock);
		*was = h->files.at[file].id;
	}
	if (identity_equal(is, was))
		return true;
	if (!row_has_grown(h, file, fd, is, was))
		return false;
	lock_scope(&h->lock);
	if (is->size >= h->files.at[file].id.size)
		h->files.at[file].id = *is;
	return true;
}

/* ---- opening and comparing ---------------------------------------------- */

/* As file_open, but close idle files until there is a descriptor for it. */
static int open_with_room(struct handles *h, int cwd, const char *path, int *fd,
			  struct stat *st, struct error *err)
{
	int r;

	do
		r = file_open(cwd, path, fd, st, err);
	while (r == -EMFILE && close_idle(h, true));
	if (r == -EMFILE) {
		r = -EIO;
		if (err)
			err->code = r;
	}
	return r;
}

/* Remember the identity of a file if this is its first open. */
static void file_learn(struct handles *h, uint32_t file,
		       const struct identity *id)
{
	lock_scope(&h->lock);
	struct file *f = &h->files.at[file];

	if (!f->known) {
		f->id = *id;
		f->known = true;
	}
}

/* Enter a fresh descriptor and pin it, or pin the one that another thread entered
 * meanwhile.  *fd is set to a descriptor that the caller has to close, or to -1. */
static void file_enter(struct handles *h, uint32_t file, int *fd,
		       struct handle *out)
{
	lock_scope(&h->lock);
	struct file *f = &h->files.at[file];

	if (f->fd >= 0) {
		h->open_now--;
		file_pin(h, file);
	} else {
		f->fd = steal_fd(fd);
		f->pins = 1;
	}
	f->opened = true;
	f->looked = handles_now_ms();
	f->doubtful = false;
	*out = row_handle(h, file);
}

static int open_and_enter(struct handles *h, uint32_t file, int cwd,
			  const char *path, struct handle *out,
			  struct error *err)
{
	cleanup_close int fd = -1;
	struct identity id, was;
	struct stat st;
	int r;

	open_reserve(h);
	r = open_with_room(h, cwd, path, &fd, &st, err);
	if (r == 0)
		r = guard_check(&h->guard, fd, &st, path, err);
	if (r < 0) {
		open_cancel(h);
		return r;
	}
	identity_of(&st, &id);
	file_learn(h, file, &id);
	if (!row_is_known(h, file, fd, &id, &was)) {
		open_cancel(h);
		return file_fail_stale(err, path, &was, &id);
	}
	file_enter(h, file, &fd, out);
	return 0;
}

/* Check that the path still leads to the file that the row knows. */
static int row_check_path(struct handles *h, const struct handle *pin, int cwd,
			  const char *path, struct error *err)
{
	struct identity is, was;
	struct stat st;
	int r = 0;

	/* If it was removed or cannot be examined, the descriptor is still good. */
	if (fstatat(cwd, path, &st, 0) == 0) {
		identity_of(&st, &is);
		if (!row_is_known(h, pin->file, pin->fd, &is, &was))
			r = file_fail_stale(err, path, &was, &is);
	}

	lock_scope(&h->lock);
	h->files.at[pin->file].doubtful = r < 0;
	return r;
}

int handles_check(struct handles *h, const struct handle *pin,
		  struct error *err)
{
	struct identity was, is;
	struct stat st;
	const char *path;
	bool look;
	int cwd;

	{
		lock_scope(&h->lock);
		struct file *f = &h->files.at[pin->file];
		uint32_t now = handles_now_ms();

		path = row_path(h, pin->file);
		cwd = h->cwd;
		look = !f->kept && (f->doubtful || now - f->looked >= LOOK_MS);
		if (look)
			f->looked = now;
	}
	if (fstat(pin->fd, &st) < 0)
		return file_fail_errno(err, path, errno);
	identity_of(&st, &is);
	if (!row_is_known(h, pin->file, pin->fd, &is, &was))
		return file_fail_stale(err, path, &was, &is);
	return look ? row_check_path(h, pin, cwd, path, err) : 0;
}

int handles_get(struct handles *h, uint32_t file, struct handle *out,
		struct error *err)
{
	const char *path = NULL;
	int cwd = AT_FDCWD, r;

	{
		lock_scope(&h->lock);
		if (file < h->files.n && h->files.at[file].joined)
			file = h->files.at[file].joined->piece[0].file;
		*out = (struct handle){-1, file, 0, 0};
		if (file < h->files.n) {
			path = row_path(h, file);
			cwd = h->cwd;
			if (h->files.at[file].fd >= 0) {
				file_pin(h, file);
				*out = row_handle(h, file);
			}
		}
	}
	if (!path)
		return error_set(err, -EIO,
				 "there is no backing file number %u", file);
	if (out->fd < 0)
		return open_and_enter(h, file, cwd, path, out, err);
	r = handles_check(h, out, err);
	if (r < 0)
		handles_put(h, out);
	return r;
}

void handles_put(struct handles *h, struct handle *pin)
{
	int fd = -1;

	if (pin->fd < 0)
		return;
	{
		lock_scope(&h->lock);
		if (--h->files.at[pin->file].pins == 0)
			idle_push(h, pin->file);
		if (h->open_now > h->limit)
			fd = idle_take(h);
	}
	pin->fd = -1;
	if (fd >= 0)
		close(fd);
}

int handles_probe(struct handles *h, uint32_t file, struct stat *st,
		  struct error *err)
{
	unsigned n = 1;
	int cwd, r = 0;

	for (unsigned i = 0; i < n && !r; i++) {
		const char *path;

		{
			lock_scope(&h->lock);
			const struct joined *j = h->files.at[file].joined;

			path = row_path(h, j ? j->piece[i].file : file);
			n = j ? j->n : 1;
			cwd = h->cwd;
		}
		r = file_stat(cwd, path, st, err);
	}
	return r;
}
