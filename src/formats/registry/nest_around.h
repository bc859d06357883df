/* SPDX-License-Identifier: BSD-2-Clause */
/* Find members of an archive that another member names. */
#ifndef FORMATS_REGISTRY_NEST_AROUND_H
#define FORMATS_REGISTRY_NEST_AROUND_H

#include "formats/source.h"
#include "members/member_files.h"

/* The members of an archive.  All pointers are borrowed. */
struct nest_table {
	struct handles *handles;
	struct pinner *pinner;
	const struct members *m;
	const struct volume *volumes;
	unsigned n_volumes;
	struct files *files;
};
/* How a member that is opened as a source finds the others. */
struct nest_around {
	struct source_around is; /* first member */
	const struct nest_table *table;
	const char *source; /* name of the archive */
};
/* Initialise *x for member `record`.  Everything else is borrowed as long as the source
 * is open. */
void nest_around_init(struct nest_around *x, const struct nest_table *table,
		      const struct archive_options *archive,
		      struct source_kept *kept, const char *source,
		      uint64_t record);

#endif
