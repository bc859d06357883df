/* SPDX-License-Identifier: BSD-2-Clause */
/* Decoded chunks in shared memory: each is decoded once on a node. */
#ifndef STORE_SHARED_SHARED_H
#define STORE_SHARED_SHARED_H

#include "extent/chunk.h"

/* Bytes: smaller chunks are decoded faster than their file is found. */
#define SHARED_CHUNK_MIN (UINT64_C(16) << 10)

struct shared;
struct shared_options {
	const char *base;    /* NULL: /dev/shm */
	uint64_t size;       /* bytes that all chunks together may take */
	const char *version; /* chunks made by other versions are not used */
	/* Nanoseconds to wait for a process that makes a chunk, or counts; 0: 5 s and
	 * more for large chunks, and 2 s. */
	uint64_t patience;
	/* Return the bytes of memory that may be taken now; NULL: as the machine and the
	 * control group allow. */
	uint64_t (*memory)(void);
};
/*
 * Open BASE/tensorfs-UID/.chunks, creating it if necessary.  Return 0; -EPERM, -ELOOP or
 * -ENOTDIR if the directory there cannot be trusted; -EINVAL if it is not in memory;
 * -ENOENT if BASE is missing; or another -errno, with a sentence.  If BASE cannot give as
 * much as `size`, a warning is logged, and the store takes what BASE can give.
 */
int shared_open(struct shared **out, const struct shared_options *o,
		struct error *err);
/* Every buffer that came from the store must be freed before; `sh` may be NULL. */
void shared_close(struct shared *sh);

/* All that decides the bytes of a chunk, as text, and its hash: the entry's name. */
struct shared_key {
	char name[33];
	char *text;
	size_t len;
	struct handles *handles;
	uint32_t file;
	uint64_t source[5]; /* device, inode, size, mtime, ctime */
	bool settled;       /* a later write to the source will be noticed */
};
/*
 * Make the key of chunk `c`.  Return 0, or 1 if it cannot be shared or is not worth it.
 * The source is opened and its identity compared for this, as a load would do: that may
 * return -ESTALE, -ENODATA or -EIO, even if its chunk is in the store.  After 0, free the
 * key with shared_key_free.
 */
int shared_key_of(const struct shared *sh, struct shared_key *k,
		  struct handles *h, const struct chunk_set *set,
		  uint64_t index, const struct chunk *c, struct error *err);
void shared_key_free(struct shared_key *k);

/* How to make a chunk that is not in the store. */
struct shared_maker {
	uint64_t size; /* bytes that `into` makes; 0: only `make` knows */
	/* Decode to `to`. */
	int (*into)(void *ctx, void *to, struct error *err);
	/* Decode to a new buffer that counts in `gauge`. */
	int (*make)(void *ctx, _Atomic uint64_t *gauge, struct buf **out,
		    struct error *err);
	void *ctx;
};
/* Return true if an entry of that name is there.  Cheap; it may be gone at once. */
bool shared_has(const struct shared *sh, const struct shared_key *k);
/*
 * Get the chunk's bytes.  They are the mapped bytes of its entry, or of the one that
 * another process is making.  Otherwise they are made here: into an entry, or, where
 * there is no room (or the source was written to a moment ago), into a buffer that counts
 * in `gauge`.  Mapped bytes do not count there.  May wait for another process
 * (shared_options.patience).  Return 0, or the -errno of `m`.
 */
int shared_get(struct shared *sh, const struct shared_key *k,
	       const struct shared_maker *m, _Atomic uint64_t *gauge,
	       struct buf **out, struct error *err);

struct shared_usage {
	uint64_t limit;          /* bytes: this process's limit */
	uint64_t bytes, entries; /* those of all processes */
	uint64_t mapped;         /* bytes that this process has mapped */
};
void shared_usage(const struct shared *sh, struct shared_usage *out);
/* Return true if this process has as many mappings as it should have: it is time to give
 * up some. */
bool shared_is_crowded(const struct shared *sh);
/* The number of mappings to give up then. */
unsigned shared_crowd(const struct shared *sh);
/* Return true if a process found the store full of chunks in use, not long ago. */
bool shared_is_wanted(const struct shared *sh);

/* The entries in BASE/tensorfs-UID; all 0 if there is no store. */
struct shared_summary {
	uint64_t entries, bytes;
	uint64_t used; /* entries that a process has mapped */
	bool live;     /* a process has the store open */
};
int shared_survey(const char *base, struct shared_summary *out,
		  struct error *err);
/* Remove all entries; *out says what was there.  A process that has one mapped keeps its
 * bytes.  If no process has the store open, its directory is removed, too.  Return 0, or
 * -errno with a sentence. */
int shared_clear(const char *base, struct shared_summary *out,
		 struct error *err);

#endif
