/* SPDX-License-Identifier: BSD-2-Clause */
/* Index files: what was learnt about a source, saved for the next mount. */
#ifndef MEMBERS_INDEX_H
#define MEMBERS_INDEX_H

#include <stdbool.h>

#include "stream/backing.h"
#include "stream/blob.h"

/*
 * An index is a cache: if it is missing, stale, foreign or damaged the caller makes a
 * new one, and if that cannot be saved the caller goes on without.  The file is a
 * header (magic, version, what it belongs to, a table of sections, a checksum over all
 * of this) and sections of bytes, each with a checksum of its own. docs/formats.md
 * draws it.
 */

/* What an index belongs to.  The path of the source is not part of that, so an index
 * can be copied together with its source (if the copy keeps the times). */
struct index_key {
	/* Compared: its size, mtime, position in its file and a sample of its stored
	 * bytes.  No index is saved for the decoded bytes of a stream. */
	const struct backing *source;
	/* The path of the source; NULL if it lies inside another source: then no index is
	 * saved. */
	const char *path;
	/* "tar 2": format and version of the code that made it; an index of another
	 * maker is foreign. */
	const char *maker;
	uint64_t options; /* options that change what is in the index */
};
/* Where the index is.  `where` NULL: beside the source as "NAME.tfsidx", or in
 * $XDG_CACHE_HOME/tensorfs (~/.cache/tensorfs) if that cannot be written.  "none":
 * there is no index.  Else a path, of a file or of a directory to put the index in;
 * a relative path begins in the current working directory.  An existing file that
 * was named here and is not an index is not replaced (-EEXIST). */
struct index_options {
	const char *where;
	/* The command only looks at data: write nothing beside the source. */
	bool looks;
};
enum { INDEX_SECTIONS_MAX = 16 };
struct index_section {
	uint32_t id; /* chosen by the maker */
	const void *data;
	uint64_t size; /* bytes */
	/* Instead of `data`; a reader may leave it in the file. */
	const struct blob *blob;
};
/* Save an index: write a temporary file, then rename it.  Return 0 or -errno.  *path
 * (`path` may be NULL) is where it was saved, malloc'ed, or NULL if no index is
 * wanted.  A failure deserves a log line; the mount can go on.  A file that could
 * not be written is removed.  Users who cannot read the source cannot read the
 * index.  Blocks. */
int index_save(const struct index_key *key, const struct index_options *o,
	       const struct index_section *sections, unsigned n, char **path,
	       struct error *err);

/* Return whether `path`, relative to directory descriptor `dir` as in openat(2), is
 * an index file by its name and its first bytes. */
bool index_is_file(int dir, const char *path);

struct index;
/* Load an index.  Return 0 and set *out, which the caller frees with index_free; or
 * set *out to NULL and return -ENOENT if there is none, -ESTALE if the source has
 * changed since, -EBADMSG if it is damaged, -EINVAL if it is foreign (another
 * version, source or options), -EIO or -ENOMEM if it could not be read.  Sections
 * are read into memory with one read and their checksums verified; but sections that
 * were saved as blobs and are larger than `lazy` bytes stay in the file, and only
 * index_blob reaches them.  The checksums of those are not verified: their reader
 * has to check each piece, as the CRC of a window does. */
int index_load(const struct index_key *key, const struct index_options *o,
	       uint64_t lazy, struct index **out, struct error *err);
/* Return a section, aligned to 64 bytes and owned by `x`.  Return NULL and set *size
 * to 0 if there is no such section or it is lazy. */
const void *index_section(const struct index *x, uint32_t id, uint64_t *size);
/* Make a blob of a section, which the caller frees.  A missing section is an empty
 * blob. */
int index_blob(const struct index *x, uint32_t id, struct blob **out,
	       struct error *err);
/* Return the path where the index was found; owned by `x`. */
const char *index_path(const struct index *x);
void index_free(struct index *x);

#endif
