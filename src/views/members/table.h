/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of member_view_table. */
#ifndef VIEWS_MEMBERS_TABLE_H
#define VIEWS_MEMBERS_TABLE_H

#include "views/members/member_views.h"

extern const struct member_view_ops member_view_by_key, member_view_epochs,
	member_view_file_list, member_view_files_txt, member_view_manifest_csv,
	member_view_manifest_jsonl, member_view_metadata, member_view_shards;

#endif
