/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of beside_table. */
#ifndef VIEWS_MEMBERS_TABLE_H
#define VIEWS_MEMBERS_TABLE_H

#include "views/members/beside.h"

extern const struct beside_ops beside_by_key, beside_epochs, beside_file_list,
	beside_files_txt, beside_manifest_csv, beside_manifest_jsonl,
	beside_metadata, beside_shards;

#endif
