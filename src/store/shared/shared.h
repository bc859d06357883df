/* SPDX-License-Identifier: BSD-2-Clause */
/* Decoded chunks in shared memory: each is decoded once on a node. */
#ifndef STORE_SHARED_SHARED_H
#define STORE_SHARED_SHARED_H

#include "extent/chunk.h"

/* Smaller chunks are decoded faster than a file of theirs is found. */
#define SHARED_CHUNK_MIN (UINT64_C(16) << 10)

struct shared;
struct shared_options {
	const char *base;    /* NULL: /dev/shm */
	uint64_t size;       /* bytes that all of it may take */
	const char *version; /* chunks of other versions are not believed */
	/* How long others are waited for who make a chunk or count, nanoseconds; 0: 5 s and
	 * more for large chunks, and 2 s. */
	uint64_t patience;
	/* Bytes of memory that may be taken now; NULL: by the machine and the control group. */
	uint64_t (*memory)(void);
};
/*
 * Open, or make, BASE/tensorfs-UID/.chunks.  -EPERM, -ELOOP, -ENOTDIR: what is
 * there is not to be trusted; -EINVAL: it is not in memory; -ENOENT: there is no
 * BASE.  Where BASE cannot give as much as `size`, a warning is logged, and what it
 * can give is used.
 */
int shared_open(struct shared **out, const struct shared_options *o,
		struct error *err);
/* Every buffer that came from it must be gone; `sh` may be NULL. */
void shared_close(struct shared *sh);

/* What decides the bytes of a chunk, as text, and its hash: the entry's name. */
struct shared_key {
	char name[33];
	char *text;
	size_t len;
	struct handles *handles;
	uint32_t file;
	uint64_t source[5]; /* device, inode, size, mtime, ctime */
	bool settled; /* a later write to the source can be told from this one */
};
/*
 * The key of chunk `c`.  1: it cannot be shared, or is not worth it.  The source is
 * opened and its identity compared for this, as a load would: -ESTALE, -ENODATA,
 * -EIO, though its chunk may be there.  Free it with shared_key_free, unless this
 * failed.
 */
int shared_key_of(const struct shared *sh, struct shared_key *k,
		  struct handles *h, const struct chunk_set *set,
		  uint64_t index, const struct chunk *c, struct error *err);
void shared_key_free(struct shared_key *k);

/* How a chunk is made that nobody has made yet. */
struct shared_maker {
	uint64_t size; /* of what `into` makes; 0: only `make` knows */
	/* Decode to where the chunk is wanted. */
	int (*into)(void *ctx, void *to, struct error *err);
	/* Decode to a buffer that counts in `gauge`. */
	int (*make)(void *ctx, _Atomic uint64_t *gauge, struct buf **out,
		    struct error *err);
	void *ctx;
};
/* Is an entry of that name there?  Cheap, and no promise. */
bool shared_has(const struct shared *sh, const struct shared_key *k);
/*
 * The chunk's bytes: those of its entry, mapped, or of the one that another process
 * is making; else made here, into an entry, or, where there is no room (or the
 * source was written to a moment ago), into a buffer that counts in `gauge`.  What
 * is mapped does not count there.  Failures are those of `m`.
 */
int shared_get(struct shared *sh, const struct shared_key *k,
	       const struct shared_maker *m, _Atomic uint64_t *gauge,
	       struct buf **out, struct error *err);

struct shared_usage {
	uint64_t limit;          /* bytes, for us */
	uint64_t bytes, entries; /* of all processes */
	uint64_t mapped;         /* bytes that we have mapped */
};
void shared_usage(const struct shared *sh, struct shared_usage *out);
/* Have we as many mappings as we want?  Then it is time to give up some. */
bool shared_is_crowded(const struct shared *sh);
/* Mappings that are to be given up then. */
unsigned shared_crowd(const struct shared *sh);
/* Has somebody found the store full of chunks that are in use, not long ago? */
bool shared_is_wanted(const struct shared *sh);

/* What there is in BASE/tensorfs-UID; all 0 where there is nothing. */
struct shared_summary {
	uint64_t entries, bytes;
	uint64_t used; /* entries that some process has mapped */
	bool live;     /* some process has the store open */
};
int shared_survey(const char *base, struct shared_summary *out,
		  struct error *err);
/* Remove them all; *out is what was there.  Who has one mapped keeps it.  Where
 * nobody has the store open, its directory goes, too. */
int shared_clear(const char *base, struct shared_summary *out,
		 struct error *err);

#endif
