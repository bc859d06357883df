/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of formats, and opening a source with the one that bids most. */
#include "formats/source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/archive/archive.h"
#include "formats/arrow/arrow.h"
#include "formats/hdf5/hdf5.h"
#include "formats/hdf5/worker/worker.h"
#include "formats/netcdf/netcdf.h"
#include "formats/numpy/camera.h"
#include "formats/numpy/npy.h"
#include "formats/parquet/parquet.h"
#include "formats/raw/raw.h"
#include "formats/registry/concat.h"
#include "formats/registry/strangers.h"
#include "formats/safetensors/safetensors.h"
#include "formats/zarr/zarr.h"
#include "formats/zip/zip.h"
#include "stream/stream.h"

/* One format a line, because there are many. */
/* clang-format off */
const struct source_ops *const source_table[] = {
	&source_hdf5,
	&source_arrow,
	&source_blo,
	&source_mib,
	&source_netcdf,
	&source_npy,
	&source_npz,
	&source_parquet,
	&source_raw,
	&source_safetensors,
	&source_seq,
	&source_squashfs,
	&source_stream,
	&source_tar,
	&source_tvips,
	&source_zarr,
	&source_zarr_zip,
	&source_zip,
	NULL
};
/* clang-format on */

static int source_read_file(const struct source_args *a, unsigned char *head,
			    size_t *n, struct error *err)
{
	cleanup_close int fd = open(a->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	ssize_t got;

	if (fd < 0)
		return error_errno(err, -errno, "%s", a->path);
	if (fstat(fd, &st) < 0)
		return error_errno(err, -errno, "%s", a->path);
	if (!S_ISREG(st.st_mode))
		return error_set(err, -EINVAL, "%s is not a regular file",
				 a->path);
	if (a->archive && a->archive->offset &&
	    a->archive->offset >= (uint64_t)st.st_size)
		return error_set(err, -EINVAL,
				 "%s ends before offset=%" PRIu64
				 ": it has %" PRIu64 " bytes",
				 a->path, a->archive->offset,
				 (uint64_t)st.st_size);
	got = pread(fd, head, SOURCE_HEAD,
		    a->archive ? (off_t)a->archive->offset : 0);
	if (got < 0)
		return error_errno(err, -errno, "%s", a->path);
	*n = (size_t)got;
	return 0;
}

static int source_read_head(const struct source_args *a, unsigned char *head,
			    size_t *n, struct error *err)
{
	if (!a->inside)
		return source_read_file(a, head, n, err);
	*n = min_u64(a->inside->size, SOURCE_HEAD);
	return backing_read(a->inside, 0, head, *n, err);
}

/* Refuse a file that no format recognises; name it if it is of a kind that users take for
 * data. */
static int say_what_it_is(const char *path, const unsigned char *head, size_t n,
			  struct error *err)
{
	const struct stranger *is = stranger_of(head, n, path);

	if (is)
		return error_set(
			err, -ENOTSUP,
			"%s is %s: neither an HDF5 file nor an archive, nor "
			"anything else that can be mounted%s%s",
			path, is->is, is->then ? "; " : "",
			is->then ? is->then : "");
	return error_set(
		err, -ENOTSUP,
		"%s is neither an HDF5 file nor an archive (tar, also "
		"compressed with %s; squashfs; zip), nor anything else that "
		"can be mounted (tensorfs --version lists the formats)",
		path, stream_format_names());
}

const struct source_ops *source_probe(const unsigned char *head, size_t n,
				      const char *path)
{
	const struct source_ops *best = NULL;
	int bid = 0;

	/* An empty file is a valid tar archive, but here most likely a mistake. */
	if (n == 0)
		return NULL;
	for (size_t i = 0; source_table[i]; i++) {
		int b = source_table[i]->probe(head, n, path);

		if (b > bid) {
			bid = b;
			best = source_table[i];
		}
	}
	return best;
}

const struct source_ops *source_probe_beyond(const struct source_args *a)
{
	uint64_t offset = a->archive ? a->archive->offset : 0;
	const struct source_ops *best = NULL;
	struct backing b;
	uint32_t file;
	int bid = 0;

	if (a->inside) {
		b = *a->inside;
	} else {
		file = handles_add(a->handles, a->path);
		if (file == UINT32_MAX ||
		    backing_file(&b, a->handles, a->pinner, file, offset,
				 NULL) < 0)
			return NULL;
	}
	for (size_t i = 0; source_table[i]; i++) {
		int (*probe)(const struct backing *) =
			source_table[i]->probe_beyond;
		int bid_here = probe ? probe(&b) : 0;

		if (bid_here > bid) {
			bid = bid_here;
			best = source_table[i];
		}
	}
	return best;
}

/* Return the format of which `path` names several files that are one source; else NULL. */
static const struct source_ops *files_format(const char *path)
{
	for (size_t i = 0; source_table[i]; i++)
		if (source_table[i]->is_files &&
		    source_table[i]->is_files(path))
			return source_table[i];
	return NULL;
}

/* Refuse options that mean nothing for a format that has these flags. */
static int source_check_flags(unsigned flags, bool is_archive,
			      const struct source_args *a, struct error *err)
{
	const struct archive_options *of_archives = a->archive;
	bool is_directory = flags & SOURCE_DIRECTORY;
	bool no_datasets = a->dataset && !(flags & SOURCE_HAS_DATASETS);
	const char *odd = NULL;

	if (no_datasets && is_archive && !a->inside)
		odd = "dataset= is for HDF5 files; for archives it is subdir=";
	else if (no_datasets && is_directory)
		odd = "dataset= is for HDF5 files, but this is a directory: "
		      "name the file in it";
	else if (no_datasets && !a->inside)
		odd = "dataset= is for HDF5 files and Zarr stores";
	else if (is_directory && of_archives && of_archives->offset)
		odd = "offset= is for archives, but this is a directory";
	else if (!is_archive && of_archives && of_archives->offset)
		odd = "offset= is for archives";
	else if (is_directory && of_archives && of_archives->subdir)
		odd = "subdir= is for archives, but this is a directory: name "
		      "the archive in it";
	else if (!is_archive && of_archives && of_archives->subdir)
		odd = "subdir= is for archives; for HDF5 files it is dataset=";
	else if (!is_archive && !is_directory && !(flags & SOURCE_HAS_LABELS) &&
		 a->views.labels && !(of_archives && of_archives->depth))
		odd = "labels= is a dataset or attribute of an HDF5 file, a "
		      "column of an Arrow or Parquet file, or a .csv or .txt "
		      "file";
	return odd ? error_set(err, SOURCE_USAGE, "%s: %s", a->path, odd) : 0;
}

static int source_check_options(const struct source_ops *ops,
				const struct source_args *a, struct error *err)
{
	return source_check_flags(ops->flags, ops->archive, a, err);
}

/* Open a directory: as a Zarr store, the parts of a tensor, or files. */
static int open_directory(const struct source_args *a, struct source **out,
			  struct error *err)
{
	bool as_is = a->archive && a->archive->as_is;
	const struct source_ops *ops = as_is || !zarr_is_store(a->path)
					       ? &source_directory
					       : &source_zarr;
	int r;

	/* concat_open refuses what files of the first one's format do not take. */
	r = a->joined ? source_check_flags(SOURCE_HAS_DATASETS |
						   SOURCE_HAS_LABELS,
					   false, a, err)
		      : source_check_options(ops, a, err);
	if (r < 0)
		return r;
	return a->joined ? concat_open(a, out, err) : ops->open(a, out, err);
}

static int open_raw(const struct source_args *a, struct source **out,
		    struct error *err)
{
	int r = source_check_options(&source_raw, a, err);
	struct stat st;

	if (r == 0 && stat(a->path, &st) == 0 && S_ISDIR(st.st_mode))
		r = error_set(err, SOURCE_USAGE,
			      "%s is a directory, but raw= is for files",
			      a->path);
	return r < 0 ? r : raw_open(a, out, err);
}

static int source_open_as(const struct source_ops *ops,
			  const struct source_args *a, struct source **out,
			  struct error *err)
{
	int r = source_check_options(ops, a, err);

	return r < 0 ? r : ops->open(a, out, err);
}

int source_open(const struct source_args *a, struct source **out,
		struct error *err)
{
	unsigned char head[SOURCE_HEAD];
	const struct source_ops *ops;
	struct stat st;
	size_t n;
	int r;

	*out = NULL;
	if (!a->inside && !a->raw && stat(a->path, &st) == 0 &&
	    S_ISDIR(st.st_mode))
		return open_directory(a, out, err);
	if (a->joined && a->raw)
		return error_set(err, SOURCE_USAGE,
				 "%s: concat= and raw= exclude each other",
				 a->path);
	if (a->joined)
		return error_set(err, SOURCE_USAGE,
				 "%s is not a directory, but concat= is for "
				 "directories of .npy or HDF5 files",
				 a->path);
	if (a->raw && !a->inside)
		return open_raw(a, out, err);
	if (!a->inside && stat(a->path, &st) < 0 && errno == ENOENT &&
	    (ops = files_format(a->path)))
		return source_open_as(ops, a, out, err); /* "x_%d.h5" */
	r = source_read_head(a, head, &n, err);
	if (r < 0)
		return r;
	ops = source_probe(head, n, a->path);
	if (!ops && !a->inside)
		ops = files_format(a->path);
	if (!ops)
		ops = source_probe_beyond(a);
	if (!ops)
		return say_what_it_is(a->path, head, n, err);
	return source_open_as(ops, a, out, err);
}

/* Read the member table of one of several archives, without publishing its tree. */
static int load_archive(const struct source_args *a, struct source **out,
			struct error *err)
{
	unsigned char head[SOURCE_HEAD];
	const struct source_ops *ops;
	size_t n;
	struct stat st;
	int r;

	if (stat(a->path, &st) == 0 && S_ISDIR(st.st_mode))
		return error_set(err, SOURCE_USAGE,
				 "%s is a directory: only archives can be one "
				 "tree (union)",
				 a->path);
	r = source_read_head(a, head, &n, err);
	if (r < 0)
		return r;
	ops = source_probe(head, n, a->path);
	if (!ops)
		ops = source_probe_beyond(a);
	if (!ops)
		return say_what_it_is(a->path, head, n, err);
	if (!ops->archive)
		return error_set(err, SOURCE_USAGE,
				 "%s is not an archive: only archives can be "
				 "one tree (union)",
				 a->path);
	r = source_check_options(ops, a, err);
	if (r == 0 && a->dataset)
		r = error_set(err, SOURCE_USAGE,
			      "%s: dataset= is for HDF5 files; for archives it "
			      "is subdir=",
			      a->path);
	if (r < 0)
		return r;
	return archive_load_as(ops, a, out, err);
}

int source_open_union(const struct source_args *a, char *const *paths, size_t n,
		      struct source **sources, struct error *err)
{
	struct source_args one = *a;
	size_t open = 0;
	int r = 0;

	if (n > UINT16_MAX)
		return error_set(err, -E2BIG,
				 "union= takes at most %u archives",
				 UINT16_MAX);
	for (; open < n; open++) {
		one.path = paths[open];
		r = load_archive(&one, &sources[open], err);
		if (r < 0)
			break;
	}
	if (r == 0)
		r = archive_union(sources, (unsigned)n, a, &sources[n], err);
	if (r < 0)
		while (open-- > 0)
			source_close(sources[open]);
	return r;
}

void source_close(struct source *s)
{
	if (s)
		s->ops->close(s);
}

int source_isolate(bool keep_stderr, struct error *err)
{
	stream_first_pass_no_fork();
	return hdf5_isolate_start(keep_stderr, err);
}

void source_isolate_end(void)
{
	hdf5_isolate_stop();
}

bool source_isolated(void)
{
	return hdf5_isolated();
}
