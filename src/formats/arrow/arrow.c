/* SPDX-License-Identifier: BSD-2-Clause */
/* The source "arrow": opens an Arrow IPC file or stream; each column is a tensor. */
/*
 * The metadata of all batches are read when the file is opened: they tell how many rows
 * there are, and where.  Buffers that are not compressed are shown in place, without a
 * copy.
 */
#include "formats/arrow/arrow.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "formats/arrow/private.h"
#include "formats/suffix.h"

#define MAGIC "ARROW1"
#define MAGIC_OLD "FEA1"
#define CONTINUED UINT32_C(0xffffffff)
/* Most bytes of one message's metadata; larger ones are refused. */
#define METADATA_MOST (UINT32_C(128) << 20)

/* ---- messages ------------------------------------------------------------ */

/* Read the metadata of the message at `pos` into *out (malloc'ed, owned by the caller,
 * also after a failure) and set *body to where its body begins.  At the end of a stream,
 * where no length follows, *n is 0. */
static int arrow_read_metadata(const struct arrow *s, uint64_t pos, char **out,
			       uint32_t *n, uint64_t *body, struct error *err)
{
	unsigned char head[8];
	uint64_t left = s->arrays.size - min_u64(pos, s->arrays.size);
	unsigned at = 4;
	int r = arrays_read(&s->arrays, pos, head, 4, err);

	*out = NULL;
	*n = load_le32(head);
	if (r == 0 && *n == CONTINUED) {
		r = arrays_read(&s->arrays, pos + 4, head + 4, 4, err);
		*n = load_le32(head + 4);
		at = 8;
	}
	if (r < 0 || !*n)
		return r;
	if (*n > left - at)
		return error_set(err, -EBADMSG,
				 "a message at byte %" PRIu64
				 " does not fit in the file: truncated?",
				 pos);
	if (*n > METADATA_MOST)
		return error_set(err, -ENOTSUP,
				 "a message's metadata are longer than "
				 "128 MiB");
	*out = malloc(*n);
	if (!*out)
		return error_no_memory(err, "a message's metadata");
	*body = pos + at + *n;
	return arrays_read(&s->arrays, pos + at, *out, *n, err);
}

static int arrow_add_part(struct arrow *s, uint32_t column,
			  struct arrow_piece *p, const struct arrow_kept *k,
			  struct error *err)
{
	struct arrow_column *c = &s->schema.at[column];
	struct arrow_part part = {*p, k->batch.codec, k};

	if (p->nulls && c->kind != ARROW_NOT && c->dtype.kind != DTYPE_TEXT)
		arrow_column_as_cells(c, true);
	if (!p->rows || c->kind == ARROW_NOT)
		return 0;
	return vec_push(&s->own[column]->parts, part)
		       ? 0
		       : error_no_memory(err, "the list of a column's batches");
}

/* Add a batch of rows.  Takes ownership of `metadata`, also when it fails. */
static int arrow_add_batch(struct arrow *s, const struct arrow_head *h,
			   char *metadata, size_t n, uint64_t body,
			   struct error *err)
{
	struct arrow_kept *k;
	int r = 0;

	if (body > s->arrays.size || h->body > s->arrays.size - body) {
		free(metadata);
		return error_set(err, -EBADMSG,
				 "a batch of %" PRIu64
				 " bytes does not fit in the file: truncated?",
				 h->body);
	}
	r = arrow_keep(s, h, metadata, n, body, &s->schema.all, &k, err);
	if (r == 0 && add_overflows(s->rows, k->batch.rows, &s->rows))
		r = error_set(err, -EBADMSG, "it has too many rows");
	for (uint32_t i = 0; r == 0 && i < s->schema.n; i++) {
		struct arrow_piece p;

		r = arrow_piece_read(&k->batch, &s->schema.at[i], &p, err);
		p.pos += body;
		p.offsets += body;
		p.valid[0].pos += body;
		p.valid[1].pos += body;
		if (r == 0)
			r = arrow_add_part(s, i, &p, k, err);
		if (r < 0)
			error_prefix(err, "\"%.80s\": ", s->schema.at[i].name);
	}
	return r;
}

/* A string column that the option ext= names is shown as files. */
static void arrow_apply_ext(const struct arrow *s, struct arrow_column *c)
{
	size_t n;

	if ((c->kind == ARROW_TEXT ||
	     (c->kind == ARROW_CELLS &&
	      arrow_cell_value(&c->cell)->kind == CELL_TEXT)) &&
	    suffix_named(s->arrays.views.ext, c->name, &n))
		arrow_column_as_blob(c);
}

static int set_schema(struct arrow *s, const struct flat_table *t,
		      int64_t version, struct error *err)
{
	int r = arrow_schema_read(t, version, &s->schema, err);

	if (r < 0)
		return r;
	s->own = calloc(s->schema.n ? s->schema.n : 1, sizeof(void *));
	if (!s->own)
		return error_no_memory(err, "the table of columns");
	for (uint32_t i = 0; i < s->schema.n; i++) {
		s->own[i] = calloc(1, sizeof **s->own);
		if (!s->own[i])
			return error_no_memory(err, "the table of columns");
		s->own[i]->column = &s->schema.at[i];
		arrow_apply_ext(s, &s->schema.at[i]);
	}
	return arrow_dictionaries_find(s, err);
}

/* ---- a file -------------------------------------------------------------- */

/* Read one block of the footer.  Blocks do not overlap, so together they have at most as
 * many bytes as the file; *left is how many this block and later ones may have. */
static int arrow_read_block(struct arrow *s, const unsigned char *block,
			    enum arrow_message type, uint64_t *left,
			    struct error *err)
{
	uint64_t pos = load_le64(block), size = load_le32(block + 8), body;
	cleanup_free char *metadata = NULL;
	struct arrow_head h;
	struct flat f;
	uint32_t n;
	int r = arrow_read_metadata(s, pos, &metadata, &n, &body, err);

	if (r < 0)
		return r;
	f = (struct flat){(unsigned char *)metadata, n, false};
	r = arrow_head_read(&f, &h, err);
	if (r == 0 && (h.type != type || body != pos + size))
		r = error_set(err, -EBADMSG,
			      "its footer contradicts its batches: damaged?");
	if (r == 0 && (size > *left || h.body > *left - size))
		r = error_set(err, -EBADMSG,
			      "the batches in its footer are longer than the "
			      "file: truncated?");
	if (r < 0)
		return r;
	*left -= size + h.body;
	return (type == ARROW_BATCH ? arrow_add_batch : arrow_dictionary_add)(
		s, &h, steal_pointer(&metadata), n, body, err);
}

static int read_blocks(struct arrow *s, const struct flat_table *t, unsigned id,
		       enum arrow_message type, uint64_t *left,
		       struct error *err)
{
	struct flat_vector blocks = flat_list(t, id, 24);
	int r = 0;

	if (t->in->bad)
		return error_set(err, -EBADMSG, "its footer is damaged");
	for (uint32_t i = 0; r == 0 && i < blocks.n; i++)
		r = arrow_read_block(s, t->in->at + blocks.pos + 24 * (size_t)i,
				     type, left, err);
	return r;
}

static int arrow_read_footer(struct arrow *s, const struct flat_table *t,
			     struct error *err)
{
	struct flat_table schema = flat_child(t, 1);
	uint64_t left = s->arrays.size;
	int r;

	if (t->in->bad || !schema.pos)
		return error_set(err, -EBADMSG, "its footer is damaged");
	s->is_file = true;
	r = set_schema(s, &schema, flat_signed(t, 0, 2, 0), err);
	if (r == 0)
		r = read_blocks(s, t, 2, ARROW_DICTIONARY, &left, err);
	if (r == 0)
		r = read_blocks(s, t, 3, ARROW_BATCH, &left, err);
	return r;
}

static int arrow_read_file(struct arrow *s, struct error *err)
{
	cleanup_free unsigned char *footer = NULL;
	unsigned char tail[10];
	struct flat f = {NULL, 0, false};
	struct flat_table t;
	uint64_t n;
	int r;

	if (s->arrays.size < 8 + sizeof tail)
		return error_set(err, -EBADMSG,
				 "it ends too early: truncated?");
	r = arrays_read(&s->arrays, s->arrays.size - sizeof tail, tail,
			sizeof tail, err);
	if (r < 0)
		return r;
	n = load_le32(tail);
	if (memcmp(tail + 4, MAGIC, 6) || n > METADATA_MOST ||
	    n > s->arrays.size - 8 - sizeof tail)
		return error_set(err, -EBADMSG,
				 "its footer is not at its end: truncated?");
	footer = malloc(n ? n : 1);
	if (!footer)
		return error_no_memory(err, "the file's footer");
	r = arrays_read(&s->arrays, s->arrays.size - sizeof tail - n, footer, n,
			err);
	if (r < 0)
		return r;
	f.at = footer;
	f.n = n;
	t = flat_root(&f);
	return arrow_read_footer(s, &t, err);
}

/* ---- a stream ------------------------------------------------------------ */

static int arrow_read_message(struct arrow *s, char **metadata, uint32_t n,
			      uint64_t *pos, struct error *err)
{
	struct flat f = {(const unsigned char *)*metadata, n, false};
	struct arrow_head h;
	int r = arrow_head_read(&f, &h, err);

	if (r < 0)
		return r;
	if (!s->own && h.type == ARROW_SCHEMA)
		r = set_schema(s, &h.header, h.version, err);
	else if (s->own && h.type == ARROW_BATCH)
		r = arrow_add_batch(s, &h, steal_pointer(metadata), n, *pos,
				    err);
	else if (s->own && h.type == ARROW_DICTIONARY)
		r = arrow_dictionary_add(s, &h, steal_pointer(metadata), n,
					 *pos, err);
	else
		r = error_set(err, -EBADMSG, "an unexpected message of type %u",
			      (unsigned)h.type);
	if (r == 0 && add_overflows(*pos, h.body, pos))
		r = error_set(err, -EBADMSG,
			      "a message ends behind the end of the file: "
			      "truncated?");
	return r;
}

static int read_stream(struct arrow *s, struct error *err)
{
	uint64_t pos = 0;
	int r = 0;

	while (r == 0 && pos < s->arrays.size) {
		cleanup_free char *metadata = NULL;
		uint32_t n;

		r = arrow_read_metadata(s, pos, &metadata, &n, &pos, err);
		if (r == 0 && !n)
			break;
		if (r == 0)
			r = arrow_read_message(s, &metadata, n, &pos, err);
	}
	if (r == 0 && pos > s->arrays.size)
		r = error_set(err, -EBADMSG, "it ends too early: truncated?");
	return r;
}

/* ---- the source ---------------------------------------------------------- */

/* Return true if `at` begins with a length of 4 bytes and the metadata of a schema
 * message. */
static bool is_schema(const unsigned char *at, size_t n)
{
	uint32_t size = n >= 8 ? load_le32(at) : 0;
	struct flat f = {at + 4, n >= 8 ? min_u64(n - 4, size) : 0, false};
	struct flat_table t;

	if (n < 12 || size < 8 || size > METADATA_MOST)
		return false;
	t = flat_root(&f);
	return flat_unsigned(&t, 1, 1, 0) == ARROW_SCHEMA && !f.bad;
}

static bool is_stream(const unsigned char *head, size_t n)
{
	return n >= 16 && load_le32(head) == CONTINUED &&
	       is_schema(head + 4, n - 4);
}

/* Before Arrow 0.15 a message began with its length, without a mark: it is recognized
 * only because its contents make sense. (Format.md of these versions, "Encapsulated
 * message format".) */
static bool is_old_stream(const unsigned char *head, size_t n)
{
	struct flat f = {head + 4,
			 n >= 16 ? min_u64(n - 4, load_le32(head)) : 0, false};
	struct flat_table t, schema;
	int64_t version;

	if (n < 16 || load_le32(head) % 4 || !is_schema(head, n))
		return false;
	t = flat_root(&f);
	version = flat_signed(&t, 0, 2, 0);
	schema = flat_child(&t, 2);
	return version >= 0 && version < 5 && schema.pos &&
	       flat_signed(&t, 3, 8, 0) == 0 &&
	       flat_signed(&schema, 0, 2, 0) <= 1 && !f.bad;
}

static int arrow_probe(const unsigned char *head, size_t n, const char *path)
{
	(void)path;
	if (n >= 8 && !memcmp(head, MAGIC "\0", 8))
		return 100;
	if (n >= 4 && !memcmp(head, MAGIC_OLD, 4))
		return 60;
	return is_stream(head, n) ? 90 : is_old_stream(head, n) ? 50 : 0;
}

static int publish_column(struct arrow *s, const struct source_args *a,
			  uint32_t i, struct error *err)
{
	const struct arrow_column *c = &s->schema.at[i];
	struct error why = {.code = 0};
	struct array *array;
	int r;

	if (c->kind == ARROW_NOT)
		r = error_set(&why, -ENOTSUP, "%s", c->why_not);
	else
		r = arrow_array(s, i, &array, &why);
	if (r == 0 && c->dtype.kind == DTYPE_BLOB)
		r = suffix_set(array, c->name, arrow_values_costly(array),
			       &why);
	if (r == 0)
		column_labels_offer(&s->labels, i, array);
	if (r == 0)
		return array_publish(a->tree, a->dir, c->name, array, NULL,
				     err);
	if (r == -ENOTSUP)
		return array_publish_not(&s->arrays, a->tree, a->dir, c->name,
					 &why, err);
	return error_set(err, r, "\"%.80s\": %s", c->name, why.text);
}

static uint32_t arrow_count_columns(const struct arrays *s)
{
	return ((const struct arrow *)s)->schema.n;
}

static const char *arrow_column_name(const struct arrays *s, uint32_t i)
{
	return ((const struct arrow *)s)->schema.at[i].name;
}

/* Make another array of a column that is published already. */
static int arrow_make_array(struct arrays *arrays, uint32_t i,
			    struct array **out, struct error *err)
{
	struct arrow *s = (struct arrow *)arrays;
	const struct arrow_column *c = &s->schema.at[i];
	struct arrow_own *copy;
	int r;

	if (c->kind == ARROW_NOT)
		return error_set(err, -ENOTSUP, "%s", c->why_not);
	copy = arrow_own_copy(s->own[i]);
	if (!copy)
		return error_no_memory(err, "a column");
	r = arrow_array(s, i, out, err);
	arrow_own_free(s->own[i]);
	s->own[i] = copy;
	return r;
}

static const struct column_ops columns = {arrow_count_columns,
					  arrow_column_name, arrow_make_array};

static int arrow_publish(struct arrays *arrays, const struct source_args *a,
			 struct error *err)
{
	struct arrow *s = (struct arrow *)arrays;
	unsigned char head[8];
	bool cells = false;
	int r = arrays_read(&s->arrays, 0, head, sizeof head, err);

	if (r == 0 && !memcmp(head, MAGIC_OLD, 4))
		return error_set(err, -ENOTSUP,
				 "it is a Feather file of version 1, which is "
				 "not supported: write it again as version 2");
	if (r == 0)
		r = memcmp(head, MAGIC, 6) ? read_stream(s, err)
					   : arrow_read_file(s, err);
	if (r == 0)
		r = column_labels_find(&s->labels, arrays, a, &columns, err);
	for (uint32_t i = 0; r == 0 && i < s->schema.n; i++) {
		cells |= s->schema.at[i].kind == ARROW_CELLS;
		r = publish_column(s, a, i, err);
	}
	if (!cells)
		arrow_forget(s);
	return r < 0 ? r : column_labels_check(&s->labels, a, err);
}

static void arrow_close(struct source *source)
{
	struct arrow *s = (struct arrow *)source;

	for (uint32_t i = 0; s->own && i < s->schema.n; i++)
		arrow_own_free(s->own[i]);
	free(s->own);
	column_labels_free(&s->labels);
	arrow_forget(s);
	arrow_schema_free(&s->schema);
	arrow_buffers_forget(&s->arrays);
	arrays_end(&s->arrays);
	free(s);
}

static int arrow_open(const struct source_args *a, struct source **out,
		      struct error *err)
{
	return arrays_open(&source_arrow, sizeof(struct arrow), arrow_publish,
			   a, out, err);
}

const struct source_ops source_arrow = {
	.flags = SOURCE_HAS_LABELS,
	.name = "arrow",
	.summary = "Arrow IPC files and streams, Feather",
	.probe = arrow_probe,
	.open = arrow_open,
	.usage = arrays_usage,
	.close = arrow_close,
};
