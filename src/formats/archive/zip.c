/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of members of a zip, as of any archive. */
#include <errno.h>
#include <string.h>

#include "formats/archive/archive.h"
#include "formats/zip/zip.h"

static int name_format(struct archive *a, struct error *err)
{
	a->format = strdup("zip");
	return a->format ? 0 : error_set(err, -ENOMEM, "out of memory");
}

static void so_far(void *ctx, uint64_t done)
{
	archive_progress(ctx, done);
}

int archive_zip_scan(struct archive *a, const struct members_options *o,
		     struct error *err)
{
	const struct zip_scanning s = {.stored = &a->stored,
				       .options = o,
				       .uid = a->uid,
				       .gid = a->gid,
				       .threads = a->options->threads,
				       .so_far = so_far,
				       .ctx = a};
	int r = zip_scan(&s, &a->members, &a->zip, err);

	return r < 0 ? r : name_format(a, err);
}

unsigned archive_zip_sections(struct archive *a, struct index_section *out)
{
	return zip_sections(a->zip, MEMBERS_SECTION_OWN, out);
}

int archive_zip_load(struct archive *a, const struct index *x,
		     struct error *err)
{
	int r = zip_of_index(&a->zip, &a->stored, x, MEMBERS_SECTION_OWN, err);

	return r < 0 ? r : name_format(a, err);
}
