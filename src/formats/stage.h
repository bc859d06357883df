/* SPDX-License-Identifier: BSD-2-Clause */
/* Copy members to memory that must be in one piece but are not stored so. */
#ifndef FORMATS_STAGE_H
#define FORMATS_STAGE_H

#include "formats/source.h"

/* Copy the bytes of a->inside to an unlinked file in memory, and return its number in
 * handles.  UINT32_MAX with an error: -EFBIG if all copies together are larger than
 * a->archive->stage, -ENOMEM, or a read error.  Blocks. */
uint32_t source_staged(const struct source_args *a, struct error *err);

#endif
