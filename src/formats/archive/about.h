/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations shared by the files that describe an archive for `info`; other
 * folders must not include them. */
#ifndef FORMATS_ARCHIVE_ABOUT_H
#define FORMATS_ARCHIVE_ABOUT_H

#include "formats/archive/archive.h"

/* Describe a member of an archive, or a record of any table, as a JSON object.
 * Return NULL if there is no memory. */
json_t *about_member(const struct archive *a, uint64_t record);
json_t *about_record(const struct members *m, uint64_t record);
/* Add counts in the order of members.counts; `bytes` is the sum over all files. */
void about_counts(json_t *o, const uint64_t counts[5], uint64_t bytes);

void about_put(json_t *o, const char *key, uint64_t v);
/* `text` may be NULL, which becomes null. */
void about_text(json_t *o, const char *key, const char *text);

#endif
