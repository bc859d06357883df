/* SPDX-License-Identifier: BSD-2-Clause */
/* Source: the files of a directory as one tensor, side by side along an axis. */
/*
 * This file joins .npy files; formats/hdf5/concat.c joins HDF5 files.  The headers are
 * read once, when the directory is mounted.  Each file is a part, and its bytes are read
 * in place.  Parts are ordered by the files' names, numbers in them by value: part-2.npy
 * is before part-10.npy.
 */
#include "formats/registry/concat.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/number.h"
#include "formats/concat_names.h"
#include "formats/hdf5/hdf5.h"
#include "formats/numpy/npy.h"
#include "views/view.h"

/* Most records for fields/, which needs one for each field of each part. */
#define FIELD_PARTS_MAX (UINT64_C(1) << 20)

/* Where a part's elements are in its file. */
struct place {
	uint64_t pos; /* of the first element, in bytes */
	bool turned;
};
struct joined {
	unsigned rank; /* of the files */
	struct recode recode;
	const struct place *at; /* one for each part; the source keeps them */
};
/* State while the headers are read. */
struct reading {
	struct arrays *s;
	const char *path;
	struct npy_file first;
	unsigned axis;
	uint64_t total; /* elements along the axis */
	uint32_t n;     /* parts */
	struct place *places;
	const struct place *kept; /* a copy that the source keeps */
	struct array_part *parts;
	unsigned char *head; /* room for a header */
	struct error *err;
};

/* ---- the array ----------------------------------------------------------- */

static int joined_learn(struct array *a, uint32_t part,
			struct array_layout *out, struct error *err)
{
	const struct joined *j = a->own;
	struct npy_file f = {.rank = j->rank};

	(void)err;
	f.dtype = out->stored = a->t.stored;
	memcpy(f.shape, a->t.shape, a->t.rank * sizeof *f.shape);
	f.shape[a->axis] = a->along[part];
	memcpy(out->shape, f.shape, sizeof f.shape); /* a field's axes, too */
	out->file = a->t.parts[part].file;
	out->pos = j->at[part].pos;
	out->kind = j->at[part].turned ? ARRAY_MADE : ARRAY_LINEAR;
	if (!j->at[part].turned)
		return 0;
	out->maker = NPY_TRANSPOSED;
	npy_fortran_chunk(&f, out->chunk);
	npy_field_axes(a->t.field, f.rank, out->chunk);
	return 0;
}

static int joined_make(struct array *a, uint32_t part, const struct grid *g,
		       uint64_t chunk, void *out, size_t size,
		       struct error *err)
{
	const struct joined *j = a->own;
	const struct npy_transposed t = {.file = a->t.parts[part].file,
					 .pos = j->at[part].pos,
					 .rank = j->rank,
					 .recode = &j->recode};

	return npy_transpose(a->t.handles, &t, g, chunk, out, size, err);
}

static bool joined_origin(const struct array *a, uint32_t part, FILE *out)
{
	const struct joined *j = a->own;

	return fprintf(out, "from byte %" PRIu64, j->at[part].pos) > 0;
}

static void joined_free(struct array *a)
{
	free(a->own);
}

static const struct array_ops joined_ops = {
	.learn = joined_learn,
	.make = joined_make,
	.origin = joined_origin,
	.free = joined_free,
};

/* ---- the parts ----------------------------------------------------------- */

static int concat_read_header(struct reading *rd, uint32_t file,
			      struct npy_file *f, struct error *err)
{
	struct handle h;
	uint64_t size;
	size_t n;
	int r = handles_get(rd->s->handles, file, &h, err);

	if (r < 0)
		return r;
	size = h.size;
	handles_put(rd->s->handles, &h);
	n = (size_t)min_u64(size, NPY_HEADER_MOST);
	r = handles_read(rd->s->handles, file, 0, rd->head, n, err);
	if (r == 0)
		r = npy_read(rd->head, n, &rd->s->intern, f, err);
	if (r == 0 && (f->data > size || f->bytes > size - f->data))
		r = error_set(err, -EBADMSG,
			      "its header promises %" PRIu64
			      " bytes of data, but it has %" PRIu64
			      " in all: truncated?",
			      f->bytes, size);
	return r;
}

/* Refuse a part of another type.  Long types are shown from the first difference on. */
static int other_type(const struct dtype *d, const struct dtype *first,
		      struct error *err)
{
	cleanup_free char *is = tensor_descr_text(d);
	cleanup_free char *was = tensor_descr_text(first);
	size_t at = 0;

	if (!is || !was)
		return error_no_memory(err, "the types of the files");
	while (is[at] && is[at] == was[at])
		at++;
	while (at && is[at] != '(')
		at--;
	return error_set(
		err, -EINVAL,
		"its type is %s%.100s, but that of the first file is %s%.100s",
		at ? "..." : "", is + at, at ? "..." : "", was + at);
}

/* Return -EINVAL unless a part is like the first one but for its length along the
 * axis. */
static int concat_compare_part(const struct reading *rd,
			       const struct npy_file *f, struct error *err)
{
	char a[400], b[400];
	bool same = f->rank == rd->first.rank;

	if (!dtype_equal(&f->dtype, &rd->first.dtype))
		return other_type(&f->dtype, &rd->first.dtype, err);
	for (unsigned i = 0; same && i < f->rank; i++)
		same = i == rd->axis || f->shape[i] == rd->first.shape[i];
	if (same)
		return 0;
	dtype_shape_text(f->shape, f->rank, a, sizeof a);
	dtype_shape_text(rd->first.shape, rd->first.rank, b, sizeof b);
	return error_set(err, -EINVAL,
			 "its shape is %s, but that of the first file is %s: "
			 "they may differ along axis %u only",
			 a, b, rd->axis);
}

static int concat_check_axis(struct reading *rd, int axis, struct error *err)
{
	unsigned rank = rd->first.rank;

	if (axis < 0)
		axis += (int)rank;
	if (axis < 0 || axis >= (int)rank)
		return error_set(err, SOURCE_USAGE,
				 "concat=: arrays of %u axes have no such axis",
				 rank);
	rd->axis = (unsigned)axis;
	return 0;
}

static int concat_read_part(struct reading *rd, int axis, uint32_t i,
			    const char *name)
{
	struct array_part *part = &rd->parts[i];
	cleanup_free char *path = NULL;
	struct npy_file f;
	int r;

	if (asprintf(&path, "%s/%s", rd->s->path, name) < 0) {
		path = NULL;
		return error_no_memory(rd->err, "the path of a file");
	}
	part->file = handles_add(rd->s->handles, path);
	part->name = "array";
	if (part->file == UINT32_MAX)
		return error_no_memory(rd->err, "the table of files");
	r = concat_read_header(rd, part->file, &f, rd->err);
	if (r == 0 && i == 0) {
		rd->first = f;
		r = concat_check_axis(rd, axis, rd->err);
	}
	if (r == 0)
		r = concat_compare_part(rd, &f, rd->err);
	if (r < 0) {
		if (!strstr(rd->err->text, path))
			error_prefix(rd->err, "%s: ", path);
		return r;
	}
	part->n = f.shape[rd->axis];
	rd->places[i] = (struct place){f.data, npy_is_transposed(&f)};
	if (add_overflows(rd->total, part->n, &rd->total))
		return error_set(rd->err, -ENOTSUP, "it is too large");
	return 0;
}

/* Make the array of the files, or of a field of their elements. */
static int concat_make_array(void *ctx, const struct dtype_field *field,
			     const char *name, struct array **out,
			     struct error *err)
{
	const struct reading *rd = ctx;
	struct array_spec spec = {
		.name = name,
		.axis = rd->axis,
		.nparts = rd->n,
		.parts = rd->parts,
		.ops = &joined_ops,
	};
	struct joined *own;
	int r;

	if (!npy_shape(&rd->first, field, &spec))
		return error_set(err, -ENOTSUP, "it has more than %d axes",
				 RANK_MAX);
	spec.shape[rd->axis] = rd->total;
	own = malloc(sizeof *own);
	if (!own)
		return error_no_memory(err, "the joined array");
	own->at = rd->kept;
	own->rank = rd->first.rank;
	r = npy_recode(rd->s, &rd->first.dtype, field, &own->recode, err);
	if (r < 0) {
		free(own);
		return r;
	}
	spec.own = own;
	return array_new(rd->s, &spec, out, err);
}

static int concat_read_parts(struct reading *rd, int axis,
			     struct dirent *const *names)
{
	int r = 0;

	rd->places = calloc(rd->n, sizeof *rd->places);
	rd->parts = calloc(rd->n, sizeof *rd->parts);
	rd->head = malloc(NPY_HEADER_MOST);
	if (!rd->places || !rd->parts || !rd->head)
		r = error_no_memory(rd->err, "the headers of the files");
	for (uint32_t i = 0; r == 0 && i < rd->n; i++)
		r = concat_read_part(rd, axis, i, names[i]->d_name);
	if (r == 0) {
		rd->kept = intern_bytes(&rd->s->intern, rd->places,
					rd->n * sizeof *rd->places);
		r = rd->kept ? 0
			     : error_no_memory(rd->err, "the table of parts");
	}
	return r;
}

/* ---- the source ---------------------------------------------------------- */

static int concat_publish_all(struct reading *rd, const struct source_args *a,
			      struct error *err)
{
	struct array *array;
	uint32_t dir;
	int r = concat_make_array(rd, NULL, "/data", &array, err);

	if (r == 0)
		r = array_publish(a->tree, a->dir, "data", array, &dir, err);
	if (r == 0 &&
	    (uint64_t)rd->first.dtype.nfields * rd->n > FIELD_PARTS_MAX) {
		log_warn("%s: fields/ is not shown: %u fields in %u files are "
			 "too many",
			 rd->path, rd->first.dtype.nfields, rd->n);
		return 0;
	}
	return r < 0 ? r
		     : npy_fields(rd->s, a->tree, dir, "/data",
				  &rd->first.dtype, concat_make_array, rd, err);
}

static int concat_publish(struct arrays *s, const struct source_args *a,
			  struct error *err)
{
	struct reading rd = {.s = s, .path = a->path, .err = err};
	struct dirent **names = NULL;
	int n = concat_list(s->path, &names, err), r = n;

	if (n > 0) {
		rd.n = (uint32_t)n;
		r = concat_read_parts(&rd, a->concat, names);
	}
	concat_list_free(names, n);
	if (r == 0)
		r = concat_publish_all(&rd, a, err);
	free(rd.places);
	free(rd.parts);
	free(rd.head);
	return r;
}

static void concat_close(struct source *source)
{
	arrays_end((struct arrays *)source);
	free(source);
}

static int concat_probe(const unsigned char *head, size_t n, const char *path)
{
	(void)head;
	(void)n;
	(void)path;
	return 0;
}

static const struct source_ops source_concat = {
	.name = "concat",
	.summary = "directories of .npy files as one tensor (concat=)",
	.probe = concat_probe,
	.open = concat_open,
	.usage = arrays_usage,
	.close = concat_close,
};

static int open_npy(const struct source_args *a, struct source **out,
		    struct error *err)
{
	return arrays_open(&source_concat, sizeof(struct arrays),
			   concat_publish, a, out, err);
}

/* ---- which kind ---------------------------------------------------------- */

/* Check the names of a directory, and set *out to the format of its first file; NULL if
 * it is unknown. */
static int first_format(const struct source_args *a,
			const struct source_ops **out, struct error *err)
{
	const char *path = a->path;
	struct source_args one = *a;
	unsigned char head[SOURCE_HEAD];
	cleanup_free char *name = NULL;
	struct dirent **names = NULL;
	int n = concat_list(path, &names, err);
	cleanup_close int fd = -1;
	ssize_t got;
	int r;

	if (n < 0)
		return n;
	r = concat_check(path, names, n, err);
	if (r == 0 && asprintf(&name, "%s/%s", path, names[0]->d_name) < 0) {
		name = NULL;
		r = error_no_memory(err, "the path of a file");
	}
	concat_list_free(names, n);
	if (r < 0)
		return r;
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	got = fd < 0 ? -1 : read(fd, head, sizeof head);
	if (got < 0)
		return error_errno(err, -errno, "%s", name);
	one.path = name;
	*out = source_probe(head, (size_t)got, name);
	if (!*out)
		*out = source_probe_beyond(&one);
	return 0;
}

int concat_open(const struct source_args *a, struct source **out,
		struct error *err)
{
	const struct source_ops *ops = NULL;
	int r = first_format(a, &ops, err);

	*out = NULL;
	if (r < 0) {
		if (!strstr(err->text, a->path))
			error_prefix(err, "%s: ", a->path);
		return r;
	}
	if (ops && ops->flags & SOURCE_JOINS)
		return ops->open(a, out, err);
	if (a->dataset)
		return error_set(err, SOURCE_USAGE,
				 "%s: dataset= is for HDF5 files", a->path);
	return open_npy(a, out, err);
}
