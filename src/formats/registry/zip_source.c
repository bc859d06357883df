/* SPDX-License-Identifier: BSD-2-Clause */
/* Source: zip archives, which may be Zarr stores. */
#include <errno.h>
#include <string.h>

#include "formats/archive/archive.h"
#include "formats/zarr/zarr.h"

static int zip_source_probe(const unsigned char *head, size_t n,
			    const char *path)
{
	(void)path;
	return zip_probe(head, n);
}

/* A zip ends with its directory, whatever is in front of it (APPNOTE.TXT, section
 * 4.3.6). */
static int zip_source_probe_beyond(const struct backing *b)
{
	return zip_ends_file(b) ? 60 : 0;
}

/* Return true if the zip is to be shown as a Zarr store; options that refer to members
 * say that it is not. */
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
	int r = archive_load(source_zip.archive, args, &a, err);

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

static const struct archive_kind archive_zip = {
	.ops = &source_zip,
	.maker = ZIP_MAKER,
	.format = "zip",
	.scan = archive_zip_scan,
	.sections = archive_zip_sections,
	.load = archive_zip_load,
};

const struct source_ops source_zip = {
	.flags = SOURCE_HAS_DATASETS,
	.probe_beyond = zip_source_probe_beyond,
	.name = "zip",
	.summary = "zip archives: stored and deflated members",
	.archive = &archive_zip,
	.probe = zip_source_probe,
	.open = zip_open,
	.about = archive_about,
	.verify = archive_verify,
	.usage = archive_usage,
	.close = archive_close,
};
