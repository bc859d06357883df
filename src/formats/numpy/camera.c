/* SPDX-License-Identifier: BSD-2-Clause */
/* Sources: .blo, .tvips, .mib and .seq, whose frames are samples of a tensor. */
/*
 * Frames are shown in place.  A .tvips continues in further files, NAME_001.tvips
 * next to NAME_000.tvips, which have no headers of their own: each is a part.  A
 * .blo with fewer frames than its header says (the scan was stopped) is refused.
 */
#include "formats/numpy/camera.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/number.h"
#include "base/vec.h"
#include "formats/numpy/frames.h"

/* Files of one .tvips at most: their numbers have three digits. */
#define FILES_MAX 1000

static const struct source_ops *const formats[] = {[CAMERA_BLO] = &source_blo,
						   [CAMERA_TVIPS] =
							   &source_tvips,
						   [CAMERA_MIB] = &source_mib,
						   [CAMERA_SEQ] = &source_seq};

struct opening {
	struct arrays *s;
	const struct source_args *a;
	struct camera_header h;
	vec(struct frames_part) parts;
	uint64_t frames;
	struct error *err;
};

/* Check what the first record and the last one begin with. */
static int check_marks(struct opening *o, uint32_t file, uint64_t first,
		       uint64_t n)
{
	const uint64_t at[] = {0, n - 1};
	size_t len = o->h.mark ? strlen(o->h.mark) : 0;
	char mark[8];

	for (unsigned i = 0; len && i < 2; i++) {
		int r = handles_read(o->s->handles, file,
				     first + at[i] * o->h.record, mark, len,
				     o->err);

		if (r < 0)
			return r;
		if (memcmp(mark, o->h.mark, len) != 0)
			return error_set(o->err, -EBADMSG,
					 "where frame %" PRIu64
					 " should begin there is no frame: "
					 "damaged, or frames of several sizes",
					 at[i]);
	}
	return 0;
}

/* Add the frames of a file of `size` bytes, whose records begin at `first`. */
static int add_camera_part(struct opening *o, uint32_t file, uint64_t size,
			   uint64_t first)
{
	struct frames_part p = {
		.file = file, .pos = first + o->h.skip, .stride = o->h.record};
	int r = frames_count(size, first, o->h.record, false, &p.n, o->err);

	if (r == 0)
		r = check_marks(o, file, first, p.n);
	if (r < 0)
		return r;
	o->frames += p.n;
	return vec_push(&o->parts, p)
		       ? 0
		       : error_no_memory(o->err, "the list of files");
}

/* Return where the digits of "NAME_000.tvips" are, or NULL if it has none. */
static char *part_digits(char *path)
{
	size_t n = strlen(path);
	char *at = n > 10 ? path + n - 10 : NULL;

	return at && at[0] == '_' && at[4] == '.' &&
			       strspn(at + 1, "0123456789") == 3
		       ? at + 1
		       : NULL;
}

static void set_part_digits(char *digits, unsigned i)
{
	digits[0] = (char)('0' + i / 100);
	digits[1] = (char)('0' + i / 10 % 10);
	digits[2] = (char)('0' + i % 10);
}

/* Report a file that is missing if one with a larger number exists. */
static int check_missing_part(struct opening *o, char *path, char *digits,
			      unsigned missing)
{
	struct stat st;

	for (unsigned i = missing + 1; i < FILES_MAX; i++) {
		set_part_digits(digits, i);
		if (stat(path, &st) < 0)
			continue;
		set_part_digits(digits, missing);
		return error_set(
			o->err, -EBADMSG,
			"%s is missing, but a file with number %03u exists",
			path, i);
	}
	return 0;
}

static int add_further_part(struct opening *o, const char *path,
			    struct stat *st)
{
	uint32_t file = handles_add(o->s->handles, path);
	int r;

	if (file == UINT32_MAX)
		return error_no_memory(o->err, "the path of a file");
	handles_expect(o->s->handles, file, st);
	r = add_camera_part(o, file, (uint64_t)st->st_size, 0);
	if (r < 0)
		error_prefix(o->err, "%s: ", path);
	return r;
}

static int add_further_parts(struct opening *o)
{
	cleanup_free char *path = strdup(o->s->path);
	char *digits = path ? part_digits(path) : NULL;
	struct stat st;
	int r = path ? 0 : error_no_memory(o->err, "the path of the file");

	if (digits && memcmp(digits, "000", 3) != 0)
		return 0;
	for (unsigned i = 1; r == 0 && digits && i < FILES_MAX; i++) {
		set_part_digits(digits, i);
		if (stat(path, &st) < 0)
			return errno == ENOENT
				       ? check_missing_part(o, path, digits, i)
				       : error_errno(o->err, -errno, "%s",
						     path);
		r = add_further_part(o, path, &st);
	}
	return r;
}

/* Refuse a file that is not the first of several: only that has the header. */
static int check_first_part(struct opening *o)
{
	cleanup_free char *path = strdup(o->s->path);
	char *digits = path ? part_digits(path) : NULL;
	struct stat st;

	if (!digits || !memcmp(digits, "000", 3))
		return 0;
	set_part_digits(digits, 0);
	return stat(path, &st) < 0 ? 0
				   : error_set(o->err, -EINVAL,
					       "it continues other files: "
					       "mount the first of them, %s",
					       path);
}

/* Check that there is a frame for each position of the scan. */
static int check_scan_size(struct opening *o)
{
	uint64_t n = o->h.scan[0] * o->h.scan[1];

	if (o->frames < n)
		return error_set(
			o->err, -EBADMSG,
			"it has %" PRIu64
			" frames, but its header says %" PRIu64 " x %" PRIu64
			" positions: truncated, or the scan was stopped",
			o->frames, o->h.scan[0], o->h.scan[1]);
	return 0;
}

static int find_camera_frames(struct opening *o, enum camera_format format)
{
	unsigned char head[CAMERA_HEAD];
	size_t n = (size_t)min_u64(o->s->size, sizeof head);
	int r = arrays_read(o->s, 0, head, n, o->err);

	if (r == 0 && format == CAMERA_TVIPS && !o->a->inside)
		r = check_first_part(o);
	if (r == 0)
		r = camera_read(format, head, n, &o->h, o->err);
	if (r == 0)
		r = add_camera_part(o, o->s->file, o->s->size, o->h.first);
	if (r == 0 && format == CAMERA_TVIPS && !o->a->inside)
		r = add_further_parts(o);
	if (r == 0 && o->frames < o->h.frames)
		log_warn("%s: it has %" PRIu64
			 " frames, but its header says %" PRIu64
			 ": truncated, or the recording was stopped",
			 o->s->path, o->frames, o->h.frames);
	return r == 0 && o->h.scan[0] ? check_scan_size(o) : r;
}

static int publish_camera_frames(struct opening *o, enum camera_format format)
{
	struct frames f = {.name = "/data"};
	struct array *array;
	int r = find_camera_frames(o, format);

	if (r < 0)
		return r;
	f.dtype = o->h.dtype;
	f.lead = o->h.scan[0] ? 2 : 1;
	f.rank = f.lead + 2;
	f.shape[0] = o->h.scan[0] ? o->h.scan[0] : o->frames;
	f.shape[f.lead - 1] = o->h.scan[0] ? o->h.scan[1] : o->frames;
	f.shape[f.lead] = o->h.height;
	f.shape[f.lead + 1] = o->h.width;
	f.parts = o->parts.at;
	f.nparts = (unsigned)o->parts.n;
	if (format == CAMERA_MIB)
		f.note = "rows are in the file's order; many readers show them "
			 "from the last one to the first";
	r = frames_array(o->s, &f, &array, o->err);
	return r < 0 ? r
		     : array_publish(o->a->tree, o->a->dir, "data", array, NULL,
				     o->err);
}

static void camera_close(struct source *source)
{
	arrays_end((struct arrays *)source);
	free(source);
}

static int camera_open(enum camera_format format, const struct source_args *a,
		       struct source **out, struct error *err)
{
	struct arrays *s = calloc(1, sizeof *s);
	struct opening o = {.s = s, .a = a, .err = err};
	int r;

	*out = NULL;
	if (!s)
		return error_no_memory(err, "the camera file");
	s->source.ops = formats[format];
	r = arrays_begin(s, a, err);
	if (r == 0)
		r = publish_camera_frames(&o, format);
	vec_free(&o.parts);
	if (r < 0) {
		if (!strstr(err->text, a->path))
			error_prefix(err, "%s: ", a->path);
		camera_close(&s->source);
		return r;
	}
	*out = &s->source;
	return 0;
}

/* ---- the formats --------------------------------------------------------- */

#define CAMERA(name_, format, words)                                      \
	static int name_##_probe(const unsigned char *head, size_t n,     \
				 const char *path)                        \
	{                                                                 \
		return camera_probe(format, head, n, path);               \
	}                                                                 \
	static int name_##_open(const struct source_args *a,              \
				struct source **out, struct error *err)   \
	{                                                                 \
		return camera_open(format, a, out, err);                  \
	}                                                                 \
	const struct source_ops source_##name_ = {.name = #name_,         \
						  .summary = words,       \
						  .probe = name_##_probe, \
						  .open = name_##_open,   \
						  .usage = arrays_usage,  \
						  .close = camera_close}

CAMERA(blo, CAMERA_BLO, "NanoMEGAS block files (.blo)");
CAMERA(tvips, CAMERA_TVIPS, "TVIPS streams, of several files (.tvips)");
CAMERA(mib, CAMERA_MIB, "Merlin frames (.mib)");
CAMERA(seq, CAMERA_SEQ, "Norpix sequences (.seq)");
