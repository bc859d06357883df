/* SPDX-License-Identifier: BSD-2-Clause */
/* Backing files: a bounded table of open descriptors, identity checked. */
#include "extent/handles.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/counters.h"
#include "base/number.h"
#include "base/vec.h"
#include "extent/file.h"
#include "extent/paths.h"

/*
 * A distributed tensor has more files than a process may have descriptors, and
 * a file that changes under us must never be served as if it had not.  So every
 * file is a row here, known by number; its descriptor comes and goes.
 *
 *     closed --get--> pinned --put (last pin)--> idle --get--> pinned
 *       ^                                          |
 *       +------------ evicted, oldest first -------+
 *
 * Idle files form a list by time of use.  `open_now` counts descriptors and the
 * opens under way; a get that would exceed `limit` closes idle files first, and
 * where all are pinned it exceeds the limit rather than wait (a reader that
 * waits while it holds pins deadlocks); the put of such a pin closes again.
 *
 * Identity is (device, inode, size, mtime), learnt at the first open.  Each get
 * compares what fstat says of the descriptor: that sees writes and truncation,
 * not a file that took the place of ours by rename.  For that the path is
 * looked at as well, at most once a second and file.  A write that leaves the
 * size alone and falls into the same tick of the file system's clock as the
 * first open cannot be seen by anybody.  Failures are not remembered: a file
 * that appears later, or is put back, works from then on.
 *
 * One mutex guards everything and is held for a few instructions, never across
 * a system call on a file.  Relative paths keep the meaning they had when the
 * first was added, whatever directory the daemon moves to.
 */

#define NONE PATHS_NONE
#define LOOK_MS 1000
#define LIMIT_MIN 4
#define LIMIT_MAX 4096

struct file {
	struct identity id;
	int fd; /* -1: closed */
	uint32_t pins;
	uint32_t newer, older; /* neighbours on the list of idle files */
	uint32_t looked;       /* when the path was last looked at, in ms */
	bool known;            /* id was learnt */
	bool doubtful;         /* the last look failed: look again at once */
};

struct handles {
	pthread_mutex_t lock; /* guards all below */
	struct paths paths;
	vec(struct file) files; /* row by row with paths */
	uint32_t oldest, newest;
	unsigned open_now, limit;
	int cwd; /* where relative paths begin */
};

/* ---- small things ------------------------------------------------------- */

static uint32_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint32_t)((uint64_t)ts.tv_sec * 1000 +
			  (uint64_t)ts.tv_nsec / 1000000);
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

/* Take the descriptor of the longest idle file, for the caller to close; -1:
 * none is idle. */
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

/* Close one idle file: any (`force`), or only while over the limit. */
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

/* ---- opening and comparing ---------------------------------------------- */

/* As file_open; closes idle files until there is a descriptor for it. */
static int open_some(struct handles *h, int cwd, const char *path, int *fd,
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

/* Enter a fresh descriptor and pin it, or pin the one that another thread
 * entered meanwhile.  *fd is what the caller has to close, or -1. */
static bool file_enter(struct handles *h, uint32_t file,
		       const struct identity *id, int *fd, struct handle *out,
		       struct identity *was)
{
	lock_scope(&h->lock);
	struct file *f = &h->files.at[file];

	if (!f->known) {
		f->id = *id;
		f->known = true;
	}
	*was = f->id;
	if (!identity_equal(id, was)) {
		h->open_now--;
		return false;
	}
	if (f->fd >= 0) {
		h->open_now--;
		file_pin(h, file);
	} else {
		f->fd = steal_fd(fd);
		f->pins = 1;
	}
	f->looked = now_ms();
	f->doubtful = false;
	*out = (struct handle){f->fd, file, id->size};
	return true;
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
	r = open_some(h, cwd, path, &fd, &st, err);
	if (r < 0) {
		open_cancel(h);
		return r;
	}
	identity_of(&st, &id);
	if (!file_enter(h, file, &id, &fd, out, &was))
		return file_fail_stale(err, path, &was, &id);
	return 0;
}

/* Does the path still lead to the file we know? */
static int path_check(struct handles *h, uint32_t file, int cwd,
		      const char *path, const struct identity *was,
		      struct error *err)
{
	struct identity is;
	struct stat st;
	int r = 0;

	if (fstatat(cwd, path, &st, 0) == 0) {
		identity_of(&st, &is);
		if (!identity_equal(&is, was))
			r = file_fail_stale(err, path, was, &is);
	} else if (errno == ENOENT || errno == ENOTDIR) {
		r = file_fail_errno(err, path, errno);
	} /* else it cannot be looked at, but the descriptor is still good */

	lock_scope(&h->lock);
	h->files.at[file].doubtful = r < 0;
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
		uint32_t now = now_ms();

		was = f->id;
		path = h->paths.at[pin->file];
		cwd = h->cwd;
		look = f->doubtful || now - f->looked >= LOOK_MS;
		if (look)
			f->looked = now;
	}
	if (fstat(pin->fd, &st) < 0)
		return file_fail_errno(err, path, errno);
	identity_of(&st, &is);
	if (!identity_equal(&was, &is))
		return file_fail_stale(err, path, &was, &is);
	return look ? path_check(h, pin->file, cwd, path, &was, err) : 0;
}

int handles_get(struct handles *h, uint32_t file, struct handle *out,
		struct error *err)
{
	const char *path = NULL;
	int cwd = AT_FDCWD, r;

	*out = (struct handle){-1, file, 0};
	{
		lock_scope(&h->lock);
		if (file < h->files.n) {
			struct file *f = &h->files.at[file];

			path = h->paths.at[file];
			cwd = h->cwd;
			if (f->fd >= 0) {
				file_pin(h, file);
				out->fd = f->fd;
				out->size = f->id.size;
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

static int read_pinned(struct handles *h, const struct handle *pin,
		       uint64_t pos, void *data, size_t len, struct error *err)
{
	const char *path = handles_path(h, pin->file);
	uint64_t end;
	ssize_t n;
	int r;

	if (add_overflows(pos, len, &end) || end > pin->size)
		return error_set(err, -EIO,
				 "%llu bytes at %llu lie beyond the end of %s "
				 "(%llu bytes): truncated?",
				 (unsigned long long)len,
				 (unsigned long long)pos, file_shown(path),
				 (unsigned long long)pin->size);
	n = file_read(pin->fd, pos, data, len);
	/* A file that changed explains everything else. */
	r = handles_check(h, pin, err);
	if (r < 0)
		return r;
	if (n < 0)
		return file_fail_errno(err, path, (int)-n);
	if ((size_t)n < len)
		return error_set(err, -EIO,
				 "%s ended after %llu of %llu bytes at %llu, "
				 "though it is %llu bytes long",
				 file_shown(path), (unsigned long long)n,
				 (unsigned long long)len,
				 (unsigned long long)pos,
				 (unsigned long long)pin->size);
	return 0;
}

int handles_read(struct handles *h, uint32_t file, uint64_t pos, void *data,
		 size_t len, struct error *err)
{
	struct handle pin;
	int r;

	r = handles_get(h, file, &pin, err);
	if (r < 0)
		return r;
	r = read_pinned(h, &pin, pos, data, len, err);
	handles_put(h, &pin);
	return r;
}

int handles_probe(struct handles *h, uint32_t file, struct stat *st,
		  struct error *err)
{
	const char *path = handles_path(h, file);
	int cwd;

	{
		lock_scope(&h->lock);
		cwd = h->cwd;
	}
	return file_stat(cwd, path, st, err);
}

/* ---- the table ---------------------------------------------------------- */

static unsigned limit_default(unsigned threads)
{
	struct rlimit rl = {1024, 1024};
	uint64_t own = 16 + UINT64_C(6) * threads;

	getrlimit(RLIMIT_NOFILE, &rl);
	if (rl.rlim_cur < own + LIMIT_MIN)
		return LIMIT_MIN;
	return (unsigned)min_u64(rl.rlim_cur - own, LIMIT_MAX);
}

int handles_new(struct handles **out, unsigned max_open, unsigned threads,
		struct error *err)
{
	struct handles *h = calloc(1, sizeof *h);

	*out = NULL;
	if (!h)
		return error_set(err, -ENOMEM, "out of memory");
	pthread_mutex_init(&h->lock, NULL);
	h->oldest = h->newest = NONE;
	h->limit = max_open ? max_open : limit_default(threads);
	h->cwd = AT_FDCWD;
	*out = h;
	return 0;
}

void handles_free(struct handles *h)
{
	size_t i;

	if (!h)
		return;
	for (i = 0; i < h->files.n; i++)
		if (h->files.at[i].fd >= 0)
			close(h->files.at[i].fd);
	vec_free(&h->files);
	paths_free(&h->paths);
	if (h->cwd >= 0)
		close(h->cwd);
	pthread_mutex_destroy(&h->lock);
	free(h);
}

/* Remember the present directory, once. */
static void cwd_keep(struct handles *h)
{
	cleanup_close int fd = -1;

	{
		lock_scope(&h->lock);
		if (h->cwd != AT_FDCWD)
			return;
	}
	fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	lock_scope(&h->lock);
	if (h->cwd == AT_FDCWD && fd >= 0)
		h->cwd = steal_fd(&fd);
}

uint32_t handles_add(struct handles *h, const char *path)
{
	struct file f = {.fd = -1, .newer = NONE, .older = NONE};
	uint32_t file;

	if (path[0] != '/')
		cwd_keep(h);
	lock_scope(&h->lock);
	file = paths_add(&h->paths, path);
	/* A path whose row found no memory gets it when it is added again. */
	while (file != NONE && h->files.n <= file)
		if (!vec_push(&h->files, f))
			return NONE;
	return file;
}

const char *handles_path(const struct handles *h, uint32_t file)
{
	lock_scope((pthread_mutex_t *)&h->lock);
	return file < h->files.n ? h->paths.at[file] : "?";
}

const char *handles_name(const struct handles *h, uint32_t file)
{
	return file_shown(handles_path(h, file));
}

uint32_t handles_count(const struct handles *h)
{
	lock_scope((pthread_mutex_t *)&h->lock);
	return (uint32_t)h->files.n;
}

void handles_usage(struct handles *h, unsigned *open_now, unsigned *limit)
{
	lock_scope(&h->lock);
	*open_now = h->open_now;
	*limit = h->limit;
}
