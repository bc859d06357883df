/* SPDX-License-Identifier: BSD-2-Clause */
/* Sources: zip archives, and what else is one (.npz, .pt). */
#include <errno.h>
#include <string.h>

#include "source/archive.h"
#include "source/zarr.h"
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
				       .threads = a->options->threads,
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

/* Who asks for members, or a part of them, gets these. */
static bool may_be_store(const struct archive *a,
			 const struct source_args *args)
{
	const struct archive_options *o = args->archive;

	return !(o && (o->subdir || o->versions || o->as_is)) &&
	       zarr_zip_is_store(a);
}

static int zip_open(const struct source_args *args, struct source **out,
		    struct error *err)
{
	bool inside = args->archive && args->archive->depth;
	struct archive *a;
	int r = archive_load(&archive_zip, args, &a, err);

	*out = NULL;
	if (r < 0)
		return r;
	if (!may_be_store(a, args)) {
		if (!args->dataset || args->inside)
			return archive_publish(a, args, out, err);
		archive_close(&a->source);
		return error_set(err, SOURCE_USAGE,
				 "%s: dataset= is for HDF5 files and Zarr "
				 "stores; for archives it is subdir=",
				 args->path);
	}
	if (!args->views.labels || inside)
		return zarr_zip_open(a, args, out, err);
	archive_close(&a->source);
	return error_set(err, SOURCE_USAGE,
			 "%s: labels= is a dataset of an HDF5 file, or a .csv "
			 "or .txt file",
			 args->path);
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
