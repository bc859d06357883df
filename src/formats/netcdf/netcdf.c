/* SPDX-License-Identifier: BSD-2-Clause */
/* Source: a netCDF-3 file, whose variables are shown in place. */
/*
 * The data of a variable without records are one range of the file.  Those of a variable
 * with records are pieces at equal distances.  Short pieces are gathered, many to a chunk;
 * longer ones are a chunk each, which is not compressed.  Where pieces are so long that
 * one should not be in the cache as a whole, each is a part of the array: a range of the
 * file again.
 */
#include "formats/netcdf/netcdf.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/arrays.h"
#include "formats/group_files.h"
#include "formats/netcdf/header.h"

/* Bytes of a header that are read at first. */
#define HEAD_BYTES (UINT64_C(64) << 10)
/* Pieces of at least so many bytes are chunks, or parts. */
#define CHUNK_BYTES 4096
#define PART_BYTES (UINT64_C(1) << 20)
/* Bytes of a chunk that is gathered, and of the range of the file that is read at once. */
#define GATHERED_BYTES (UINT64_C(64) << 10)
#define SPAN_BYTES (UINT64_C(1) << 20)
#define GATHERED "tensorfs: gathered from records"

struct netcdf_source {
	struct arrays arrays; /* first member */
	struct netcdf file;
	unsigned char *head; /* all bytes of the header */
};

/* What the array of a variable knows. */
struct netcdf_own {
	const struct netcdf_variable *v;
	struct recode recode; /* from stored elements to served ones */
	uint64_t pieces;      /* records in a chunk */
};

static const struct netcdf_source *netcdf_of(const struct array *a)
{
	return (const struct netcdf_source *)a->source;
}

/* ---- records ------------------------------------------------------------- */

/* Describe one record's piece of an array that has a part for each. */
static int netcdf_learn(struct array *a, uint32_t part,
			struct array_layout *out, struct error *err)
{
	const struct netcdf_source *s = netcdf_of(a);
	const struct netcdf_own *own = a->own;

	(void)err;
	out->kind = ARRAY_LINEAR;
	out->file = s->arrays.file;
	out->stored = own->v->dtype;
	out->pos = own->v->begin + part * s->file.distance;
	out->shape[0] = 1;
	for (unsigned i = 1; i < a->t.rank; i++)
		out->shape[i] = a->t.shape[i];
	return 0;
}

static int netcdf_locate(struct array *a, uint32_t part, const struct grid *g,
			 uint64_t first, uint32_t n, struct location *out,
			 struct error *err)
{
	const struct netcdf_own *own = a->own;
	uint64_t distance = netcdf_of(a)->file.distance;

	(void)part;
	(void)g;
	(void)err;
	for (uint32_t i = 0; i < n; i++)
		out[i] = (struct location){.pos = own->v->begin +
						  (first + i) * distance,
					   .stored = own->v->bytes};
	return 0;
}

/* Read `n` pieces from record `record` on, and put them side by side. */
static int netcdf_gather(struct array *a, uint64_t record, uint64_t n,
			 unsigned char *out, struct error *err)
{
	const struct netcdf_own *own = a->own;
	uint64_t distance = netcdf_of(a)->file.distance;
	uint64_t bytes = own->v->bytes, most, now;
	cleanup_free unsigned char *span = NULL;
	uint32_t file = a->t.parts[0].file;
	int r = 0;

	most = max_u64(min_u64(SPAN_BYTES / distance, n), 1);
	span = malloc((most - 1) * distance + bytes);
	if (!span)
		return error_no_memory(err, "records of a variable");
	for (; r == 0 && n; n -= now, record += now) {
		now = min_u64(n, most);
		r = handles_read(a->t.handles, file,
				 own->v->begin + record * distance, span,
				 (now - 1) * distance + bytes, err);
		for (uint64_t i = 0; r == 0 && i < now; i++, out += bytes)
			memcpy(out, span + i * distance, bytes);
	}
	return r;
}

static int netcdf_make(struct array *a, uint32_t part, const struct grid *g,
		       uint64_t chunk, void *out, size_t size,
		       struct error *err)
{
	const struct netcdf_own *own = a->own;
	uint64_t record = chunk * own->pieces;
	uint64_t n = min_u64(own->pieces, g->shape[0] - record);
	uint64_t bytes = n * own->v->bytes;
	int r = netcdf_gather(a, record, n, out, err);

	(void)part;
	if (r < 0)
		return r;
	memset((unsigned char *)out + bytes, 0, size - bytes);
	recode_run(&own->recode, out, out, bytes / own->recode.from);
	return 0;
}

static bool netcdf_origin(const struct array *a, uint32_t part, FILE *out)
{
	const struct netcdf_own *own = a->own;

	(void)part;
	return fprintf(out,
		       "the first axis is records, %" PRIu64
		       " bytes apart, from byte %" PRIu64,
		       netcdf_of(a)->file.distance, own->v->begin) > 0;
}

/* ---- attributes, names of axes ------------------------------------------- */

static json_t *netcdf_array_attributes(const struct array *a)
{
	const struct netcdf_source *s = netcdf_of(a);
	const struct netcdf_own *own = a->own;

	return netcdf_attributes(s->head, &s->file, own->v->attributes);
}

/* Axes have the names of dimensions: [{"name": "time"}, {"name": "y"}]. */
static json_t *netcdf_array_about(const struct array *a)
{
	const struct netcdf_own *own = a->own;
	json_t *axes = json_array();

	for (uint64_t i = 0; i < own->v->rank; i++) {
		const char *name = own->v->dims[i]->name;
		json_t *text = json_text(name, strlen(name));

		if (json_array_append_new(
			    axes, json_pack("{s:o}", "name", text)) < 0) {
			json_decref(axes);
			return NULL;
		}
	}
	return json_pack("{s:o}", "axes", axes);
}

/* The file's own attributes are the xattr "attrs" of its directory. */
static char *netcdf_file_attributes(void *source, uint32_t file,
				    const char *object, struct error *err)
{
	const struct netcdf_source *s = source;
	json_t *o = netcdf_attributes(s->head, &s->file, s->file.attributes);
	char *text = o ? json_exact(o, JSON_COMPACT) : NULL;

	(void)file;
	(void)object;
	json_decref(o);
	if (!text)
		error_no_memory(err, "the attributes of the file");
	return text;
}

/* ---- one variable -------------------------------------------------------- */

static void netcdf_free_own(struct array *a)
{
	free(a->own);
}

static const struct array_ops netcdf_ops = {
	.learn = netcdf_learn,
	.locate = netcdf_locate,
	.make = netcdf_make,
	.origin = netcdf_origin,
	.attributes = netcdf_array_attributes,
	.about = netcdf_array_about,
	.free = netcdf_free_own,
};

/* Return 0 if all data of a variable lie in the file, else -EBADMSG. */
static int netcdf_check_end(const struct netcdf_source *s,
			    const struct netcdf_variable *v, struct error *err)
{
	uint64_t n = v->record ? s->file.records : 1, end = 0;

	if (v->too_large ||
	    (n &&
	     (mul_overflows(n - 1, v->record ? s->file.distance : 0, &end) ||
	      add_overflows(end, v->bytes, &end) ||
	      add_overflows(end, v->begin, &end))))
		return error_set(err, -EBADMSG,
				 "its shape is too large for any file: is the "
				 "header damaged?");
	if (end > s->arrays.size)
		return error_set(err, -EBADMSG,
				 "its data end at byte %" PRIu64
				 " of a file that has %" PRIu64 ": truncated?",
				 end, s->arrays.size);
	return 0;
}

/* Describe how the pieces of `n` records are stored that are neither one range nor parts. */
static void netcdf_chunks(struct netcdf_own *own, uint64_t n,
			  struct array_layout *l)
{
	own->pieces = 1;
	l->kind = ARRAY_CHUNKED;
	if (own->v->bytes < CHUNK_BYTES) {
		own->pieces = min_u64(GATHERED_BYTES / own->v->bytes, n);
		l->kind = ARRAY_MADE;
		l->maker = GATHERED;
	}
	l->chunk[0] = own->pieces;
}

/* Make the list of parts, one for each record. */
static int netcdf_parts(const struct netcdf_source *s,
			const struct netcdf_variable *v, uint64_t n,
			struct array_part **out, struct error *err)
{
	if (n > TENSOR_PARTS_MAX)
		return error_set(err, -ENOTSUP,
				 "it has too many records: %" PRIu64, n);
	*out = calloc(n, sizeof **out);
	if (!*out)
		return error_no_memory(err, "the records of a variable");
	for (uint64_t i = 0; i < n; i++)
		(*out)[i] = (struct array_part){s->arrays.file, v->name, 1};
	return 0;
}

/* Make the array of a variable whose data netcdf_check_end has accepted.  `spec` has an
 * owner from array_new on. */
static int netcdf_place(struct netcdf_source *s, struct netcdf_own *own,
			struct array_spec *spec, struct array **out,
			struct error *err)
{
	const struct netcdf_variable *v = own->v;
	struct array_layout l = {.kind = ARRAY_LINEAR,
				 .file = s->arrays.file,
				 .stored = v->dtype};
	cleanup_free struct array_part *parts = NULL;
	uint64_t n = v->record ? s->file.records : 1;
	int r = 0;

	/* The place of data that there are none of may be behind the end of the file. */
	l.pos = n ? v->begin : 0;
	for (uint64_t i = 0; i < v->rank; i++)
		l.shape[i] = l.chunk[i] = v->dims[i]->length;
	memcpy(spec->shape, l.shape, sizeof l.shape);
	spec->layout = &l;
	if (n > 1 && v->bytes < s->file.distance) {
		if (v->bytes < PART_BYTES) {
			netcdf_chunks(own, n, &l);
		} else {
			r = netcdf_parts(s, v, n, &parts, err);
			spec->layout = NULL;
			spec->parts = parts;
			spec->nparts = (uint32_t)n;
		}
	}
	if (r < 0) {
		free(own);
		return r;
	}
	spec->own = own;
	return array_new(&s->arrays, spec, out, err);
}

static int netcdf_array(struct netcdf_source *s,
			const struct netcdf_variable *v, struct array **out,
			struct error *err)
{
	struct array_spec spec = {.name = v->name,
				  .stored = v->dtype,
				  .rank = (unsigned)v->rank,
				  .ops = &netcdf_ops};
	struct netcdf_own *own;
	struct dtype served;
	int r = netcdf_check_end(s, v, err);

	if (r == 0 && v->rank > RANK_MAX)
		r = error_set(err, -ENOTSUP, "it has more than %d axes",
			      RANK_MAX);
	if (r < 0)
		return r;
	own = calloc(1, sizeof *own);
	if (!own || !arrays_served(&s->arrays, &v->dtype, &served) ||
	    !dtype_recode(&v->dtype, &served, NULL, &own->recode)) {
		free(own);
		return error_no_memory(err, "the array of a variable");
	}
	own->v = v;
	return netcdf_place(s, own, &spec, out, err);
}

/* A variable that cannot be shown is listed, and its info.json says why. */
static int netcdf_publish_variable(struct netcdf_source *s,
				   const struct source_args *a,
				   const struct netcdf_variable *v,
				   struct error *err)
{
	struct error why = {.code = 0};
	struct array *array;
	int r = netcdf_array(s, v, &array, &why);

	if (r == -ENOTSUP || r == -EBADMSG)
		return array_publish_not(&s->arrays, a->tree, a->dir, v->name,
					 &why, err);
	if (r < 0)
		return error_set(err, r, "\"%.80s\": %s", v->name, why.text);
	return array_publish(a->tree, a->dir, v->name, array, NULL, err);
}

/* ---- the source ---------------------------------------------------------- */

/* Read as much of the file as its header takes, and parse it. */
static int netcdf_read_header(struct netcdf_source *s, struct error *err)
{
	uint64_t n = min_u64(s->arrays.size, HEAD_BYTES);
	int r;

	for (;; n = min_u64(s->arrays.size, 4 * n)) {
		if (n > NETCDF_HEADER_MOST)
			return error_set(err, -ENOTSUP,
					 "its header has more than 64 MiB");
		free(s->head);
		s->head = malloc(n ? n : 1);
		if (!s->head)
			return error_no_memory(err, "the header of the file");
		r = arrays_read(&s->arrays, 0, s->head, n, err);
		if (r == 0)
			r = netcdf_read(s->head, n, s->arrays.size, &s->file,
					err);
		if (r <= 0)
			return r;
	}
}

static int netcdf_publish(struct arrays *arrays, const struct source_args *a,
			  struct error *err)
{
	struct netcdf_source *s = (struct netcdf_source *)arrays;
	struct files *f;
	int r = netcdf_read_header(s, err);
	void *kept;

	if (r < 0)
		return r;
	kept = realloc(s->head, s->file.size);
	s->head = kept ? kept : s->head;
	f = group_files_new(netcdf_file_attributes, s, arrays->file, "",
			    arrays->mtime);
	if (!f)
		return error_no_memory(err, "the attributes of the file");
	tree_set_files(a->tree, a->dir, f);
	for (size_t i = 0; r == 0 && i < s->file.vars.n; i++)
		r = netcdf_publish_variable(s, a, &s->file.vars.at[i], err);
	return r;
}

static int netcdf_probe(const unsigned char *head, size_t n, const char *path)
{
	(void)path;
	return n >= 4 && !memcmp(head, "CDF", 3) &&
			       (head[3] == 1 || head[3] == 2 || head[3] == 5)
		       ? 100
		       : 0;
}

static const char *netcdf_format(const struct source *source)
{
	switch (((const struct netcdf_source *)source)->file.version) {
	case 1:
		return "netCDF-3 classic";
	case 2:
		return "netCDF-3 64-bit offset";
	default:
		return "netCDF-3 64-bit data";
	}
}

static void netcdf_close(struct source *source)
{
	struct netcdf_source *s = (struct netcdf_source *)source;

	netcdf_free(&s->file);
	free(s->head);
	arrays_end(&s->arrays);
	free(s);
}

static int netcdf_open(const struct source_args *a, struct source **out,
		       struct error *err)
{
	return arrays_open(&source_netcdf, sizeof(struct netcdf_source),
			   netcdf_publish, a, out, err);
}

const struct source_ops source_netcdf = {
	.name = "netcdf",
	.summary = "netCDF-3 files, also with 64-bit offsets and data (.nc)",
	.probe = netcdf_probe,
	.open = netcdf_open,
	.format = netcdf_format,
	.usage = arrays_usage,
	.close = netcdf_close,
};
