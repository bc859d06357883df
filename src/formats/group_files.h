/* SPDX-License-Identifier: BSD-2-Clause */
/* A group's directory: it has attributes, and no files of its own. */
#ifndef FORMATS_GROUP_FILES_H
#define FORMATS_GROUP_FILES_H

#include "tree/files.h"

/* Attributes of a group as a JSON object (malloc'ed text); NULL: see err. */
typedef char *group_attributes_fn(void *source, uint32_t file,
				  const char *object, struct error *err);
/* Files without entries, whose xattr "attrs" is that.  `source`, and `object`, its path
 * there, are borrowed.  NULL: no memory. */
struct files *group_files_new(group_attributes_fn *attributes, void *source,
			      uint32_t file, const char *object, int64_t mtime);
/* Such a text (taken; NULL: see err) as the value of an xattr (see files.xattr): what is
 * longer than a value may be is left out, and said so. */
ssize_t group_attributes_value(char *text, const struct error *err, char *buf,
			       size_t n);

#endif
