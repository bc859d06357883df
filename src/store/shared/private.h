/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the shared store have in common; nobody else includes it. */
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
	pthread_mutex_t lock; /* all below */
	uint64_t until;       /* `memory` is believed until then */
	uint64_t memory;      /* bytes of it that may be taken, less */
	uint64_t taken;       /* these */
};
struct shared {
	struct shm_dir home, dir;
	uint64_t limit;
	const char *version;
	uint64_t wait_ns, lock_ns;
	uint64_t (*memory_left)(void);
	struct room room;
	_Atomic uint64_t mapped;   /* the gauge of mapped buffers */
	_Atomic uint64_t mappings; /* their number */
	uint64_t mappings_max;
	_Atomic uint64_t refuse_until; /* nothing is added until then */
	_Atomic bool said;             /* why nothing is added was said */
};

/* Nanoseconds of CLOCK_MONOTONIC, which all processes of a node share. */
static inline uint64_t shared_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- store/shared/key.c ---------------------------------------------------------- */

/* Is the source still what it was when the key was made? */
bool shared_key_holds(const struct shared_key *k);

/* ---- store/shared/file.c: an entry, and one in the making ------------------------ */

/* Map the entry.  *out NULL: there is none.  -EBADMSG: it is damaged, and gone now;
 * other errors: it cannot be had.  `size`: as shared_maker's. */
int entry_open(struct shared *sh, const struct shared_key *k, uint64_t size,
	       _Atomic uint64_t *gauge, struct buf **out, struct error *err);

/* An entry in the making.  Whoever has it locked makes it. */
struct part {
	int fd; /* -1: none */
	char name[40];
	unsigned char *map; /* `total` bytes, once there is room */
	uint64_t total, size;
};
/* -EWOULDBLOCK: another one makes it. */
int part_take(struct shared *sh, const struct shared_key *k, struct part *p,
	      struct error *err);
/* Take room for a chunk of `size` bytes, in all ways: within the limit, of the
 * file system, as a mapping.  -ENOSPC, -EDQUOT, -EFBIG, -ENOMEM, ... */
int part_room(struct shared *sh, const struct shared_key *k, struct part *p,
	      uint64_t size, struct error *err);
/* Its bytes are complete: everybody's from now on, or at least ours.  NULL: no
 * memory. */
struct buf *part_publish(struct shared *sh, const struct shared_key *k,
			 struct part *p, _Atomic uint64_t *gauge);
/* Give it up, if it was not published. */
void part_drop(struct shared *sh, struct part *p);

/* ---- store/shared/ledger.c: who takes how much ----------------------------------- */

struct ledger {
	char magic[8];
	uint64_t dirty;          /* names are being changed: count them */
	uint64_t bytes, entries; /* those in the making, too */
	uint64_t next_scan;      /* times of shared_now() */
	uint64_t starved;        /* when there was nothing to evict */
};
/* The bytes that a file of `size` takes. */
uint64_t ledger_cost(uint64_t size);
/* Make the file behind `fd` (a part) `size` bytes long, if that much may be
 * taken, for which old entries are removed. */
int ledger_grow(struct shared *sh, int fd, uint64_t size, struct error *err);
/* Lock it: nobody counts or evicts until the descriptor is closed.  -errno: who has
 * it does not give it back. */
int ledger_lock(struct shared *sh, struct error *err);
/* Remove a name; with fd >= 0 only if it is that of this file. */
int ledger_remove(struct shared *sh, const char *name, int fd,
		  struct error *err);
/* Count all names, remove what dead processes left, and keep to the limit. */
int ledger_settle(struct shared *sh, struct error *err);
/* What it says; zeros where it says nothing. */
void ledger_read(const struct shared *sh, struct ledger *out);

/* ---- store/shared/scan.c: going through the directory ---------------------------- */

struct victim {
	int64_t time; /* of last use */
	uint64_t cost;
	char name[33];
};
struct scan {
	uint64_t bytes, entries;
	struct victim *oldest; /* in order; malloc'ed, may be NULL */
	unsigned n;
};
/* Count; collect the oldest entries.  The ledger is locked by the caller. */
int scan_run(const struct shared *sh, struct scan *s, struct error *err);
/* Remove the entry unless some process has it open or mapped. */
bool scan_evict(const struct shared *sh, const char *name);
/* Has some process the entry open or mapped? */
bool scan_in_use(const struct shared *sh, const char *name);
/* Is it the name of an entry? */
bool scan_is_entry(const char *name);

/* ---- store/shared/room.c --------------------------------------------------------- */

/* Bytes of memory that may be taken, by the machine and the control group. */
uint64_t room_memory(void);
/* Bytes that may be taken of the file system and of memory now, less what is to
 * stay free of both. */
uint64_t room_now(struct shared *sh);
/* So many bytes of it are being taken. */
void room_take(struct shared *sh, uint64_t bytes);
/* The most that the file system of `fd` may give at all. */
uint64_t room_most(int fd);

#endif
