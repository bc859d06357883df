/* SPDX-License-Identifier: BSD-2-Clause */
/* Trees copied to plain files in shared memory: found again, held, removed. */
#ifndef STAGING_STAGING_H
#define STAGING_STAGING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/home.h"
#include "base/vec.h"
#include "extent/file.h"

#define STAGING_ID 17  /* of an instance: 16 digits, NUL */
#define STAGING_KEY 33 /* of what is wanted: 32 digits, NUL */
#define STAGING_FILE 48

/*
 * A place is a directory in which there are staged trees, and beside them, in a
 * directory of its own, what is known of them (place.c has the drawing).  Not
 * thread-safe: one thread at a time uses a struct staging.
 */
struct staging {
	struct shm_dir at;      /* where the trees are */
	struct shm_dir control; /* records, locks, trees in the making */
	char *to;               /* as it was asked for; NULL: /dev/shm */
	bool memory;            /* its bytes live in memory */
};
/*
 * Open /dev/shm/tensorfs-UID, or `to`, which exists.  -ENOENT without `make`:
 * nothing was ever staged there.  -ENOTSUP: /dev/shm is not in memory.  Else as
 * shm_home_open.  Each with a sentence.
 */
int staging_open(struct staging *s, const char *to, bool make,
		 struct error *err);
/* Remove the control directory, and the user's own, if nothing is in them. */
void staging_tidy(struct staging *s);
void staging_close(struct staging *s);

/* A file that a tree was made of. */
struct staging_source {
	char *path; /* absolute */
	bool there; /* false: it was missing, and has to be so still */
	struct identity id;
	uint64_t
		changed; /* its ctime, ns; 0: a later change might not be seen */
};
struct staging_sources {
	vec(struct staging_source) list;
};
/* Copies `path` and what `one` says of it; false: no memory. */
bool staging_sources_add(struct staging_sources *d, const char *path,
			 const struct staging_source *one);
void staging_sources_free(struct staging_sources *d);

/* What is to be staged.  All is borrowed. */
struct staging_want {
	char key[STAGING_KEY]; /* equal: the same sources, paths, options */
	const char *name;      /* of the directory */
	bool exact;            /* this name or none */
	bool transient;        /* gone when the last one lets go of it */
	bool force;            /* what is there already will not do */
	const char *source;    /* for people: what it is made of */
	const char *options;   /* and how */
};
/* staging_want.key of a text. */
void staging_key(const char *text, char key[STAGING_KEY]);

/* A staged tree in use: nobody removes it until it is let go, or we die. */
struct staged {
	char *path; /* absolute */
	char *name;
	char id[STAGING_ID];
	uint64_t files; /* regular ones in it */
	bool transient;
	bool reused;
	bool no_place; /* it was not even looked for: the place cannot be used */
	int use;       /* the lock; inherited across fork, not across exec */
};
#define STAGED_INIT       \
	{                 \
		.use = -1 \
	}

/* A tree in the making. */
struct staging_build {
	struct staging_want want;
	char id[STAGING_ID];
	int key, use, lock; /* locks; -1: not held */
	char key_file[STAGING_FILE], use_file[STAGING_FILE];
	struct shm_dir tree;
	bool made;
};
#define STAGING_BUILD_INIT                                             \
	{                                                              \
		.key = -1, .use = -1, .lock = -1, .tree = SHM_DIR_INIT \
	}
typedef void staging_say(void *ctx, const char *sentence);
/*
 * Is it there already?  Then *out holds it (b->use is -1).  Else `b` has been
 * begun, and somebody who wants the same waits until it is published or given up.
 * Waits itself when another process makes it just now, and says so.  Removes what
 * dead processes have left.  -EEXIST: the exact name is taken.
 */
int staging_begin(struct staging *s, const struct staging_want *want,
		  staging_say *say, void *ctx, struct staged *out,
		  struct staging_build *b, struct error *err);
/* Make the empty directory b->tree, which nobody sees yet. */
int staging_make(struct staging *s, struct staging_build *b, struct error *err);
/* What others are writing there now, and have not yet. */
struct staging_others {
	uint64_t bytes; /* all of them */
	uint64_t group; /* of these, by processes of the control group `in` */
};
/*
 * Before anything is written: is there room, beside what others want?  Answers come
 * one after the other, until staging_promise says how many bytes it will be (0:
 * none; it does not fit).  `in` is a control group, "" for none.
 */
int staging_ask(struct staging *s, struct staging_build *b, const char *in,
		struct staging_others *out, struct error *err);
void staging_promise(struct staging_build *b, uint64_t bytes);
/* So many of them are to be written still. */
void staging_promise_left(const struct staging_build *b, uint64_t left);
/* What it has become. */
struct staging_result {
	uint64_t files, bytes; /* regular files, and what is in them */
	uint64_t space;        /* bytes that it takes */
	uint64_t chunks;       /* that were decoded for it */
	bool verified;
};
/*
 * Give b->tree its name, at once and whole, and hold it.  What was made of the same
 * before, and nobody uses, goes; what somebody uses stays as it is, and this one
 * gets another name.  `b` is done, also after a failure: then nothing is left.
 */
int staging_publish(struct staging *s, struct staging_build *b,
		    const struct staging_result *result,
		    const struct staging_sources *sources, staging_say *say,
		    void *ctx, struct staged *out, struct error *err);
/* Remove what was made, let those go who wait.  Nothing for one that is done. */
void staging_cancel(struct staging *s, struct staging_build *b);
/* For a signal handler that is going to end the process before staging_make: remove
 * what staging_begin has made, as far as nobody else needs it.  `b` was set to
 * STAGING_BUILD_INIT before. */
void staging_abandon(const struct staging *s, const struct staging_build *b);
/* It was compared with its source. */
int staging_verified(struct staging *s, const struct staged *u,
		     struct error *err);
/* It is not what its source gives: let go.  Nobody finds it from now on; it is
 * removed if nobody else holds it. */
void staging_disown(struct staging *s, struct staged *u);
/* Let go.  A transient tree that nobody else holds is removed. */
void staging_release(struct staging *s, struct staged *u);

/* ---- looking and removing ------------------------------------------------ */

enum staging_state {
	STAGING_READY,
	STAGING_GROWING, /* somebody makes it */
	STAGING_DEAD,    /* whoever made it died: the next stage removes it */
	STAGING_DAMAGED  /* its record cannot be read: it stays as it is */
};
struct staging_item {
	enum staging_state state;
	char id[STAGING_ID];
	char *name, *source, *options;
	uint64_t files, bytes, space;
	int64_t made, used; /* seconds since 1970; used: when last asked for */
	bool transient, verified, in_use;
};
struct staging_list {
	vec(struct staging_item) list; /* in order of names */
};
/* All there is; transient trees that nobody holds are removed first. */
int staging_list(struct staging *s, struct staging_list *out,
		 struct error *err);
void staging_list_free(struct staging_list *l);
/* -ENOENT: it is not ours, -EBUSY: in use (or in the making).  `force`: use does
 * not matter; those who have files open keep these.  Of a damaged one the record
 * goes. */
int staging_remove(struct staging *s, const char *name, bool force,
		   struct error *err);
/* Remove what the dead have left. */
int staging_sweep(struct staging *s, struct error *err);
/* The same for the place `to` (as staging_open), if there is one; nothing is said. */
void staging_sweep_place(const char *to);

#endif
