/* SPDX-License-Identifier: BSD-2-Clause */
/* Sources: plain tar, and compressed streams that hold a tar or one file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "formats/archive/archive.h"
#include "formats/tar/tar.h"

/* Decoded bytes that are examined to find out whether a stream holds a tar. */
#define HEAD TAR_PROBE

/* ---- tar ----------------------------------------------------------------- */

static void tar_progress(void *ctx, uint64_t at)
{
	archive_progress(ctx, at);
}

static int tar_build(struct archive *a, struct input *in,
		     const struct members_options *o,
		     void (*tell)(void *ctx, uint64_t at), struct error *err)
{
	struct members_builder *b;
	struct tar_scanned scanned;
	int r = members_builder_new(&b, o, err);

	if (r < 0)
		return r;
	r = tar_scan(in, b, &scanned, tell, a, err);
	if (r < 0) {
		members_builder_free(b);
		return r;
	}
	return members_finish(b, &a->members, err);
}

static int tar_kind_scan(struct archive *a, const struct members_options *o,
			 struct error *err)
{
	struct input *in;
	int r = input_of_backing(&in, &a->stored, err);

	if (r < 0)
		return r;
	r = tar_build(a, in, o, tar_progress, err);
	input_free(in);
	return r;
}

static int tar_source_probe(const unsigned char *head, size_t n,
			    const char *path)
{
	(void)path;
	return tar_probe(head, n);
}

static int tar_open(const struct source_args *a, struct source **out,
		    struct error *err)
{
	return archive_open(&archive_tar, a, out, err);
}

const struct source_ops source_tar = {
	.name = "tar",
	.summary = "tar archives, also compressed",
	.archive = &archive_tar,
	.probe = tar_source_probe,
	.open = tar_open,
	.about = archive_about,
	.verify = archive_verify,
	.usage = archive_usage,
	.close = archive_close,
};

const struct archive_kind archive_tar = {
	.ops = &source_tar, .maker = TAR_MAKER, .scan = tar_kind_scan};

/* ---- compressed streams -------------------------------------------------- */

enum { SECTION_POINTS = MEMBERS_SECTION_OWN, SECTION_STATES, SECTION_STREAM };

/* Saved in the index, together with points and states. */
struct stream_head {
	char format[16];
	uint32_t is_tar, damaged;
	char damage[504];
};

static const char *last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Return the size of the single file.  If the end of its stream is missing, the
 * size is not known: then one byte is added to what could be decoded, so that
 * reading to the end is an error and the file is not taken for complete. */
static uint64_t single_member_size(const struct archive *a)
{
	uint64_t n, size = stream_size(a->stream);
	const struct stream_point *points = stream_points(a->stream, &n);

	return a->damage && !(n && (points[n - 1].flags & POINT_BAD)) ? size + 1
								      : size;
}

/* Make the table of a single file, named like the archive without its suffix. */
static int make_single_member(struct archive *a,
			      const struct members_options *o,
			      struct error *err)
{
	cleanup_free char *name = stream_decoded_name(
		stream_format_of(a->stream), last_component(a->path));
	struct member m = {
		.path = name,
		.mode = S_IFREG | (a->mode & 0666),
		.uid = a->uid,
		.gid = a->gid,
		.mtime = a->mtime,
		.size = single_member_size(a),
		.kind = MEMBER_RANGE,
	};
	struct members_builder *b;
	int64_t r;

	if (!name)
		return error_no_memory(err, "the name of the decoded file");
	r = members_builder_new(&b, o, err);
	if (r < 0)
		return (int)r;
	r = members_add(b, &m, err);
	if (r < 0) {
		members_builder_free(b);
		return (int)r;
	}
	return members_finish(b, &a->members, err);
}

static int name_stream_format(struct archive *a, const struct stream_format *f)
{
	static const char *const two[][2] = {
		{"gzip", "gz"}, {"bzip2", "bz2"}, {"zstd", "zst"}};
	const char *name = stream_format_name(f);

	for (size_t i = 0; i < sizeof two / sizeof two[0]; i++)
		if (!strcmp(name, two[i][0]))
			name = two[i][1];
	if (asprintf(&a->format, "%s%s", a->is_tar ? "tar." : "", name) < 0) {
		a->format = NULL;
		return -ENOMEM;
	}
	return 0;
}

/* Scan the tar in a stream while it is decoded.  A stream without a tar is decoded
 * to its end by stream_scan_finish. */
static int scan_inside(struct archive *a, struct stream_scan *scan,
		       const struct members_options *o, struct error *err)
{
	struct input *in = stream_scan_input(scan), *again;
	unsigned char head[HEAD];
	ssize_t n = input_read(in, head, sizeof head, err);
	int r;

	/* A stream that is damaged at its beginning has no tar in it. */
	if (n == -EBADMSG || n == -EIO)
		return 0;
	if (n < 0)
		return (int)n;
	a->is_tar = n > 0 && tar_probe(head, (size_t)n) > 0;
	if (!a->is_tar)
		return 0;
	r = archive_input_again(&again, head, (size_t)n, in, err);
	if (r < 0)
		return r;
	r = tar_build(a, again, o, NULL, err);
	input_free(again);
	return r;
}

/* Return a sentence without the name in front of it: that of the file or of the
 * archive. */
static const char *without_name(const struct archive *a, const char *text)
{
	const char *const names[] = {a->path, backing_name(&a->stored)};

	for (size_t i = 0; i < 2; i++) {
		size_t n = strlen(names[i]);

		if (n && !strncmp(text, names[i], n) &&
		    !strncmp(text + n, ": ", 2))
			return text + n + 2;
	}
	return text;
}

/* Return a->damage without the path of the archive. */
static const char *behind_path(const struct archive *a)
{
	return without_name(a, a->damage);
}

/* Store the sentence with the path that the user gave, which may be another one
 * when the index is loaded. */
static int store_damage(struct archive *a, const struct error *damage)
{
	if (asprintf(&a->damage, "%s: %s", a->path,
		     without_name(a, damage->text)) < 0) {
		a->damage = NULL;
		return -ENOMEM;
	}
	return 0;
}

static int stream_kind_scan(struct archive *a, const struct members_options *o,
			    struct error *err)
{
	unsigned char head[HEAD];
	size_t n = a->stored.size < sizeof head ? (size_t)a->stored.size
						: sizeof head;
	const struct stream_format *f;
	struct stream_scan *scan;
	struct error damage = {0};
	int r = backing_read(&a->stored, 0, head, n, err);

	if (r < 0)
		return r;
	f = stream_probe(head, n);
	if (!f)
		return error_set(err, -ENOTSUP, "not a compressed stream");
	r = stream_scan_new(&scan, f, &a->stored, a->options->threads, err);
	if (r < 0)
		return r;
	stream_scan_tell(scan, tar_progress, a);
	stream_scan_keep(scan);
	r = scan_inside(a, scan, o, err);
	if (r < 0) {
		stream_scan_free(scan);
		return r;
	}
	r = stream_scan_finish(scan, &a->stream, &damage);
	if (!a->stream) {
		*err = damage;
		return r;
	}
	if (r < 0 && store_damage(a, &damage) < 0)
		return error_no_memory(err, "the sentence about the damage");
	if (a->is_tar)
		return name_stream_format(a, f);
	if (r < 0 && !stream_size(a->stream)) {
		*err = damage;
		return r;
	}
	r = name_stream_format(a, f);
	return r < 0 ? r : make_single_member(a, o, err);
}

static unsigned stream_sections(struct archive *a, struct index_section *out)
{
	static _Thread_local struct stream_head head;
	uint64_t n;
	const struct stream_point *points = stream_points(a->stream, &n);

	memset(&head, 0, sizeof head);
	snprintf(head.format, sizeof head.format, "%s",
		 stream_format_name(stream_format_of(a->stream)));
	head.is_tar = a->is_tar;
	head.damaged = a->damage != NULL;
	/* Without the path, which may be another one next time. */
	if (a->damage)
		snprintf(head.damage, sizeof head.damage, "%s", behind_path(a));
	out[0] = (struct index_section){SECTION_STREAM, &head, sizeof head,
					NULL};
	out[1] = (struct index_section){SECTION_POINTS, points,
					n * sizeof *points, NULL};
	out[2] = (struct index_section){SECTION_STATES, NULL,
					blob_size(stream_states(a->stream)),
					stream_states(a->stream)};
	return 3;
}

static int stream_load(struct archive *a, const struct index *x,
		       struct error *err)
{
	uint64_t size, points_size;
	const struct stream_head *head =
		index_section(x, SECTION_STREAM, &size);
	const struct stream_point *points =
		index_section(x, SECTION_POINTS, &points_size);
	const struct stream_format *f;
	struct error damage;
	struct blob *states;
	int r;

	if (!head || size != sizeof *head || head->format[15] ||
	    head->damage[sizeof head->damage - 1] ||
	    points_size % sizeof *points)
		return error_set(err, -EBADMSG,
				 "its sections about the stream are damaged");
	f = stream_find(head->format);
	if (!f)
		return error_set(err, -EBADMSG,
				 "it names an unknown compression format");
	r = index_blob(x, SECTION_STATES, &states, err);
	if (r < 0)
		return r;
	r = stream_of_points(&a->stream, f, &a->stored, points,
			     points_size / sizeof *points, states, err);
	if (r < 0)
		return r;
	a->is_tar = head->is_tar;
	error_set(&damage, -EBADMSG, "%s", head->damage);
	if (name_stream_format(a, f) < 0 ||
	    (head->damaged && store_damage(a, &damage) < 0))
		return error_no_memory(err, "the name of the format");
	return 0;
}

static int stream_source_probe(const unsigned char *head, size_t n,
			       const char *path)
{
	(void)path;
	return stream_probe(head, n) ? 80 : 0;
}

static int stream_open(const struct source_args *a, struct source **out,
		       struct error *err)
{
	return archive_open(&archive_stream, a, out, err);
}

const struct source_ops source_stream = {
	.name = "compressed",
	.summary = "gzip, bzip2, xz, zstd and lz4, of a tar or of one file",
	.archive = &archive_stream,
	.probe = stream_source_probe,
	.open = stream_open,
	.about = archive_about,
	.verify = archive_verify,
	.usage = archive_usage,
	.close = archive_close,
};

const struct archive_kind archive_stream = {
	.ops = &source_stream,
	.maker = TAR_MAKER ", stream 1",
	.scan = stream_kind_scan,
	.sections = stream_sections,
	.load = stream_load,
};
