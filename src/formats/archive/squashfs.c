/* SPDX-License-Identifier: BSD-2-Clause */
/* Sources: squashfs images. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/archive/archive.h"

enum { SECTION_INFO = MEMBERS_SECTION_OWN };

static int name_squashfs_format(struct archive *a, struct error *err)
{
	if (asprintf(&a->format, "squashfs (%s)",
		     squashfs_compressor_name(a->info.compressor)) < 0) {
		a->format = NULL;
		return error_no_memory(err, "the name of the format");
	}
	return 0;
}

static int squashfs_scan(struct archive *a, const struct members_options *o,
			 struct error *err)
{
	int r = squashfs_members(&a->stored, o, &a->members, &a->info, NULL,
				 NULL, err);

	return r < 0 ? r : name_squashfs_format(a, err);
}

static unsigned squashfs_sections(struct archive *a, struct index_section *out)
{
	out[0] = (struct index_section){SECTION_INFO, &a->info, sizeof a->info,
					NULL};
	return 1;
}

static int squashfs_load(struct archive *a, const struct index *x,
			 struct error *err)
{
	uint64_t size;
	const void *info = index_section(x, SECTION_INFO, &size);
	int r;

	if (!info || size != sizeof a->info)
		return error_set(err, -EBADMSG,
				 "its squashfs section is damaged");
	memcpy(&a->info, info, sizeof a->info);
	r = squashfs_info_check(&a->info, &a->stored, err);
	return r < 0 ? r : name_squashfs_format(a, err);
}

static int squashfs_source_probe(const unsigned char *head, size_t n,
				 const char *path)
{
	(void)path;
	return squashfs_probe(head, n);
}

static int squashfs_open(const struct source_args *a, struct source **out,
			 struct error *err)
{
	return archive_open(&archive_squashfs, a, out, err);
}

const struct source_ops source_squashfs = {
	.name = "squashfs",
	.summary = "squashfs 4.0 images",
	.archive = &archive_squashfs,
	.probe = squashfs_source_probe,
	.open = squashfs_open,
	.about = archive_about,
	.verify = archive_verify,
	.usage = archive_usage,
	.close = archive_close,
};

const struct archive_kind archive_squashfs = {
	.ops = &source_squashfs,
	.maker = SQUASHFS_MAKER,
	.scan = squashfs_scan,
	.sections = squashfs_sections,
	.load = squashfs_load,
};
