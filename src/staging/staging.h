/* SPDX-License-Identifier: BSD-2-Clause */
/* Trees copied to plain files in shared memory: find, make, hold, list and remove
 * them. */
#ifndef STAGING_STAGING_H
#define STAGING_STAGING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/home.h"
#include "base/vec.h"
#include "extent/file.h"

#define STAGING_ID 17   /* bytes of an instance's id: 16 hex digits, NUL */
#define STAGING_KEY 33  /* bytes of a key: 32 hex digits, NUL */
#define STAGING_FILE 48 /* bytes of a file name in the control directory */

/*
 * A place is a directory that holds staged trees and a control directory, which holds
 * their records and locks (place.c has the drawing).  Not thread-safe: only one thread
 * at a time may use a struct staging.
 */
struct staging {
	struct shm_dir at;      /* the directory that holds the trees */
	struct shm_dir control; /* records, locks, unfinished trees */
	char *to;    /* the directory given with --to; NULL: /dev/shm */
	bool memory; /* `at` is on a file system that is in memory */
};
/*
 * Open the place /dev/shm/tensorfs-UID, or `to`, which must exist.  With `make`,
 * directories that are missing are made.  Return 0, or -errno with *err set: -ENOENT
 * without `make` if nothing was ever staged there, -ENOTSUP if /dev/shm is not in
 * memory, or an error of shm_home_open.  After a failure there is nothing to close.
 */
int staging_open(struct staging *s, const char *to, bool make,
		 struct error *err);
/* Remove the control directory, and /dev/shm/tensorfs-UID, if they are empty. */
void staging_tidy(struct staging *s);
void staging_close(struct staging *s);

/* A source file of a staged tree. */
struct staging_source {
	char *path; /* absolute */
	bool there; /* false: it did not exist, and must still not exist */
	struct identity id;
	uint64_t
		changed; /* its ctime in ns; 0: a later change might not be seen */
};
struct staging_sources {
	vec(struct staging_source) list;
};
/* Append a copy of *one with a copy of `path`.  Return false if there is no memory. */
bool staging_sources_add(struct staging_sources *d, const char *path,
			 const struct staging_source *one);
void staging_sources_free(struct staging_sources *d);

/* What is to be staged.  The strings are borrowed. */
struct staging_want {
	char key[STAGING_KEY]; /* is equal if sources, paths and options are equal */
	const char *name;      /* of the directory to make */
	bool exact;            /* fail rather than choose another name */
	bool transient;        /* removed when its last holder releases it */
	bool force;            /* do not reuse an existing tree */
	const char *source;  /* its sources, for messages and lists */
	const char *options; /* its options, likewise */
};
/* Set `key` to the hash of `text`, for staging_want.key. */
void staging_key(const char *text, char key[STAGING_KEY]);

/* A staged tree that this process holds: it is not removed until staging_release, or
 * the end of the process, unless another process removes it by force. */
struct staged {
	char *path; /* absolute */
	char *name;
	char id[STAGING_ID];
	uint64_t files; /* number of regular files in it */
	bool transient;
	bool reused;   /* it existed already */
	bool no_place; /* the place cannot be used: the tree was not looked for */
	int use; /* its lock (-1: none); inherited across fork, not across exec */
};
#define STAGED_INIT       \
	{                 \
		.use = -1 \
	}

/* A tree that is being made. */
struct staging_build {
	struct staging_want want;
	char id[STAGING_ID];
	int key, use, lock; /* descriptors of locks; -1: not held */
	char key_file[STAGING_FILE], use_file[STAGING_FILE];
	struct shm_dir tree;
	bool made; /* staging_make was called */
};
#define STAGING_BUILD_INIT                                             \
	{                                                              \
		.key = -1, .use = -1, .lock = -1, .tree = SHM_DIR_INIT \
	}
/* Called with a sentence for the user. */
typedef void staging_say(void *ctx, const char *sentence);
/*
 * Find the tree `want`, or begin to make it.  Return 0 if *out holds a tree that
 * existed already (then b->use is -1), or if `b` has been begun: another process that
 * wants the same tree then waits for staging_publish or staging_cancel.  Blocks while
 * another process makes the tree, and calls `say` before that.  Also removes what dead
 * processes have left.  Return -errno on failure: -EEXIST if the exact name is taken.
 */
int staging_begin(struct staging *s, const struct staging_want *want,
		  staging_say *say, void *ctx, struct staged *out,
		  struct staging_build *b, struct error *err);
/* Make the empty directory b->tree, which is not visible among the trees yet. */
int staging_make(struct staging *s, struct staging_build *b, struct error *err);
/* Bytes that other processes have still to write to the place. */
struct staging_others {
	uint64_t bytes; /* by all processes */
	uint64_t group; /* of these, by processes in the control group `in` */
};
/*
 * Find out what other processes have still to write, before anything is written here.
 * Locks the place, so that other processes block in their staging_ask, until
 * staging_promise says how many bytes will be written here (0 if they do not fit).
 * `in` is a control group, "" for none.  Return 0, or -errno with the place unlocked.
 */
int staging_ask(struct staging *s, struct staging_build *b, const char *in,
		struct staging_others *out, struct error *err);
void staging_promise(struct staging_build *b, uint64_t bytes);
/* Announce that `left` bytes of those are still to be written. */
void staging_promise_left(const struct staging_build *b, uint64_t left);
/* What the finished tree contains. */
struct staging_result {
	uint64_t files, bytes; /* regular files, and the sum of their sizes */
	uint64_t space;        /* bytes that it takes on the file system */
	uint64_t chunks;       /* chunks that were decoded for it */
	bool verified;         /* it was compared with its sources */
};
/*
 * Give the finished b->tree its name in one step, and set *out to hold it.  An older
 * tree with the same key is replaced if no process holds it; else it stays and this one
 * gets another name (`say` is told).  Ends `b`, also on failure, which removes the tree.
 * Return 0 or -errno.
 */
int staging_publish(struct staging *s, struct staging_build *b,
		    const struct staging_result *result,
		    const struct staging_sources *sources, staging_say *say,
		    void *ctx, struct staged *out, struct error *err);
/* Remove what was made, and wake the processes that wait for it.  Does nothing for a
 * build that has ended. */
void staging_cancel(struct staging *s, struct staging_build *b);
/* Remove what staging_begin has made, unless another process needs it.  For a signal
 * handler that ends the process before staging_make: allocates nothing, does not block.
 * `b` must have been set to STAGING_BUILD_INIT before staging_begin. */
void staging_abandon(const struct staging *s, const struct staging_build *b);
/* Record that the tree was compared with its sources and is equal.  Return 0 or -errno:
 * -ENOENT if it was removed meanwhile. */
int staging_verified(struct staging *s, const struct staged *u,
		     struct error *err);
/* Release a tree that differs from its sources: staging_begin does not find it from now
 * on, and it is removed if no other process holds it. */
void staging_disown(struct staging *s, struct staged *u);
/* Release the tree, and remove it if it is transient and no other process holds it.
 * Does nothing if *u holds none. */
void staging_release(struct staging *s, struct staged *u);

/* ---- listing and removing ------------------------------------------------ */

enum staging_state {
	STAGING_READY,
	STAGING_GROWING, /* a process is making it */
	STAGING_DEAD,    /* its maker died: the next staging_begin removes it */
	STAGING_DAMAGED  /* its record cannot be read: it is left alone */
};
struct staging_item {
	enum staging_state state;
	char id[STAGING_ID];
	char *name, *source, *options;
	uint64_t files, bytes, space;
	int64_t made, used; /* seconds since 1970; used: when last reused */
	bool transient, verified, in_use;
};
struct staging_list {
	vec(struct staging_item) list; /* sorted by name */
};
/* List all instances of the place, after removing transient trees that no process holds.
 * Return 0, or -errno with an empty list; staging_list_free frees it. */
int staging_list(struct staging *s, struct staging_list *out,
		 struct error *err);
void staging_list_free(struct staging_list *l);
/* Remove the tree `name`.  Return 0 or -errno: -ENOENT if it was not staged by
 * tensorfs, -EBUSY if it is in use, which `force` ignores (files that are open can still
 * be read).  A damaged instance is named by its id; its record is removed, no tree is. */
int staging_remove(struct staging *s, const char *name, bool force,
		   struct error *err);
/* Remove what dead processes have left, and transient trees that no process holds.
 * Return 0 or -errno. */
int staging_sweep(struct staging *s, struct error *err);
/* As staging_sweep for the place `to` (as in staging_open), if there is one; errors are
 * ignored. */
void staging_sweep_place(const char *to);

#endif
