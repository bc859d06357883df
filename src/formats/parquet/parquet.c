/* SPDX-License-Identifier: BSD-2-Clause */
/* The source "parquet": each column is a tensor, decoded by row group. */
#include "formats/parquet/parquet.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "formats/arrays.h"
#include "formats/column_labels.h"
#include "formats/columns/unpack.h"
#include "formats/parquet/record.h"
#include "formats/suffix.h"

#define MAGIC "PAR1"
#define MAGIC_ENCRYPTED "PARE"
#define FOOTER_MOST (UINT32_C(256) << 20)

struct parquet {
	struct arrays arrays; /* first member */
	struct parquet_meta meta;
	struct column_labels labels;
};

/* ---- arrays --------------------------------------------------------------- */

static void parquet_part_layout(const struct parquet *s,
				const struct parquet_column *c, uint32_t part,
				uint64_t rows, struct array_layout *l)
{
	l->kind = ARRAY_MADE;
	l->maker = "tensorfs: from Parquet pages";
	l->file = s->arrays.file;
	l->stored = c->dtype;
	l->shape[0] = c->chunks[part].rows;
	l->chunk[0] = rows;
}

/* Return true if a part is decoded at once, whatever its pages are. */
static bool parquet_is_small(const struct parquet_column *c, uint32_t part)
{
	return c->text || c->chunks[part].rows <= PARQUET_PIECE / c->dtype.size;
}

static int parquet_array_learn(struct array *a, uint32_t part,
			       struct array_layout *out, struct error *err)
{
	const struct parquet_column *c = a->own;
	struct parquet_chunk *k = &c->chunks[part];
	const struct parquet_index *x;
	uint64_t rows = k->rows;
	int r = 0;

	if (!parquet_is_small(c, part)) {
		r = parquet_index(a->source, c, k, &x, err);
		if (r == 0 && x->wrong)
			r = error_set(err, -EBADMSG, "%s", x->wrong);
		rows = r == 0 ? x->piece : 0;
	}
	parquet_part_layout((struct parquet *)a->source, c, part, rows, out);
	return r;
}

static int parquet_array_make(struct array *a, uint32_t part,
			      const struct grid *g, uint64_t chunk, void *out,
			      size_t size, struct error *err)
{
	const struct parquet_column *c = a->own;
	struct parquet_making m = {
		out,  size, c->width, c->dtype.size, c->dtype.kind == DTYPE_INT,
		false};
	uint64_t first = chunk * g->chunk[0];
	uint64_t n = min_u64(g->chunk[0], c->chunks[part].rows - first);
	int r;

	m.left = n * m.size; /* the last chunk is shorter than the others */
	memset(m.out + m.left, 0, size - m.left);
	r = parquet_read(a, part, first, n, parquet_put_made, &m, err);
	if (r == 0 && m.left)
		r = error_set(err, -EBADMSG, "values are missing in it");
	if (r == 0 && m.odd)
		r = error_set(err, -EBADMSG,
			      "a number does not fit in the %zu bits that its "
			      "column has",
			      8 * m.size);
	return r;
}

struct telling {
	void (*put)(void *ctx, const char *s, size_t len);
	void *ctx;
};

static void parquet_hand_text(void *ctx, const unsigned char *v, size_t len)
{
	struct telling *t = ctx;

	t->put(t->ctx, (const char *)v, len);
}

static int
parquet_array_hand_values(struct array *a, uint32_t part, const struct box *b,
			  void (*put)(void *ctx, const char *s, size_t len),
			  void *ctx, struct error *err)
{
	const struct parquet_column *c = a->own;
	struct telling t = {put, ctx};

	return c->dtype.kind == DTYPE_RAGGED
		       ? parquet_read_lists(a, part, b->start[0], b->count[0],
					    parquet_hand_text, &t, err)
		       : parquet_read(a, part, b->start[0], b->count[0],
				      parquet_hand_text, &t, err);
}

static bool parquet_array_origin(const struct array *a, uint32_t part,
				 FILE *out)
{
	const struct parquet_column *c = a->own;
	const struct parquet *s = (const struct parquet *)a->source;
	const struct parquet_chunk *k = &c->chunks[part];

	return fprintf(out,
		       "column %td, %" PRIu64 " rows in bytes %" PRIu64
		       "+%" PRIu64,
		       c - s->meta.at, k->rows, k->pos, k->size) > 0;
}

static bool parquet_part_has_checksum(struct array *a, uint32_t part)
{
	return parquet_has_checksum(a->source, a->own, part);
}

static json_t *parquet_attributes(const struct array *a)
{
	return json_deep_copy(((struct parquet *)a->source)->meta.attributes);
}

static const struct array_ops parquet_ops = {.learn = parquet_array_learn,
					     .make = parquet_array_make,
					     .origin = parquet_array_origin,
					     .has_checksum =
						     parquet_part_has_checksum,
					     .attributes = parquet_attributes};
static const struct array_ops parquet_text_ops = {
	.learn = parquet_array_learn,
	.values = parquet_array_hand_values,
	.has_checksum = parquet_part_has_checksum,
	.attributes = parquet_attributes};

/* ---- the tree ------------------------------------------------------------- */

static int parquet_check_codec(int64_t codec, struct error *err)
{
	static const char *const names[] = {
		"nothing", "snappy", "gzip",
		"lzo",     "brotli", "lz4 in its deprecated framing",
		"zstd",    "raw lz4"};
	enum unpack how = parquet_unpack(codec);

	if (how != UNPACK_UNKNOWN && unpack_known(how))
		return 0;
	return error_set(err, -ENOTSUP,
			 "it is compressed with %s, which is not supported: "
			 "snappy, gzip, zstd and raw lz4 are",
			 codec >= 0 && codec < 8 ? names[codec]
						 : "an unknown codec");
}

static int parquet_check_column(const struct parquet_column *c,
				struct error *err)
{
	int r = 0;

	if (c->why_not)
		return error_set(err, -ENOTSUP, "%s", c->why_not);
	for (uint32_t i = 0; r == 0 && i < c->n_chunks; i++)
		r = parquet_check_codec(c->chunks[i].codec, err);
	return r;
}

static int parquet_new_array(struct parquet *s, struct parquet_column *c,
			     struct array **out, struct error *err)
{
	cleanup_free struct array_part *parts = NULL;
	struct array_layout l = {.kind = ARRAY_ABSENT};
	struct array_spec spec = {.stored = c->dtype,
				  .rank = 1,
				  .note = *c->note ? c->note : NULL,
				  .layout = &l,
				  .own = c};
	int r = parquet_check_column(c, err);

	if (r < 0)
		return r;
	spec.ops = c->text ? &parquet_text_ops : &parquet_ops;
	spec.text_bytes = c->dtype.kind == DTYPE_STRING ? 0
			  : c->n_chunks                 ? parquet_column_mean(c)
							: 0;
	spec.name = c->name;
	spec.shape[0] = s->meta.rows;
	l.stored = c->dtype;
	l.file = s->arrays.file;
	if (c->n_chunks == 1 && parquet_is_small(c, 0)) {
		parquet_part_layout(s, c, 0, c->chunks[0].rows, &l);
	} else if (c->n_chunks) {
		parts = calloc(c->n_chunks, sizeof *parts);
		if (!parts)
			return error_no_memory(
				err, "the table of a column's row groups");
		for (uint32_t i = 0; i < c->n_chunks; i++)
			parts[i] = (struct array_part){s->arrays.file, c->name,
						       c->chunks[i].rows};
		spec.layout = NULL;
		spec.parts = parts;
		spec.nparts = c->n_chunks;
	}
	return array_new(&s->arrays, &spec, out, err);
}

/* Return the column that shows a whole node, or NULL if the node has several columns, or
 * nulls that no array can show. */
static struct parquet_column *only_column(struct parquet *s,
					  const struct source_args *a,
					  const struct parquet_node *n)
{
	for (uint32_t i = n->leaf; i < n->leaf + n->leaves; i++) {
		struct parquet_column *c = &s->meta.at[i];
		size_t len;

		if (c->hidden || c->nested)
			continue;
		if (c->dtype.kind == DTYPE_STRING &&
		    suffix_named(a->views.ext, c->name, &len))
			parquet_column_as_blob(c);
		return c->nulls && c->dtype.kind != DTYPE_BLOB &&
				       c->dtype.kind != DTYPE_RAGGED
			       ? NULL
			       : c;
	}
	return NULL;
}

static int parquet_new_record(struct parquet *s, const struct parquet_node *n,
			      struct array **out, struct error *err)
{
	int r = 0;

	for (uint32_t i = n->leaf; r == 0 && i < n->leaf + n->leaves; i++)
		r = parquet_check_column(&s->meta.at[i], err);
	return r < 0 ? r
		     : parquet_record_new(&s->arrays, &s->meta, n, out, err);
}

/* Publish an element below the root. */
static int publish_node(struct parquet *s, const struct source_args *a,
			const struct parquet_node *n, struct error *err)
{
	struct parquet_column *c = only_column(s, a, n);
	struct error why = {.code = 0};
	struct array *array;
	int r = c ? parquet_new_array(s, c, &array, &why)
		  : parquet_new_record(s, n, &array, &why);

	if (r == 0 && c && c->dtype.kind == DTYPE_BLOB)
		r = suffix_set(array, n->name, false, &why);
	if (r == 0)
		column_labels_offer(&s->labels, n->leaf, array);
	if (r == 0)
		return array_publish(a->tree, a->dir, n->name, array, NULL,
				     err);
	if (r == -ENOTSUP)
		return array_publish_not(&s->arrays, a->tree, a->dir, n->name,
					 &why, err);
	return error_set(err, r, "\"%.80s\": %s", n->name, why.text);
}

/* Labels can only be a column that is an array by itself. */
static uint32_t parquet_count_columns(const struct arrays *s)
{
	return ((const struct parquet *)s)->meta.n;
}

static const char *parquet_column_name(const struct arrays *s, uint32_t i)
{
	return ((const struct parquet *)s)->meta.at[i].name;
}

static int parquet_make_labels(struct arrays *arrays, uint32_t i,
			       struct array **out, struct error *err)
{
	struct parquet *s = (struct parquet *)arrays;
	struct parquet_column *c = &s->meta.at[i];

	if (c->nested || c->hidden || c->dtype.kind == DTYPE_RAGGED)
		return error_set(
			err, -ENOTSUP,
			"it is not a list of whole numbers or strings");
	if (c->nulls)
		return error_set(err, -ENOTSUP,
				 "values are missing in it (nulls), and each "
				 "sample needs a label");
	return parquet_new_array(s, c, out, err);
}

static const struct column_ops columns = {
	parquet_count_columns, parquet_column_name, parquet_make_labels};

static int parquet_publish(struct arrays *arrays, const struct source_args *a,
			   struct error *err)
{
	struct parquet *s = (struct parquet *)arrays;
	cleanup_free unsigned char *footer = NULL;
	unsigned char tail[8];
	uint64_t n, size = s->arrays.size;
	int r;

	if (size < 12)
		return error_set(err, -EBADMSG,
				 "it ends too early: truncated?");
	r = arrays_read(&s->arrays, size - 8, tail, 8, err);
	if (r < 0)
		return r;
	if (!memcmp(tail + 4, MAGIC_ENCRYPTED, 4))
		return error_set(err, -ENOTSUP,
				 "it is encrypted, which is not supported");
	n = load_le32(tail);
	if (memcmp(tail + 4, MAGIC, 4) || n > size - 12)
		return error_set(err, -EBADMSG,
				 "its footer is not at its end: truncated?");
	if (n > FOOTER_MOST)
		return error_set(err, -ENOTSUP,
				 "its footer is longer than 256 MiB");
	footer = malloc(n ? n : 1);
	if (!footer)
		return error_no_memory(err, "the file's footer");
	r = arrays_read(&s->arrays, size - 8 - n, footer, n, err);
	if (r == 0)
		r = parquet_meta_read(footer, n, size, &s->meta, err);
	if (r == 0)
		r = column_labels_find(&s->labels, arrays, a, &columns, err);
	for (uint32_t i = 0; r == 0 && i < s->meta.n_nodes;
	     i = s->meta.nodes[i].next)
		r = publish_node(s, a, &s->meta.nodes[i], err);
	return r < 0 ? r : column_labels_check(&s->labels, a, err);
}

static int parquet_probe(const unsigned char *head, size_t n, const char *path)
{
	(void)path;
	return n >= 4 && (!memcmp(head, MAGIC, 4) ||
			  !memcmp(head, MAGIC_ENCRYPTED, 4))
		       ? 90
		       : 0;
}

static void parquet_close(struct source *source)
{
	struct parquet *s = (struct parquet *)source;

	column_labels_free(&s->labels);
	parquet_meta_free(&s->meta);
	arrays_end(&s->arrays);
	free(s);
}

static int parquet_open(const struct source_args *a, struct source **out,
			struct error *err)
{
	return arrays_open(&source_parquet, sizeof(struct parquet),
			   parquet_publish, a, out, err);
}

const struct source_ops source_parquet = {
	.flags = SOURCE_HAS_LABELS,
	.name = "parquet",
	.summary = "Parquet files",
	.probe = parquet_probe,
	.open = parquet_open,
	.usage = arrays_usage,
	.close = parquet_close,
};
