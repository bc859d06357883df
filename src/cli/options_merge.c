/* SPDX-License-Identifier: BSD-2-Clause */
/* The option table of merge. */
#include "cli/option_rows.h"

#define TEXT(name, key, arg, fallback, help, member)                           \
	{                                                                      \
		name, key, OPTION_TEXT, arg, fallback, help, AT(member), 0, 0, \
			NULL                                                   \
	}

static const struct option options_merge[] = {
	TEXT("output", 'o', "OUT", "in the place of MAIN", "the file to make",
	     pack.output),
	TEXT("check-flag", 0, "WORD", NULL,
	     "do nothing unless all rows have this flag", pack.check_flag),
	FLAG("delete-parts", 0, pack.delete_parts,
	     "delete each part once its data is safe in OUT"),
	TEXT("chunk", 0, "N,...", "that of the parts", "shape of a chunk",
	     pack.chunk),
	TEXT("prefix", 0, "DIR[:DIR...]", NULL,
	     "directories to search for parts before all others", prefix),
	END};

const struct option *const tables_merge[] = {options_merge,  options_make,
					     options_effort, options_progress,
					     options_common, NULL};
