/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of a merge's journal, as its reader and its writer know them. */
#ifndef TENSORS_MERGE_RECORD_H
#define TENSORS_MERGE_RECORD_H

#include "tensors/merge/journal.h"

enum journal_kind {
	JOURNAL_PLAN = 0x314d4654, /* "TFM1" */
	JOURNAL_TEXTS = 2,
	JOURNAL_CHUNKS = 3,
	JOURNAL_MADE = 4
};
#define JOURNAL_FRONT 16 /* bytes before the payload */
#define JOURNAL_BACK 8

#endif
