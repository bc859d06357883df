/* SPDX-License-Identifier: BSD-2-Clause */
/* Which file is which field of which sample. */
#ifndef SHARDS_KEY_H
#define SHARDS_KEY_H

#include <stddef.h>

/*
 * What a sample is, is WebDataset's (tariterators.py: base_plus_ext, tar_file_iterator,
 * group_by_keys): a file "a/b.seg.png" is the field "seg.png" of the sample "a/b", for the
 * key ends at the first dot of the base name, and the directory is part of it.  A sample is
 * *consecutive* members with one key.  Its readers skip what is no regular file, what has no
 * such dot, and "__NAME__" and what is below it; a field that is there twice (in any case:
 * "a.jpg" and "a.JPG") is an error to them.
 */

/* Bytes of `path` that are its key; 0: it is no member of a sample. */
size_t shards_key(const char *path);
/* The order of two fields as readers compare them, that is, in lower case; both behind
 * the dot. */
int shards_compare_fields(const char *a, const char *b);

#endif
