/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of member views; a new view is a file and a row here. */
#include <string.h>

#include "views/members/table.h"

/* One view a line. */
/* clang-format off */
const struct member_view_ops *const member_view_table[] = {
	&member_view_by_key,
	&member_view_epochs,
	&member_view_files_txt,
	&member_view_manifest_csv,
	&member_view_manifest_jsonl,
	&member_view_file_list,
	&member_view_metadata,
	&member_view_shards,
	NULL
};
/* clang-format on */
_Static_assert(sizeof member_view_table / sizeof *member_view_table - 1 <= 32,
	       "each view has a bit in member_view_options.listed");

uint32_t member_view_rows(const char *name, size_t len)
{
	uint32_t rows = 0;

	if (len == 3 && !memcmp(name, "all", 3))
		return UINT32_MAX;
	for (unsigned i = 0; member_view_table[i]; i++) {
		const char *have = member_view_table[i]->name;

		if (strlen(have) == len && !memcmp(have, name, len))
			rows |= 1u << i;
	}
	return rows;
}

const char *member_view_names(void)
{
	return "by-key, epochs, lists, shards";
}
