/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of a merge: output in the making, journal, and parts to delete. */

/*
 * While OUT is made, there are beside it:
 *
 *   .OUT.tensorfs-merge            the data file, which becomes OUT
 *   .OUT.tensorfs-merge.journal    locked as long as a process merges; with
 *                                  --delete-parts it records what is done (journal.h)
 *
 * The names are always the same, so that the next attempt finds what the last one has
 * left.  A process that has locked the journal has to check that the name still leads to
 * the file that it has locked: the process before it may have removed that file just
 * then.
 *
 * When the file is made, the journal says so before the file gets its name.  From then on
 * any process can do the rest: a rename, and deleting parts.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "tensors/lock.h"
#include "tensors/merge/private.h"

/* The number of bytes of OUT's name that are in the other two names, which have a
 * suffix. */
#define NAME_MOST 200

/* ---- names --------------------------------------------------------------- */

static int name_files(struct merge *m, struct error *err)
{
	const char *slash = strrchr(m->out, '/');
	const char *base = slash ? slash + 1 : m->out;

	if (!*base)
		return error_set(err, -EISDIR, "'%s' is a directory", m->out);
	m->dir = slash ? strndup(m->out,
				 (size_t)(slash - m->out) + (slash == m->out))
		       : strdup(".");
	if (!m->dir || asprintf(&m->data_path, "%s/.%.*s.tensorfs-merge",
				m->dir, NAME_MOST, base) < 0) {
		m->data_path = NULL;
		return error_no_memory(err, "the names of the output");
	}
	if (asprintf(&m->journal_path, "%s.journal", m->data_path) < 0) {
		m->journal_path = NULL;
		return error_no_memory(err, "the names of the output");
	}
	return 0;
}

/* Find the output: if it is a symbolic link, the file behind it is what is replaced. */
static int place_find_output(struct merge *m, struct error *err)
{
	struct stat main, out, link;
	const char *path = m->o.out ? m->o.out : m->o.main;
	bool there = stat(path, &out) == 0;

	if (!strcmp(path, "-"))
		return error_set(
			err, -EINVAL,
			"the output cannot be '-': the file gets its name when "
			"it is complete (for a file with that name: ./-)");
	if (stat(m->o.main, &main) < 0)
		return error_set(err, errno == ENOENT ? -ENODATA : -EIO,
				 "%s: %s", file_shown(m->o.main),
				 strerror(errno));
	identity_of(&main, &m->main_id);
	m->in_place =
		there && out.st_dev == main.st_dev && out.st_ino == main.st_ino;
	m->mode = 0;
	if (!there && lstat(path, &link) == 0)
		return error_set(
			err, -EEXIST,
			"'%s' is a symbolic link to a file that does not exist",
			path);
	if (there && S_ISDIR(out.st_mode))
		return error_set(err, -EISDIR, "'%s' is a directory", path);
	if (there && !S_ISREG(out.st_mode))
		return error_set(err, -EINVAL, "'%s' is not a regular file",
				 path);
	if (there)
		m->mode = out.st_mode & 07777;
	m->out = there ? realpath(path, NULL) : strdup(path);
	return m->out ? name_files(m, err)
		      : error_no_memory(err, "the names of the output");
}

/* ---- the lock ------------------------------------------------------------ */

/* Try to take a lock without waiting: flock(), as libhdf5 does, or (flock_how 0) an OFD
 * lock for writing, as this program does. */
static int place_try_lock(int fd, int flock_how)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return flock_how ? flock(fd, flock_how | LOCK_NB)
			 : fcntl(fd, F_OFD_SETLK, &l);
}

/* Try for about a second, because a process that was killed may have a child that dies a
 * moment later.  Returns 0, -EBUSY or another -errno. */
static int place_lock_patiently(int fd, int flock_how)
{
	const struct timespec a_little = {.tv_nsec = 20000000};

	for (int i = 0;; i++) {
		if (place_try_lock(fd, flock_how) == 0)
			return 0;
		if (errno != EAGAIN && errno != EACCES)
			return -errno;
		if (i == 50)
			return -EBUSY;
		nanosleep(&a_little, NULL);
	}
}

/* Open and lock the journal.  Returns 0, or -EAGAIN if the locked file has no name any
 * more and the caller has to try again, or another -errno. */
static int place_lock_once(struct merge *m, struct error *err)
{
	struct stat is, named;
	int r;

	m->lock_fd = open(m->journal_path,
			  O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (m->lock_fd < 0)
		return error_errno(err, -errno,
				   "cannot write to the directory of '%s'",
				   m->out);
	r = place_lock_patiently(m->lock_fd, LOCK_EX);
	if (r < 0) {
		if (r == -EBUSY) {
			close(m->lock_fd);
			m->lock_fd = -1;
			return error_set(err, -EBUSY,
					 "'%s' is being merged by another "
					 "process",
					 m->out);
		}
		log_warn("'%s' cannot be locked (%s): make sure that no other "
			 "merge uses it",
			 m->journal_path, strerror(-r));
		return 0;
	}
	if (fstat(m->lock_fd, &is) == 0 && stat(m->journal_path, &named) == 0 &&
	    is.st_ino == named.st_ino && is.st_dev == named.st_dev)
		return 0;
	close(m->lock_fd);
	m->lock_fd = -1;
	return -EAGAIN;
}

/*
 * Lock the main file.  A merge that deletes parts needs this, because another merge, into
 * another OUT, would get some of the parts and this one the others.  A merge that
 * replaces the main file needs it, too: rows that are written meanwhile would not be in
 * the result.  The second lock is libhdf5's own, which then lets programs open the file
 * for reading only.
 */
static int place_lock_main(struct merge *m, struct error *err)
{
	struct stat st;

	m->main_fd = open(m->o.main, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (m->main_fd < 0)
		m->main_fd = open(m->o.main, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (m->main_fd >= 0 && place_lock_patiently(m->main_fd, 0) == -EBUSY)
		return error_set(err, -EBUSY,
				 "'%s' is being merged or written by another "
				 "process",
				 m->o.main);
	if (m->main_fd >= 0 &&
	    place_lock_patiently(m->main_fd, LOCK_SH) == -EBUSY)
		return error_set(err, -EBUSY,
				 "'%s' is open for writing in another program",
				 m->o.main);
	/* The file may have been replaced while this process waited for locks. */
	if (stat(m->o.main, &st) < 0)
		return error_errno(err, errno == ENOENT ? -ENODATA : -EIO, "%s",
				   m->o.main);
	identity_of(&st, &m->main_id);
	if (m->main_fd >= 0 && fstat(m->main_fd, &st) == 0 &&
	    (uint64_t)st.st_ino != m->main_id.ino)
		return error_set(err, -EBUSY, "'%s' was just replaced",
				 m->o.main);
	return 0;
}

int merge_place_open(struct merge *m, struct error *err)
{
	struct stat st;
	int r = place_find_output(m, err);

	if (r < 0)
		return r;
	m->dir_fd = open(m->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (m->dir_fd < 0)
		return error_errno(err, -errno, "'%s'", m->dir);
	if (fstat(m->dir_fd, &st) == 0)
		m->dir_dev = st.st_dev;
	do
		r = place_lock_once(m, err);
	while (r == -EAGAIN);
	if (r == 0 && (m->o.delete_parts || m->in_place))
		r = place_lock_main(m, err);
	return r < 0 ? r
		     : journal_read(&m->j, m->lock_fd, m->journal_path, err);
}

/* ---- the data file ------------------------------------------------------- */

int merge_place_sync_journal(struct merge *m, struct error *err)
{
	return fdatasync(m->lock_fd) < 0
		       ? error_errno(err, -errno, "cannot write '%s'",
				     m->journal_path)
		       : 0;
}

static int sync_dir(struct merge *m, struct error *err)
{
	if (fsync(m->dir_fd) < 0 && errno != EINVAL)
		return error_errno(err, -errno, "cannot sync '%s'", m->dir);
	return 0;
}

int merge_place_data(struct merge *m, bool resume, struct error *err)
{
	mode_t mask = umask(0);
	struct stat st;

	umask(mask);
	if (!m->mode)
		m->mode = 0666 & ~mask;
	/* The process that wrote the journal may have been killed before the journal was
	 * synced.  And a journal that was emptied must not come back after a crash and
	 * describe other data. */
	if (merge_place_sync_journal(m, err) < 0)
		return err->code;
	m->data_fd = open(m->data_path,
			  O_RDWR | O_CLOEXEC | O_NOFOLLOW |
				  (resume ? 0 : O_CREAT | O_TRUNC),
			  0600);
	if (m->data_fd < 0 || fstat(m->data_fd, &st) < 0)
		return error_errno(err, -errno, "cannot write '%s'",
				   m->data_path);
	if (resume && (uint64_t)st.st_size < m->j.end)
		return error_set(err, -EBADMSG,
				 "'%s' is shorter than its journal says",
				 m->data_path);
	if (!S_ISREG(st.st_mode))
		return error_set(err, -EINVAL, "'%s' is not a regular file",
				 m->data_path);
	if (ftruncate(m->data_fd, resume ? (off_t)m->j.end : 0) < 0)
		return error_errno(err, -errno, "cannot write '%s'",
				   m->data_path);
	return sync_dir(m, err);
}

/* Rename, but never over a file that was made meanwhile, if the file system can do
 * that. */
static int rename_new(const char *from, const char *to)
{
	if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (access(to, F_OK) == 0)
		return -EEXIST;
	return rename(from, to) < 0 ? -errno : 0;
}

static int rename_data(struct merge *m, struct error *err)
{
	int r;

	if (m->o.replace || m->in_place)
		r = rename(m->data_path, m->out) < 0 ? -errno : 0;
	else
		r = rename_new(m->data_path, m->out);
	if (r == -EEXIST)
		return error_set(
			err, r,
			"'%s' was created meanwhile; --force replaces it",
			m->out);
	return r < 0 ? error_errno(err, r, "cannot make '%s'", m->out) : 0;
}

int merge_place_publish(struct merge *m, struct error *err)
{
	struct identity id;
	struct stat st;
	int r = 0;

	if (fchmod(m->data_fd, m->mode) < 0 || fsync(m->data_fd) < 0 ||
	    fstat(m->data_fd, &st) < 0)
		return error_errno(err, -errno, "cannot write '%s'",
				   m->data_path);
	identity_of(&st, &id);
	m->result->stored = id.size;
	if (m->o.delete_parts)
		r = journal_write_made(&m->j, m->lock_fd, &id, err);
	m->j.made = m->o.delete_parts && r == 0;
	m->j.file = id;
	if (r == 0)
		r = rename_data(m, err);
	return r < 0 ? r : sync_dir(m, err);
}

void merge_place_remove(struct merge *m, bool published)
{
	if (m->data_fd >= 0 && !published)
		unlink(m->data_path);
	/* Sync, or the journal could come back when power is lost, and describe a file
	 * that was written to since. */
	if (m->lock_fd >= 0 && unlink(m->journal_path) == 0 && published)
		fsync(m->dir_fd);
	/* From now on a file with that name belongs to another merge. */
	if (m->lock_fd >= 0)
		close(m->lock_fd);
	m->lock_fd = -1;
}

/* ---- parts --------------------------------------------------------------- */

int merge_place_unchanged(const char *path, const struct identity *id,
			  struct error *err)
{
	struct identity is;
	struct stat st;

	if (stat(path, &st) < 0)
		return error_errno(err, errno == ENOENT ? -ESTALE : -errno,
				   "%s", file_shown(path));
	identity_of(&st, &is);
	return merge_same_file(&is, id)
		       ? 0
		       : error_set(err, -ESTALE,
				   "%s has changed while it was merged",
				   file_shown(path));
}

int merge_place_delete(struct merge *m, const char *path,
		       const struct identity *id, struct error *err)
{
	cleanup_close int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct identity is;
	struct stat st;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
		if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
			unlink(path); /* it led to another part */
		return 0;
	}
	/* Check that no process writes to the file now, or puts another file in its
	 * place. */
	if (fd >= 0 && hdf5_lock_idle(fd, path, "and is not deleted", err) < 0)
		return err->code;
	if (stat(path, &st) < 0)
		return error_errno(err, -errno, "cannot delete %s",
				   file_shown(path));
	identity_of(&st, &is);
	if (!merge_same_file(&is, id))
		return error_set(err, -ESTALE,
				 "%s has changed since it was merged, and is "
				 "not deleted",
				 file_shown(path));
	if (unlink(path) < 0 && errno != ENOENT)
		return error_errno(err, -errno, "cannot delete %s",
				   file_shown(path));
	m->result->deleted++;
	return 0;
}

int merge_place_delete_listed(struct merge *m, struct error *err)
{
	struct error changed = {.code = 0};
	int r = 0;

	/* A file that was put there since does not belong to this merge; the others are
	 * deleted. */
	for (size_t i = 0; i < m->j.parts.n && r == 0; i++) {
		const struct journal_file *f = &m->j.parts.at[i];

		if (!f->kept)
			r = merge_place_delete(m, f->path, &f->id, err);
		if (r != -ESTALE)
			continue;
		changed = *err;
		r = 0;
	}
	if (r < 0)
		return r;
	merge_place_remove(m, true);
	if (changed.code)
		*err = changed;
	return changed.code;
}

int merge_place_finish(struct merge *m, struct error *err)
{
	const char *why = merge_journal_foreign(m);
	struct identity is;
	struct stat st;
	bool unnamed = stat(m->data_path, &st) == 0;
	int r;

	if (why)
		return error_set(
			err, -EBADMSG,
			"another merge into '%s' was interrupted and has to be "
			"finished first: %s; nothing was touched",
			m->out, why);
	if (!unnamed && stat(m->out, &st) < 0)
		return error_errno(err, -errno, "'%s'", m->out);
	identity_of(&st, &is);
	if (!merge_place_alike(&is, &m->j.file))
		return error_set(err, -EBADMSG,
				 "'%s' is not the file that its journal "
				 "describes; nothing was touched",
				 unnamed ? m->data_path : m->out);
	m->result->stored = is.size;
	/* The process that renamed it and recorded so may have been killed before it
	 * synced. */
	r = merge_place_sync_journal(m, err);
	if (r == 0 && unnamed)
		r = rename_data(m, err);
	if (r == 0)
		r = sync_dir(m, err);
	if (r == 0)
		r = merge_place_delete_listed(m, err);
	return r;
}
