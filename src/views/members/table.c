/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of member views; a new view is a file and a row here. */
#include <string.h>

#include "views/members/table.h"

/* One view a line. */
/* clang-format off */
const struct beside_ops *const beside_table[] = {
	&beside_by_key,
	&beside_epochs,
	&beside_files_txt,
	&beside_manifest_csv,
	&beside_manifest_jsonl,
	&beside_file_list,
	&beside_metadata,
	&beside_shards,
	NULL
};
/* clang-format on */
_Static_assert(sizeof beside_table / sizeof *beside_table - 1 <= 32,
	       "each view has a bit in beside_options.listed");

uint32_t beside_rows(const char *name, size_t len)
{
	uint32_t rows = 0;

	if (len == 3 && !memcmp(name, "all", 3))
		return UINT32_MAX;
	for (unsigned i = 0; beside_table[i]; i++) {
		const char *have = beside_table[i]->name;

		if (strlen(have) == len && !memcmp(have, name, len))
			rows |= 1u << i;
	}
	return rows;
}

const char *beside_names(void)
{
	return "by-key, epochs, lists, shards";
}
