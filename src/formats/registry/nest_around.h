/* SPDX-License-Identifier: BSD-2-Clause */
/* Members of an archive that name other members. */
#ifndef FORMATS_REGISTRY_NEST_AROUND_H
#define FORMATS_REGISTRY_NEST_AROUND_H

#include "formats/source.h"
#include "members/member_files.h"

/* The members of an archive; all borrowed. */
struct nest_table {
	struct handles *handles;
	struct pinner *pinner;
	const struct members *m;
	const struct volume *volumes;
	unsigned n_volumes;
	struct files *files;
};
/* What a member that is opened as a source knows of the others. */
struct nest_around {
	struct source_around is; /* first */
	const struct nest_table *table;
	const char *source; /* name of the archive */
};
/* Member `record` of it; all others are borrowed, as long as the source is open. */
void nest_around_init(struct nest_around *x, const struct nest_table *table,
		      const struct archive_options *archive,
		      struct source_kept *kept, const char *source,
		      uint64_t record);

#endif
