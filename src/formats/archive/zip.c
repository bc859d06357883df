/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of an archive_kind for zip: scan, save, load. */

#include "formats/archive/archive.h"
#include "formats/zip/zip.h"

static void zip_progress(void *ctx, uint64_t done)
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
				       .so_far = zip_progress,
				       .ctx = a};

	return zip_scan(&s, &a->members, &a->zip, err);
}

unsigned archive_zip_sections(struct archive *a, struct index_section *out)
{
	return zip_sections(a->zip, MEMBERS_SECTION_OWN, out);
}

int archive_zip_load(struct archive *a, const struct index *x,
		     struct error *err)
{
	return zip_of_index(&a->zip, &a->stored, x, MEMBERS_SECTION_OWN, err);
}
