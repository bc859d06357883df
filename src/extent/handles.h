/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of backing files: a bounded number of open descriptors, identities checked. */
#ifndef EXTENT_HANDLES_H
#define EXTENT_HANDLES_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/error.h"

struct handles;
/* A pinned open file; call handles_put soon. */
struct handle {
	int fd;
	uint32_t file;
	uint64_t size; /* of the file (or part) now, in bytes */
	uint64_t base; /* offset of its byte 0 in the descriptor's file */
};

/* Make an empty table.  At most `max_open` descriptors stay open; 0 takes the number
 * from RLIMIT_NOFILE, less what `threads` worker threads need for themselves.  Returns
 * 0 or -ENOMEM. */
int handles_new(struct handles **out, unsigned max_open, unsigned threads,
		struct error *err);
void handles_free(struct handles *h);

/* Register a file by path (copied) without touching it.  Returns its number, which
 * extents carry; the number of a path that is registered already is the same.
 * UINT32_MAX: out of memory. */
uint32_t handles_add(struct handles *h, const char *path);
/*
 * Register a piece of a registered file as a file of its own, whose byte 0 is byte
 * `pos` of that file.  Its path is "a.tar//@512+4096"; handles_add with that path
 * returns the same number.
 */
uint32_t handles_add_part(struct handles *h, uint32_t file, uint64_t pos,
			  uint64_t size);
/* As handles_add_part, with a number of the caller's: equal pieces with different tags
 * are different rows. */
uint32_t handles_add_tagged(struct handles *h, uint32_t file, uint64_t pos,
			    uint64_t size, uint64_t tag);
/* Set *tag to that number.  Returns false if the row has none. */
bool handles_tag(struct handles *h, uint32_t file, uint64_t *tag);
/* Bytes [begin, begin + size) of a row that consists of several files, and the file
 * they are in. */
struct handles_piece {
	uint64_t begin, size;
	uint32_t file;
};
/*
 * Register n files as one row.  Pieces are ascending and do not overlap.  `name` is the
 * path of the row in messages, and must be its own.  handles_read reads across the
 * pieces; handles_get gives the first one only, so a caller that wants the descriptor
 * of other bytes asks handles_piece_at.
 */
uint32_t handles_add_joined(struct handles *h, const char *name,
			    const struct handles_piece *p, unsigned n);
/* Return true if the row consists of several files. */
bool handles_is_joined(struct handles *h, uint32_t file);
/* Set *out to the piece of row `file` that has byte `pos`; for a row that is one file,
 * to all of it.  Returns false if no piece has that byte. */
bool handles_piece_at(struct handles *h, uint32_t file, uint64_t pos,
		      struct handles_piece *out);
/* Replace *file and *pos by the one file that has bytes [*pos, *pos + len) of the row,
 * and their offset there.  Returns false if several files have them, or none. */
bool handles_in_one(struct handles *h, uint32_t *file, uint64_t *pos,
		    uint64_t len);
/* Register what `fd` refers to under a name that is not a path.  The table owns `fd`
 * from now on and keeps it open.  Returns UINT32_MAX if that failed. */
uint32_t handles_add_open(struct handles *h, int fd, const char *name);
/* Return the row that handles_add_open registered under this name; UINT32_MAX if there
 * is none. */
uint32_t handles_find_open(struct handles *h, const char *name);
/* Declare the identity of a file before its first open, because its size was already
 * shown to a reader.  A file with another identity is -ESTALE from the first open on. */
void handles_expect(struct handles *h, uint32_t file, const struct stat *st);
/*
 * Declare that another process appends to the file without changing what was there, as
 * long as all `bits` of the byte at offset `mark` (of the whole file) are set.  Until
 * these are cleared, a file that grew or was written to still counts as the same file.
 */
void handles_may_grow(struct handles *h, uint32_t file, uint64_t mark,
		      unsigned char bits);
struct identity;
/* Return true if `is`, the identity of the open file `fd`, is that of file `was`: equal
 * to it, or grown from it by such a writer. */
bool handles_is_same(struct handles *h, uint32_t file, int fd,
		     const struct identity *is, const struct identity *was);
/* Return the path of a registered file, which the table owns. */
const char *handles_path(const struct handles *h, uint32_t file);
/* As handles_path, for messages: at most the last 240 bytes of the path. */
const char *handles_name(const struct handles *h, uint32_t file);
uint32_t handles_count(const struct handles *h);

/*
 * Pin file number `file`, opening it if it is closed.  The first open learns its
 * identity (device, inode, size, mtime); later opens, and each get of an open
 * descriptor, compare it.  Returns 0 or, with a sentence: -ESTALE if the file changed
 * since it was first read, -ENODATA if there is no such file (a part is missing), -EIO
 * if it cannot be opened or is not a regular file.  May block on I/O; holds no lock
 * across it.
 */
int handles_get(struct handles *h, uint32_t file, struct handle *out,
		struct error *err);
/* Compare the identity again, after reading.  Returns 0, -ESTALE if it changed, or
 * -EIO. */
int handles_check(struct handles *h, const struct handle *pin,
		  struct error *err);
void handles_put(struct handles *h, struct handle *pin);
/* Close a file that is going to be deleted, unless it is pinned or has no path. */
void handles_close_idle(struct handles *h, uint32_t file);
/* Return how many of n bytes at `pos` lie before the first byte that is data
 * (SEEK_DATA) or in a hole (SEEK_HOLE).  A file that cannot be asked counts as data
 * only. */
uint64_t handles_length_before(struct handles *h, uint32_t file, uint64_t pos,
			       uint64_t n, int whence);
/* Read all `len` bytes at `pos`, comparing the identity before and after.  Returns 0 or
 * -errno; -EIO if the bytes lie beyond the end of the file.  Blocks on I/O. */
int handles_read(struct handles *h, uint32_t file, uint64_t pos, void *data,
		 size_t len, struct error *err);
/* Look whether the file exists, without opening it, for `info`.  Returns 0, -ENODATA or
 * -EIO. */
int handles_probe(struct handles *h, uint32_t file, struct stat *st,
		  struct error *err);
/* Set *path to the path that is opened for a row (borrowed; NULL if no path leads to
 * it) and, if the file was opened before, *id to its identity.  Returns false if it was
 * not opened. */
bool handles_known(struct handles *h, uint32_t file, const char **path,
		   struct identity *id);
/*
 * For mounts that other users may read (guard.h has the rules).  Call handles_confine
 * and handles_watch before any file is opened, the others before there are threads.
 *
 * Allow only files below the directories that are named by such calls.  Returns false
 * if memory ran out.
 */
bool handles_confine(struct handles *h, const char *dir);
/* Remember a file that is not public, if one is opened. */
void handles_watch(struct handles *h);
/* Return the path (borrowed) of a file, opened or only registered, that is not public;
 * NULL if none is known.  A file that is missing or cannot be examined is checked again
 * when it is opened. */
const char *handles_private(struct handles *h);
/* Refuse files that are not public from now on, with -EIO. */
void handles_refuse_private(struct handles *h);
/* Return 0 if `fd` may be shown, else -EIO or -ENOMEM; for files that are opened
 * without a row here. */
int handles_check_public(struct handles *h, int fd, const struct stat *st,
			 const char *path, struct error *err);
/* Set *open_now to the number of open descriptors and *limit to the most there may be. */
void handles_usage(struct handles *h, unsigned *open_now, unsigned *limit);

#endif
