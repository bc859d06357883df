/* SPDX-License-Identifier: BSD-2-Clause */
/* Sources: zip archives, and what else is one (.npz, .pt). */
#include <errno.h>
#include <string.h>

#include "source/archive.h"
#include "source/zip.h"

static int name_format(struct archive *a, struct error *err)
{
	a->format = strdup("zip");
	return a->format ? 0 : error_set(err, -ENOMEM, "out of memory");
}

static void so_far(void *ctx, uint64_t done)
{
	archive_progress(ctx, done);
}

static int zip_kind_scan(struct archive *a, const struct members_options *o,
			 struct error *err)
{
	const struct zip_scanning s = {.stored = &a->stored,
				       .options = o,
				       .uid = a->uid,
				       .gid = a->gid,
				       .so_far = so_far,
				       .ctx = a};
	int r = zip_scan(&s, &a->members, &a->zip, err);

	return r < 0 ? r : name_format(a, err);
}

static unsigned kind_sections(struct archive *a, struct index_section *out)
{
	return zip_sections(a->zip, MEMBERS_SECTION_OWN, out);
}

static int zip_load(struct archive *a, const struct index *x, struct error *err)
{
	int r = zip_of_index(&a->zip, &a->stored, x, MEMBERS_SECTION_OWN, err);

	return r < 0 ? r : name_format(a, err);
}

static int zip_source_probe(const unsigned char *head, size_t n,
			    const char *path)
{
	(void)path;
	return zip_probe(head, n);
}

static int zip_open(const struct source_args *a, struct source **out,
		    struct error *err)
{
	return archive_open(&archive_zip, a, out, err);
}

const struct source_ops source_zip = {
	.name = "zip",
	.summary = "zip archives: stored and deflated members",
	.archive = true,
	.probe = zip_source_probe,
	.open = zip_open,
	.about = archive_about,
	.verify = archive_verify,
	.usage = archive_usage,
	.close = archive_close,
};

const struct archive_kind archive_zip = {
	.ops = &source_zip,
	.maker = ZIP_MAKER,
	.scan = zip_kind_scan,
	.sections = kind_sections,
	.load = zip_load,
};

/* The same file, and the same index. */
const struct archive_kind archive_npz = {
	.ops = &source_npz,
	.maker = ZIP_MAKER,
	.scan = zip_kind_scan,
	.sections = kind_sections,
	.load = zip_load,
};
