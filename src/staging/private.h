/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations shared by this folder: records, instances, the lock of a place. */
#ifndef STAGING_PRIVATE_H
#define STAGING_PRIVATE_H

#include "base/json.h"
#include "staging/staging.h"

/* ---- records (record.c) -------------------------------------------------- */

/* The record of an instance whose tree was completed. */
struct record {
	char id[STAGING_ID], key[STAGING_KEY];
	char *name, *source, *options;
	/* They identify the tree's directory.  Inode numbers are reused, and devices have
	 * other numbers after the next mount, so `born`, the time of its creation in
	 * nanoseconds, decides, unless it is 0 (unknown). */
	uint64_t dev, ino, born;
	struct staging_result result;
	int64_t made;
	bool transient;
};
void record_free(struct record *r);
/* Read the record of instance `id`; record_free frees *out.  Return 0, -ENOENT if there
 * is none, -EBADMSG if it is damaged, another -errno if it cannot be read now. */
int record_read(const struct staging *s, const char *id, struct record *out);
/* Write or replace the record in one step.  Return 0 or -errno. */
int record_write(const struct staging *s, const struct record *r,
		 struct error *err);
/* Return whether a tree may have this name. */
bool record_name_ok(const char *name);
/* Write into `fd`, the lock file of an instance that is being made: its name and sources,
 * for lists, and how many bytes are still to be written, for other processes that ask
 * whether their tree fits.  Return 0 or -errno. */
int record_announce(int fd, const struct staging_want *w, struct error *err);
/* Overwrite the number of bytes that are still to be written; errors are ignored. */
void record_announce_left(int fd, uint64_t left);
struct announced {
	char *name, *source; /* NULL: unknown */
	char *group;         /* the control group that writes; NULL: unknown */
	uint64_t left;       /* bytes still to be written */
};
/* Read what record_announce wrote; members that cannot be read are NULL and 0. */
void record_announced(const struct staging *s, const char *id,
		      struct announced *out);
void announced_free(struct announced *a);

/* ---- source files (sources.c) -------------------------------------------- */

/* Write the list of an instance's source files; called before record_write.  Return 0 or
 * -errno. */
int sources_write(const struct staging *s, const char *id,
		  const struct staging_sources *sources, struct error *err);
/* Return whether every source file is unchanged; false also if the list cannot be
 * read. */
bool sources_are_current(const struct staging *s, const char *id);
/* Remove the list, so that sources_are_current returns false from now on. */
void sources_forget(const struct staging *s, const char *id);

/* ---- places (place.c) ---------------------------------------------------- */

/* Bytes of a file name such as "ID.json". */
#define PLACE_FILE STAGING_FILE
/* Set `out` to the file name "ID.WHAT". */
void place_file(char out[PLACE_FILE], const char *id, const char *what);
/* Lock the place, so that no other process changes it.  Blocks; the lock is never held
 * for long.  Return a descriptor for place_unlock, or -errno. */
int place_lock(struct staging *s, struct error *err);
/* Unlock and close any lock, and set *fd to -1; does nothing if it is negative. */
void place_unlock(int *fd);
/* As shm_lock in the control directory, which is made again if another process has
 * removed it. */
int place_lock_file(struct staging *s, const char *name, enum shm_lock how,
		    bool wait, struct error *err);
/* Return when the directory `name` was created, in ns, for record.born; 0: unknown. */
uint64_t place_born(int dir, const char *name);
/* Return whether the directory with the record's name is the record's tree. */
bool place_has(const struct staging *s, const struct record *r);

/* An instance that has files in the control directory. */
struct instance {
	char id[STAGING_ID];
};
struct instances {
	vec(struct instance) list;
	vec(struct instance) keys; /* of "KEY.key" files */
};
/* List the instances and keys of the place.  Return 0 or -errno; instances_free frees
 * *out in both cases. */
int place_scan(const struct staging *s, struct instances *out,
	       struct error *err);
void instances_free(struct instances *l);

/* Instances to be removed, each with its lock, which is held. */
struct doomed {
	vec(struct {
		char id[STAGING_ID];
		int fd;
	}) list;
};
/* Move instance `id` out of sight and remember it in `d`.  The place must be locked.
 * `name` is its tree's name, or NULL if no tree has to be moved; `fd` is the instance's
 * lock, which `d` owns from now on (it is closed on failure).  Return 0 or -errno. */
int place_condemn(const struct staging *s, struct doomed *d, const char *id,
		  const char *name, int fd, struct error *err);
/* Condemn transient trees that no process holds, and with `all` also what dead processes
 * left unfinished.  The place must be locked.  Goes on after a failure, and returns the
 * first -errno, or 0. */
int place_sweep(struct staging *s, bool all, struct doomed *d,
		struct error *err);
/* Delete the condemned instances and free `d`.  The place need not be locked: this may
 * take long.  Return 0 or the first -errno. */
int place_bury(const struct staging *s, struct doomed *d, struct error *err);

#endif
