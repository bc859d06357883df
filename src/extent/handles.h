/* SPDX-License-Identifier: BSD-2-Clause */
/* Backing files: a bounded table of open descriptors, identity checked. */
#ifndef EXTENT_HANDLES_H
#define EXTENT_HANDLES_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/error.h"

struct handles;
/* A pinned open file; put it back soon. */
struct handle {
	int fd;
	uint32_t file;
	uint64_t size; /* of the file (or part) now */
	uint64_t base; /* where in the descriptor byte 0 is */
};

/* `max_open` descriptors at most stay open (0: from RLIMIT_NOFILE, less what
 * `threads` workers need for themselves). */
int handles_new(struct handles **out, unsigned max_open, unsigned threads,
		struct error *err);
void handles_free(struct handles *h);

/* Register a file by path (copied) without touching it; the number is what
 * extents carry.  The same path gives the same number.  UINT32_MAX: memory is
 * out. */
uint32_t handles_add(struct handles *h, const char *path);
/*
 * Register a piece of a registered file as a file of its own, which begins at its
 * `pos`.  Its path says so ("a.tar//@512+4096"): handles_add of that is the same.
 */
uint32_t handles_add_part(struct handles *h, uint32_t file, uint64_t pos,
			  uint64_t size);
/* The same with a number of the caller's: equal pieces with other tags are other rows. */
uint32_t handles_add_tagged(struct handles *h, uint32_t file, uint64_t pos,
			    uint64_t size, uint64_t tag);
/* That number; false: the row has none. */
bool handles_tag(struct handles *h, uint32_t file, uint64_t *tag);
/* Bytes [begin, begin + size) of a row that consists of several files. */
struct handles_piece {
	uint64_t begin, size;
	uint32_t file;
};
/*
 * Register n files as one, pieces ascending and apart.  `name` is the row's path for
 * sentences, and its own.  handles_read reads across them; handles_get gives the first
 * one, so whoever wants other bytes of a descriptor asks handles_piece_at.
 */
uint32_t handles_add_joined(struct handles *h, const char *name,
			    const struct handles_piece *p, unsigned n);
/* Does it consist of several? */
bool handles_is_joined(struct handles *h, uint32_t file);
/* The piece of row `file` that byte `pos` is in; of a row that is one file, all of
 * it.  False: no piece has it. */
bool handles_piece_at(struct handles *h, uint32_t file, uint64_t pos,
		      struct handles_piece *out);
/* The one file that has bytes [*pos, *pos + len) of row *file, and their place there;
 * false: several have them, or none. */
bool handles_in_one(struct handles *h, uint32_t *file, uint64_t *pos,
		    uint64_t len);
/* Register what `fd` (taken over) refers to, under a name that is no path.  It
 * stays open. */
uint32_t handles_add_open(struct handles *h, int fd, const char *name);
/* The row that was registered so under this name; UINT32_MAX: none. */
uint32_t handles_find_open(struct handles *h, const char *name);
/* It was this when somebody was told its size: something else is -ESTALE from the
 * first open on. */
void handles_expect(struct handles *h, uint32_t file, const struct stat *st);
/*
 * A writer is appending to it in a way that leaves alone what was there, and says so:
 * all `bits` of the byte at `mark` (of the whole file) are set.  As long as they are,
 * a file that grew, or was written to, is still the same file.
 */
void handles_may_grow(struct handles *h, uint32_t file, uint64_t mark,
		      unsigned char bits);
struct identity;
/* Is `is`, of the open file `fd`, what `was` before: the same, or that and what such a
 * writer has appended? */
bool handles_is_same(struct handles *h, uint32_t file, int fd,
		     const struct identity *is, const struct identity *was);
/* Borrowed path of a registered file. */
const char *handles_path(const struct handles *h, uint32_t file);
/* The same for a sentence: no more than its last 240 bytes. */
const char *handles_name(const struct handles *h, uint32_t file);
uint32_t handles_count(const struct handles *h);

/*
 * Open (or find open) file number `file` and pin it.  The first open learns
 * its identity (device, inode, size, mtime); later ones, and every get of an
 * open descriptor, compare: -ESTALE "... changed since it was first read".
 * -ENODATA: there is no such file (a part is missing); -EIO: cannot be opened
 * or is no regular file.  May block on I/O, holds no lock across it.
 */
int handles_get(struct handles *h, uint32_t file, struct handle *out,
		struct error *err);
/* Identity again, for use after reading: -ESTALE when it changed. */
int handles_check(struct handles *h, const struct handle *pin,
		  struct error *err);
void handles_put(struct handles *h, struct handle *pin);
/* Close it, unless it is pinned or has no path: it is going to be deleted. */
void handles_let_go(struct handles *h, uint32_t file);
/* How many of n bytes at `pos` lie in front of the first that is data (SEEK_DATA) or in a hole
 * (SEEK_HOLE) of the file; a file that cannot be asked is all data. */
uint64_t handles_before(struct handles *h, uint32_t file, uint64_t pos,
			uint64_t n, int whence);
/* Whole read of `len` bytes at `pos`, identity compared before and after; -EIO
 * beyond the end ("... lie beyond the end of FILE (N bytes): truncated?"). */
int handles_read(struct handles *h, uint32_t file, uint64_t pos, void *data,
		 size_t len, struct error *err);
/* Is the file there?  stat only; 0, -ENODATA or -EIO.  For `info`. */
int handles_probe(struct handles *h, uint32_t file, struct stat *st,
		  struct error *err);
/* What is known of a row: the path that is opened for it (borrowed; NULL: none
 * leads there), and if it was opened, its identity.  False: it was not. */
bool handles_known(struct handles *h, uint32_t file, const char **path,
		   struct identity *id);
/*
 * For mounts that let other users in (guard.h has the rules).  Call the first two
 * before any file is opened, the others before there are threads.
 *
 * Files must lie below one of the directories that are named so.  False: no memory.
 */
bool handles_confine(struct handles *h, const char *dir);
/* Take note of files that not everybody may read. */
void handles_watch(struct handles *h);
/* A file, opened or only registered, that not everybody may read; NULL: none is
 * known.  Borrowed.  What is missing, or cannot be looked at, is asked for again when
 * it is opened. */
const char *handles_private(struct handles *h);
/* Refuse such files from now on: -EIO. */
void handles_refuse_private(struct handles *h);
/* For files that are opened without a row here: may `fd` be shown?  0 or -EIO. */
int handles_may_show(struct handles *h, int fd, const struct stat *st,
		     const char *path, struct error *err);
/* Descriptors open now, and the limit. */
void handles_usage(struct handles *h, unsigned *open_now, unsigned *limit);

#endif
