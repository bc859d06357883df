/* SPDX-License-Identifier: BSD-2-Clause */
/* Index files: what was learnt of a source, saved for the next mount. */
#ifndef MEMBERS_INDEX_H
#define MEMBERS_INDEX_H

#include <stdbool.h>

#include "stream/backing.h"
#include "stream/blob.h"

/*
 * An index is a cache: whoever finds it missing, stale, foreign or damaged makes
 * a new one, and who cannot save it goes on without.  It is a header (magic,
 * version, what it belongs to, a table of sections, a checksum over all of this)
 * and sections of bytes, each with a checksum of its own.  docs/formats.md draws
 * it.
 */

/* What the index belongs to: not where the source is, so that an index can be
 * copied with it (times kept). */
struct index_key {
	const struct backing *source; /* size, mtime and a sample of content are
					 compared, and where in its file it is;
					 its bytes as stored: of a stream
					 nothing is saved */
	const char *path;  /* of the source; NULL (inside another): no saving */
	const char *maker; /* "tar 2": format and version of what made it; an
			      index of another maker is foreign */
	uint64_t options;  /* that change what is in it */
};
/* Where: `where` NULL: beside the source as "NAME.tfsidx", or in
 * $XDG_CACHE_HOME/tensorfs (~/.cache/tensorfs) where that cannot be written;
 * "none"; or a path (of a file, or of a directory to put it in).  Relative paths
 * begin in the working directory of now.  What is there and is not an index is not
 * replaced when its name was given here (-EEXIST). */
struct index_options {
	const char *where;
	bool looks; /* nothing is written beside the source */
};
enum { INDEX_SECTIONS_MAX = 16 };
struct index_section {
	uint32_t id; /* the maker's */
	const void *data;
	uint64_t size;           /* bytes */
	const struct blob *blob; /* instead of data: may stay in the file */
};
/* Write to a temporary file, then rename.  *path (may be NULL) is where it went,
 * malloc'ed; NULL with 0: it is not wanted.  Failures are for a log line, not for
 * giving up; nothing stays of a file that could not be written.  Whoever cannot
 * read the source cannot read the index.  Blocks. */
int index_save(const struct index_key *key, const struct index_options *o,
	       const struct index_section *sections, unsigned n, char **path,
	       struct error *err);

/* Is `path`, from directory `dir` as openat takes it, an index file, by its name and its
 * first bytes? */
bool index_is_file(int dir, const char *path);

struct index;
/* 0 and *out set, or *out NULL: -ENOENT there is none; -ESTALE the source has
 * changed since; -EBADMSG damaged; -EINVAL foreign: another version, another
 * source, other options; -EIO, -ENOMEM: it could not be read.  Sections are in
 * memory, read with one read, whole and with the right checksum; but those that
 * were saved as blobs and are larger than `lazy` bytes stay in the file, and can
 * be had as blobs only.  Nobody has compared their checksums: who reads pieces of
 * them checks each (as the CRC of a window does). */
int index_load(const struct index_key *key, const struct index_options *o,
	       uint64_t lazy, struct index **out, struct error *err);
/* Borrowed, aligned to 64 bytes; NULL and *size 0: no such section, or a lazy
 * one. */
const void *index_section(const struct index *x, uint32_t id, uint64_t *size);
/* A section as a blob of its own; a missing one is an empty blob. */
int index_blob(const struct index *x, uint32_t id, struct blob **out,
	       struct error *err);
/* Where it was found. */
const char *index_path(const struct index *x);
void index_free(struct index *x);

#endif
