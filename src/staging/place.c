/* SPDX-License-Identifier: BSD-2-Clause */
/* The directory of staged trees: its files, its locks, and removal of what is left
 * over. */

/*
 *	/dev/shm/tensorfs-UID/      at
 *	    NAME/                   a tree, always complete
 *	    .stages/                control
 *	        lock                held, never for long, to change any of this
 *	        KEY.key             held by the process that makes the tree KEY
 *	        ID.use              lock of one instance: held by its builder and users
 *	        ID.json             its record, once it is complete
 *	        ID.from             the list of its source files
 *	        ID.tree/            its tree while it is made, or while it is deleted
 *
 * With --to DIR, `at` is DIR and control is DIR/.tensorfs-UID.
 *
 * The kernel frees a lock when its holder ends, so the state of an instance follows from
 * its files, whichever process died:
 *
 *	record, NAME is its directory    published
 *	record, NAME is another one      its builder died while publishing, or it was
 *	                                 replaced: removed
 *	record that cannot be read       left alone: another version may read it
 *	no record, ID.use held           being made
 *	no record, ID.use free           its builder died: removed
 *
 * A record is written before its tree gets its name, and has the inode number of the
 * tree's directory.  So a NAME without a record was not made by tensorfs, and is never
 * touched.
 *
 * To remove a tree, it is moved into the control directory while the place is locked, and
 * deleted after the place was unlocked: deleting a million files takes a second.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "staging/private.h"

/* Another process may remove a directory that is being opened, because it is empty; how
 * often to try again. */
#define TRIES 100

/* ---- opening ------------------------------------------------------------- */

static int open_elsewhere(struct staging *s, struct error *err)
{
	s->at.path = realpath(s->to, NULL);
	if (s->at.path)
		s->at.fd = open(s->at.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->at.fd < 0)
		return error_errno(err, -errno, "cannot open '%s'", s->to);
	return 0;
}

static int open_home(struct staging *s, bool make, struct error *err)
{
	int r = shm_home_open(&s->at, NULL, make, err);

	if (r == -ENOENT && make)
		error_set(err, r,
			  "there is no %s on this machine: choose another "
			  "directory with --to DIR",
			  SHM_DEFAULT);
	if (r == 0 && !shm_in_memory(s->at.fd))
		r = error_set(err, -ENOTSUP,
			      "%s is not in memory, so staging there gains "
			      "nothing: choose another directory with --to DIR",
			      SHM_DEFAULT);
	return r;
}

static int open_once(struct staging *s, bool make, struct error *err)
{
	char name[40] = ".stages";
	int r = s->to ? open_elsewhere(s, err) : open_home(s, make, err);

	if (s->to)
		snprintf(name, sizeof name, ".tensorfs-%lu",
			 (unsigned long)geteuid());
	if (r == 0)
		r = shm_dir_open(&s->control, &s->at, name, make, err);
	if (r < 0) {
		shm_dir_close(&s->control);
		shm_dir_close(&s->at);
		return r;
	}
	s->memory = shm_in_memory(s->at.fd);
	return 0;
}

int staging_open(struct staging *s, const char *to, bool make,
		 struct error *err)
{
	int r = -ENOENT;

	*s = (struct staging){.at = SHM_DIR_INIT, .control = SHM_DIR_INIT};
	if (to && !(s->to = strdup(to)))
		return error_no_memory(err,
				       "the path of the staging directory");
	if (to && access(to, F_OK) < 0)
		r = error_errno(err, -errno, "cannot open '%s'", to);
	else
		for (int i = 0; i < TRIES && r == -ENOENT; i++) {
			r = open_once(s, make, err);
			if (!make || access(to ? to : SHM_DEFAULT, F_OK) < 0)
				break;
		}
	if (r < 0)
		staging_close(s);
	return r;
}

void staging_close(struct staging *s)
{
	shm_dir_close(&s->control);
	shm_dir_close(&s->at);
	free(s->to);
	s->to = NULL;
}

static int staging_reopen(struct staging *s, struct error *err)
{
	struct staging fresh;
	int r = staging_open(&fresh, s->to, true, err);

	if (r < 0)
		return r;
	staging_close(s);
	*s = fresh;
	return 0;
}

/* ---- locks --------------------------------------------------------------- */

int place_lock_file(struct staging *s, const char *name, enum shm_lock how,
		    bool wait, struct error *err)
{
	int fd = -ENOENT, r = 0;

	for (int i = 0; i < TRIES && r == 0 && fd == -ENOENT; i++) {
		fd = shm_lock(&s->control, name, how, wait, err);
		if (fd == -ENOENT)
			r = staging_reopen(s, err);
	}
	return r < 0 ? r : fd;
}

int place_lock(struct staging *s, struct error *err)
{
	return place_lock_file(s, "lock", SHM_EXCLUSIVE, true, err);
}

/* Closing does not unlock if a child process has inherited the descriptor, so the lock is
 * released first. */
void place_unlock(int *fd)
{
	if (*fd < 0)
		return;
	flock(*fd, LOCK_UN);
	close(*fd);
	*fd = -1;
}

/* ---- what there is ------------------------------------------------------- */

void place_file(char out[PLACE_FILE], const char *id, const char *what)
{
	snprintf(out, PLACE_FILE, "%s.%s", id, what);
}

uint64_t place_born(int dir, const char *name)
{
	struct statx sx;

	if (statx(dir, name, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, STATX_BTIME,
		  &sx) < 0 ||
	    !(sx.stx_mask & STATX_BTIME) || sx.stx_btime.tv_sec < 0)
		return 0;
	return (uint64_t)sx.stx_btime.tv_sec * 1000000000 +
	       sx.stx_btime.tv_nsec;
}

bool place_has(const struct staging *s, const struct record *r)
{
	struct stat st;

	if (fstatat(s->at.fd, r->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISDIR(st.st_mode) || st.st_ino != r->ino)
		return false;
	return r->born ? place_born(s->at.fd, r->name) == r->born
		       : st.st_dev == r->dev;
}

static bool is_instance_file(const char *name)
{
	return strspn(name, "0123456789abcdef") == STAGING_ID - 1 &&
	       name[STAGING_ID - 1] == '.';
}

/* Add the instance or key that a file name belongs to.  Return false if there is no
 * memory. */
static bool note_entry(struct instances *l, const char *name)
{
	struct instance one;
	bool key;

	if (!is_instance_file(name))
		return true;
	key = !strcmp(name + STAGING_ID, "key");
	memcpy(one.id, name, STAGING_ID - 1);
	one.id[STAGING_ID - 1] = '\0';
	if (key)
		return vec_push(&l->keys, one);
	for (size_t i = 0; i < l->list.n; i++)
		if (!strcmp(l->list.at[i].id, one.id))
			return true;
	return vec_push(&l->list, one);
}

void instances_free(struct instances *l)
{
	vec_free(&l->list);
	vec_free(&l->keys);
}

static DIR *open_entries(const struct staging *s)
{
	int fd = openat(s->control.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d && fd >= 0)
		close(fd);
	return d;
}

int place_scan(const struct staging *s, struct instances *out,
	       struct error *err)
{
	DIR *d = open_entries(s);
	struct dirent *e;
	bool ok = true;

	*out = (struct instances){.list = VEC_EMPTY};
	if (!d)
		return error_errno(err, -errno, "cannot list '%s'",
				   s->control.path);
	while (ok && (e = readdir(d)))
		ok = note_entry(out, e->d_name);
	closedir(d);
	if (!ok) {
		instances_free(out);
		return error_no_memory(err, "the list of staged trees");
	}
	return 0;
}

/* ---- what goes ----------------------------------------------------------- */

int place_condemn(const struct staging *s, struct doomed *d, const char *id,
		  const char *name, int fd, struct error *err)
{
	char file[PLACE_FILE];
	__typeof__(*d->list.at) one = {.fd = fd};
	int r = 0;

	memcpy(one.id, id, STAGING_ID);
	if (name) {
		place_file(file, id, "tree");
		/* The tree that this instance replaced may still be there. */
		r = shm_remove(&s->control, file, err);
		if (r == 0 && renameat(s->at.fd, name, s->control.fd, file) < 0)
			r = error_errno(err, -errno, "cannot remove '%s/%s'",
					s->at.path, name);
	}
	if (r == 0) {
		place_file(file, id, "json");
		if (unlinkat(s->control.fd, file, 0) < 0 && errno != ENOENT)
			r = error_errno(err, -errno, "cannot remove '%s/%s'",
					s->control.path, file);
	}
	if (r == 0 && !vec_push(&d->list, one))
		r = error_no_memory(err, "the list of staged trees to remove");
	if (r < 0)
		place_unlock(&fd);
	return r;
}

int place_bury(const struct staging *s, struct doomed *d, struct error *err)
{
	static const char *const parts[] = {"tree", "json~", "from", "use"};
	char file[PLACE_FILE];
	int r = 0;

	for (size_t i = 0; i < d->list.n; i++) {
		int one = 0;

		for (size_t k = 0; k < 4 && one == 0; k++) {
			place_file(file, d->list.at[i].id, parts[k]);
			one = shm_remove(&s->control, file, r ? NULL : err);
		}
		place_unlock(&d->list.at[i].fd);
		r = r < 0 ? r : one;
	}
	vec_free(&d->list);
	return r;
}

/* Return whether the control directory has no tree of this instance. */
static bool is_bare(const struct staging *s, const char *id)
{
	char file[PLACE_FILE];

	place_file(file, id, "tree");
	return faccessat(s->control.fd, file, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
}

static int sweep_one(struct staging *s, const char *id, bool all,
		     struct doomed *d, struct error *err)
{
	char file[PLACE_FILE];
	struct record rec;
	bool there, goes;
	int fd, r;

	place_file(file, id, "use");
	fd = shm_lock(&s->control, file, SHM_EXCLUSIVE, false, NULL);
	if (fd < 0) /* held */
		return 0;
	r = record_read(s, id, &rec);
	there = r == 0 && place_has(s, &rec);
	/* A record that cannot be read stays, since without it its tree would not be
	 * found.  An instance without record and tree was removed by its owner just now,
	 * without locking the place, and shm_lock above has made the lock file. */
	goes = there ? rec.transient
		     : (all && r == 0) ||
			       (r == -ENOENT && (all || is_bare(s, id)));
	r = 0;
	if (goes) {
		r = place_condemn(s, d, id, there ? rec.name : NULL, fd, err);
	} else {
		if (there) { /* a tree it replaced, left by a builder that died */
			place_file(file, id, "tree");
			r = shm_remove(&s->control, file, err);
		}
		place_unlock(&fd);
	}
	record_free(&rec);
	return r;
}

int place_sweep(struct staging *s, bool all, struct doomed *d,
		struct error *err)
{
	struct instances found;
	char file[PLACE_FILE];
	int r = place_scan(s, &found, err);

	for (size_t i = 0; i < found.keys.n; i++) {
		int fd;

		place_file(file, found.keys.at[i].id, "key");
		fd = shm_lock(&s->control, file, SHM_EXCLUSIVE, false, NULL);
		if (fd >= 0)
			unlinkat(s->control.fd, file, 0);
		place_unlock(&fd);
	}
	for (size_t i = 0; r != -ENOMEM && i < found.list.n; i++) {
		int one = sweep_one(s, found.list.at[i].id, all, d,
				    r < 0 ? NULL : err);

		r = r < 0 ? r : one;
	}
	instances_free(&found);
	return r;
}

/* ---- an empty place ------------------------------------------------------ */

static bool place_is_empty(const struct staging *s)
{
	DIR *d = open_entries(s);
	struct dirent *e;
	bool empty = d;

	while (empty && (e = readdir(d)))
		empty = !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
			!strcmp(e->d_name, "lock");
	if (d)
		closedir(d);
	return empty;
}

void staging_tidy(struct staging *s)
{
	int fd = place_lock(s, NULL);

	if (fd >= 0 && place_is_empty(s)) {
		unlinkat(s->control.fd, "lock", 0);
		rmdir(s->control.path);
		if (!s->to)
			rmdir(s->at.path); /* fails if it has other files */
	}
	place_unlock(&fd);
}
