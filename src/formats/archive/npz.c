/* SPDX-License-Identifier: BSD-2-Clause */
/* Source: a .npz is a zip whose members NAME.npy are shown as tensors, too. */
/*
 * Members are shown as files, as those of any zip; for NAME.npy there is also the
 * directory NAME/ with the views of the array.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "formats/archive/archive.h"
#include "formats/numpy/npy.h"
#include "formats/numpy/npy_member.h"

/* Members that are shown as tensors at most: the header of each is read when the
 * .npz is opened. */
#define ARRAYS_MAX 10000
#define PATH_ROOM 1024

/* ---- one member ---------------------------------------------------------- */

struct of_member {
	struct arrays *s;
	struct npy_member m;
};

static int make_npz_field(void *ctx, const struct dtype_field *field,
			  const char *name, struct array **out,
			  struct error *err)
{
	const struct of_member *x = ctx;

	return npy_member_array(x->s, &x->m, field, name, out, err);
}

/* Publish one member.  If it is not an array, or cannot be shown as one, it is
 * listed with the reason. */
static int publish_npz_member(struct archive *a, const struct source_args *args,
			      uint64_t record, const char *name,
			      struct error *err)
{
	const struct member_record *r = &a->members.at[record];
	struct backing b = volume_range(&a->volume, r->data, r->size);
	struct of_member x = {.s = a->arrays};
	struct error why = {0};
	struct array *array;
	uint32_t dir;
	int e = npy_member_read(a->arrays, &b, &x.m, &why);

	if (e == 0)
		e = npy_member_array(a->arrays, &x.m, NULL, name, &array, &why);
	if (e == 0) {
		e = array_publish(args->tree, args->dir, name, array, &dir,
				  err);
		return e < 0 ? e
			     : npy_fields(a->arrays, args->tree, dir, name,
					  &x.m.file.dtype, make_npz_field, &x,
					  err);
	}
	if (e == -ENOMEM) {
		*err = why;
		return e;
	}
	log_warn("%s: %s.npy: %s", a->path, name, why.text);
	return array_publish_not(a->arrays, args->tree, args->dir, name, &why,
				 err);
}

/* Set `name` to "a" for member "a.npy"; '/' in a path becomes ':'.  Return false if
 * it is not a .npy file. */
static bool npz_array_name(const struct archive *a, uint64_t record,
			   char name[PATH_ROOM])
{
	const struct member_record *r = &a->members.at[record];
	char path[PATH_ROOM];
	size_t n;

	members_path(&a->members, record, path, sizeof path);
	n = strlen(path);
	if (r->kind != MEMBER_RANGE || n < 6 || n >= FILES_NAME_MAX ||
	    strcasecmp(path + n - 4, ".npy") != 0)
		return false;
	memcpy(name, path + 1, n - 5);
	name[n - 5] = '\0';
	for (char *p = name; *p; p++)
		if (*p == '/')
			*p = ':';
	return true;
}

static int publish_npz_arrays(struct archive *a, const struct source_args *args,
			      struct error *err)
{
	unsigned n = 0;
	int r = 0;

	for (uint64_t i = 1; i < a->members.n && r == 0; i++) {
		char name[PATH_ROOM];
		uint64_t other;

		if (!npz_array_name(a, i, name))
			continue;
		if (members_find(&a->members, 0, name, &other) == 0) {
			log_warn("%s: %s.npy is shown as a file only, because "
				 "another member is named %s",
				 a->path, name, name);
			continue;
		}
		if (n++ == ARRAYS_MAX) {
			log_warn("%s: only the first %u arrays have views; the "
				 "others are shown as files only",
				 a->path, ARRAYS_MAX);
			break;
		}
		r = publish_npz_member(a, args, i, name, err);
	}
	return r;
}

/* ---- the source ---------------------------------------------------------- */

static int begin_npz_arrays(struct archive *a, const struct source_args *args,
			    struct error *err)
{
	struct arrays *s = calloc(1, sizeof *s);

	a->arrays = s;
	if (!s)
		return error_no_memory(err, "the arrays of the file");
	s->source = a->source;
	intern_init(&s->intern);
	s->handles = args->handles;
	s->views = args->views;
	s->file = a->stored.file;
	s->size = a->stored.pos + a->stored.size;
	s->mtime = a->mtime;
	s->path = strdup(a->path);
	return s->path ? 0 : error_no_memory(err, "the path of the file");
}

static void npz_close(struct source *source)
{
	struct archive *a = (struct archive *)source;

	if (a && a->arrays) {
		arrays_end(a->arrays);
		free(a->arrays);
	}
	archive_close(source);
}

static int npz_open(const struct source_args *args, struct source **out,
		    struct error *err)
{
	struct archive *a;
	int r = archive_open(source_npz.archive, args, out, err);

	if (r < 0 || (args->archive && args->archive->subdir))
		return r;
	a = (struct archive *)*out;
	r = begin_npz_arrays(a, args, err);
	if (r == 0)
		r = publish_npz_arrays(a, args, err);
	if (r < 0) {
		error_prefix(err, "%s: ", args->path);
		npz_close(*out);
		*out = NULL;
	}
	return r;
}

/* Only the suffix of its name tells a .npz from another zip. */
static int npz_probe(const unsigned char *head, size_t n, const char *path)
{
	size_t len = strlen(path);
	int zip = zip_probe(head, n);

	return zip && len > 4 && !strcasecmp(path + len - 4, ".npz") ? zip + 5
								     : 0;
}

/* A .npz is a zip in all but the arrays made of its members. */
static const struct archive_kind archive_npz = {
	.ops = &source_npz,
	.maker = ZIP_MAKER,
	.format = "npz (zip)",
	.scan = archive_zip_scan,
	.sections = archive_zip_sections,
	.load = archive_zip_load,
};

const struct source_ops source_npz = {
	.name = "npz",
	.summary = "NumPy arrays in a zip (.npz)",
	.archive = &archive_npz,
	.probe = npz_probe,
	.open = npz_open,
	.about = archive_about,
	.verify = archive_verify,
	.usage = archive_usage,
	.close = npz_close,
};
