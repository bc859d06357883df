/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files share that tell of an archive; nobody else includes it. */
#ifndef FORMATS_ARCHIVE_ABOUT_H
#define FORMATS_ARCHIVE_ABOUT_H

#include "formats/archive/archive.h"

/* A member of an archive, or of any table. */
json_t *about_member(const struct archive *a, uint64_t record);
json_t *about_record(const struct members *m, uint64_t record);
/* As in members.counts; `bytes` are those of all files. */
void about_counts(json_t *o, const uint64_t counts[5], uint64_t bytes);

void about_put(json_t *o, const char *key, uint64_t v);
/* NULL is null. */
void about_text(json_t *o, const char *key, const char *text);

#endif
