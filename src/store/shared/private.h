/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of store/shared have in common; no other folder includes it. */
#ifndef STORE_SHARED_PRIVATE_H
#define STORE_SHARED_PRIVATE_H

#include <pthread.h>
#include <time.h>

#include "base/home.h"
#include "store/shared/shared.h"

#define SHARED_DIR ".chunks"
#define SHARED_LEDGER "ledger"
#define SHARED_PART ".part"
#define SHARED_LOCK_NS (UINT64_C(2) * 1000000000)

struct room {
	pthread_mutex_t lock; /* protects all below */
	uint64_t until;  /* `memory` is trusted until then (shared_now()) */
	uint64_t memory; /* bytes that could be taken when last looked at */
	uint64_t taken;  /* bytes taken since */
};
struct shared {
	struct shm_dir home, dir;
	uint64_t limit;
	const char *version;
	uint64_t wait_ns, lock_ns;
	uint64_t (*memory_left)(void);
	struct room room;
	_Atomic uint64_t mapped;   /* bytes: the gauge of mapped buffers */
	_Atomic uint64_t mappings; /* number of mapped buffers */
	uint64_t mappings_max;
	_Atomic uint64_t refuse_until; /* nothing is added until then */
	_Atomic bool said;             /* a warning said why nothing is added */
};

/* The time in nanoseconds of CLOCK_MONOTONIC, which all processes of a node share. */
static inline uint64_t shared_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- store/shared/key.c ---------------------------------------------------------- */

/* Return true if the source has not changed since the key was made. */
bool shared_key_holds(const struct shared_key *k);

/* ---- store/shared/file.c: an entry, and one in the making ------------------------ */

/* Map the entry.  Set *out to a buffer with one reference, or to NULL if there is no
 * entry.  Return 0, -EBADMSG if it was damaged and has been removed, or another -errno
 * with a sentence.  `size` is that of shared_maker. */
int entry_open(struct shared *sh, const struct shared_key *k, uint64_t size,
	       _Atomic uint64_t *gauge, struct buf **out, struct error *err);

/* An entry in the making.  The process that has it locked makes it. */
struct part {
	int fd; /* -1: no part */
	char name[40];
	unsigned char *map; /* mapping of `total` bytes, once there is room */
	uint64_t total, size;
};
/* Create and lock the part of a key.  Return 0, -EWOULDBLOCK if another process makes the
 * chunk, or another -errno. */
int part_take(struct shared *sh, const struct shared_key *k, struct part *p,
	      struct error *err);
/* Take room for a chunk of `size` bytes in every respect: within the limit, of the file
 * system, as a mapping.  Return 0, or -ENOSPC, -EDQUOT, -EFBIG, -ENOMEM or another
 * -errno, with a sentence. */
int part_room(struct shared *sh, const struct shared_key *k, struct part *p,
	      uint64_t size, struct error *err);
/* Publish a part whose bytes are complete: all processes can use it from now on, or, if
 * that fails, at least this one.  Return its buffer, or NULL if memory is out. */
struct buf *part_publish(struct shared *sh, const struct shared_key *k,
			 struct part *p, _Atomic uint64_t *gauge);
/* Remove a part that was not published; does nothing for one that was. */
void part_drop(struct shared *sh, struct part *p);

/* ---- store/shared/ledger.c: the sum of bytes ------------------------------------- */

struct ledger {
	char magic[8];
	uint64_t dirty;          /* names are being changed: count them anew */
	uint64_t bytes, entries; /* parts included */
	uint64_t next_scan;      /* times of shared_now() */
	uint64_t starved;        /* when nothing could be evicted */
};
/* The bytes that a file of `size` bytes takes. */
uint64_t ledger_cost(uint64_t size);
/* Make the file of `fd` (a part) `size` bytes long, if that much may be taken; old
 * entries are removed for it.  Return 0, -EFBIG, -ENOSPC, or another -errno. */
int ledger_grow(struct shared *sh, int fd, uint64_t size, struct error *err);
/* Lock the ledger: no process counts or evicts until the returned descriptor is closed.
 * Return -errno if its holder does not release it within shared.lock_ns. */
int ledger_lock(struct shared *sh, struct error *err);
/* Remove a name; with fd >= 0 only if it is the name of this file. */
int ledger_remove(struct shared *sh, const char *name, int fd,
		  struct error *err);
/* Count all names, remove the parts of dead processes, and keep to the limit. */
int ledger_settle(struct shared *sh, struct error *err);
/* Read the ledger without a lock; all zeros if it is not readable. */
void ledger_read(const struct shared *sh, struct ledger *out);

/* ---- store/shared/scan.c: going through the directory ---------------------------- */

struct victim {
	int64_t time; /* of last use, nanoseconds since 1970 */
	uint64_t cost;
	char name[33];
};
struct scan {
	uint64_t bytes, entries;
	struct victim
		*oldest; /* oldest first; the caller frees it; may be NULL */
	unsigned n;
};
/* Count all names and collect the oldest entries.  The caller has the ledger locked. */
int scan_run(const struct shared *sh, struct scan *s, struct error *err);
/* Remove an entry unless a process has it open or mapped; return true if it was
 * removed. */
bool scan_evict(const struct shared *sh, const char *name);
/* Return true if a process has the entry open or mapped. */
bool scan_in_use(const struct shared *sh, const char *name);
/* Return true if `name` is the name of an entry. */
bool scan_is_entry(const char *name);

/* ---- store/shared/room.c --------------------------------------------------------- */

/* The bytes of memory that may be taken, as the machine and the control group allow. */
uint64_t room_memory(void);
/* The bytes that may be taken of the file system and of memory now, less those that are
 * to stay free of both. */
uint64_t room_now(struct shared *sh);
/* Add `bytes` to the bytes of shared memory that are in use or about to be. */
void room_take(struct shared *sh, uint64_t bytes);
/* The most bytes that may ever be taken of the file system of `fd`. */
uint64_t room_most(int fd);

#endif
