/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells which file is which field of which sample. */
#ifndef SHARDS_KEY_H
#define SHARDS_KEY_H

#include <stddef.h>

/*
 * Samples are those of WebDataset (tariterators.py: base_plus_ext, tar_file_iterator,
 * group_by_keys).  File "a/b.seg.png" is field "seg.png" of sample "a/b": the key ends
 * at the first dot of the base name, and the directory is part of it.  A sample is a
 * run of *consecutive* members with one key.  WebDataset skips members that are not
 * regular files, names without such a dot, and "__NAME__" with everything below it; a
 * field that is there twice (in any case: "a.jpg" and "a.JPG") is an error.
 */

/* Return the length in bytes of the key of `path`; 0 if it is not a member of a sample. */
size_t shards_key(const char *path);
/* Compare two fields, the parts of names behind the dot, as WebDataset does: in lower
 * case.  Returns a number below, equal to or above 0, like strcmp. */
int shards_compare_fields(const char *a, const char *b);

#endif
