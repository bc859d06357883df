/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of this folder share: records, instances, the lock of a place. */
#ifndef STAGING_PRIVATE_H
#define STAGING_PRIVATE_H

#include "base/json.h"
#include "staging/staging.h"

/* ---- records (record.c) -------------------------------------------------- */

/* What is known of an instance that was complete once. */
struct record {
	char id[STAGING_ID], key[STAGING_KEY];
	char *name, *source, *options;
	/* Of the tree's directory.  Inode numbers are given again, devices have other
	 * numbers after the next mount: `born`, nanoseconds, 0 where that is not
	 * known, tells. */
	uint64_t dev, ino, born;
	struct staging_result result;
	int64_t made;
	bool transient;
};
void record_free(struct record *r);
/* -ENOENT; -EBADMSG for one that cannot be believed; another -errno: it cannot be
 * read now.  Without a sentence. */
int record_read(const struct staging *s, const char *id, struct record *out);
int record_write(const struct staging *s, const struct record *r,
		 struct error *err);
/* A name that a directory of a place can have. */
bool record_name_ok(const char *name);
/* What is written into the lock of an instance in the making: for people, and how
 * many bytes are to be written still, for others who want to know if they fit. */
int record_announce(int fd, const struct staging_want *w, struct error *err);
void record_announce_left(int fd, uint64_t left);
struct announced {
	char *name, *source; /* NULL: unknown */
	char *group;         /* the control group that writes; NULL: unknown */
	uint64_t left;
};
void record_announced(const struct staging *s, const char *id,
		      struct announced *out);
void announced_free(struct announced *a);

/* ---- what they were made of (sources.c) ----------------------------------- */

/* Before the record is. */
int sources_write(const struct staging *s, const char *id,
		  const struct staging_sources *sources, struct error *err);
/* Is every file what it was then?  False as well when that is not known. */
bool sources_are_current(const struct staging *s, const char *id);
/* From now on it is not. */
void sources_forget(const struct staging *s, const char *id);

/* ---- places (place.c) ---------------------------------------------------- */

/* "ID.json" and so on. */
#define PLACE_FILE STAGING_FILE
void place_file(char out[PLACE_FILE], const char *id, const char *what);
/* Lock the place: nobody else changes what there is.  A descriptor for
 * place_unlock, or -errno.  Never held for long. */
int place_lock(struct staging *s, struct error *err);
void place_unlock(int *fd);
/* As shm_lock in the control directory, which may have been removed meanwhile. */
int place_lock_file(struct staging *s, const char *name, enum shm_lock how,
		    bool wait, struct error *err);
/* When the directory `name` was made, for record.born. */
uint64_t place_born(int dir, const char *name);
/* Does the record's tree have the record's name? */
bool place_has(const struct staging *s, const struct record *r);

/* An instance: what the control directory has of it. */
struct instance {
	char id[STAGING_ID];
};
struct instances {
	vec(struct instance) list;
	vec(struct instance) keys; /* locks of builders */
};
int place_scan(const struct staging *s, struct instances *out,
	       struct error *err);
void instances_free(struct instances *l);

/* Instances to be removed, each with its lock, held. */
struct doomed {
	vec(struct {
		char id[STAGING_ID];
		int fd;
	}) list;
};
/* With the place locked: take from sight what is to go.  `fd` is the instance's
 * lock, which becomes theirs. */
int place_condemn(const struct staging *s, struct doomed *d, const char *id,
		  const char *name, int fd, struct error *err);
/* With the place locked: condemn transient trees that nobody holds; with `all`
 * what the dead left half done, too.  Goes on after a failure. */
int place_sweep(struct staging *s, bool all, struct doomed *d,
		struct error *err);
/* Without the lock, for this may take a while. */
int place_bury(const struct staging *s, struct doomed *d, struct error *err);

#endif
