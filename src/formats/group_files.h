/* SPDX-License-Identifier: BSD-2-Clause */
/* The directory of a group: it has attributes but no files of its own. */
#ifndef FORMATS_GROUP_FILES_H
#define FORMATS_GROUP_FILES_H

#include "tree/files.h"

/* Return the attributes of a group as a JSON object (malloc'ed text); NULL with an
 * error. */
typedef char *group_attributes_fn(void *source, uint32_t file,
				  const char *object, struct error *err);
/* Make files without entries, whose xattr "attrs" is what `attributes` returns.  `source`
 * and `object`, the group's path in it, are borrowed.  Return NULL when out of memory. */
struct files *group_files_new(group_attributes_fn *attributes, void *source,
			      uint32_t file, const char *object, int64_t mtime);
/* Copy such a text, which is freed (NULL: return err->code), to `buf` as the value of an
 * xattr (files.xattr).  Attributes that do not fit are replaced by their length. */
ssize_t group_attributes_value(char *text, const struct error *err, char *buf,
			       size_t n);

#endif
