/* SPDX-License-Identifier: BSD-2-Clause */
/* Members that have to be in one piece, and are not: copied to memory. */
#ifndef FORMATS_STAGE_H
#define FORMATS_STAGE_H

#include "formats/source.h"

/* Copy what a->inside means to an unlinked file in memory; its number in handles.
 * UINT32_MAX: -EFBIG (more than a->archive->stage allows, all together), -ENOMEM,
 * and what reading says. */
uint32_t source_staged(const struct source_args *a, struct error *err);

#endif
