/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes arrays of Arrow columns: values in place, or decoded batch by batch. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "formats/arrow/private.h"
#include "formats/columns/unpack.h"

/* About how many booleans a chunk has. */
#define BITS_CHUNK (UINT64_C(1) << 20)

void arrow_own_free(struct arrow_own *own)
{
	if (own)
		vec_free(&own->parts);
	free(own);
}

struct arrow_own *arrow_own_copy(const struct arrow_own *own)
{
	struct arrow_own *copy = calloc(1, sizeof *copy);

	if (!copy)
		return NULL;
	copy->column = own->column;
	for (size_t i = 0; i < own->parts.n; i++)
		if (!vec_push(&copy->parts, own->parts.at[i])) {
			arrow_own_free(copy);
			return NULL;
		}
	return copy;
}

void arrow_own_done(struct array *a)
{
	arrow_own_free(a->own);
}

json_t *arrow_own_attributes(const struct array *a)
{
	const struct arrow_own *own = a->own;

	return json_deep_copy(own->column->attributes);
}

/* ---- buffers ------------------------------------------------------------- */

/* Bytes of a part's data when decoded. */
static uint64_t part_bytes(const struct arrow_column *c,
			   const struct arrow_part *p)
{
	uint64_t n = p->piece.rows * c->per_row;

	return c->kind == ARROW_BITS ? div_up(n, 8) : n * c->dtype.size;
}

static struct arrow_buffer buffer_of(const struct arrays *s,
				     const struct arrow_column *c,
				     const struct arrow_part *p)
{
	uint64_t bytes = part_bytes(c, p);

	return (struct arrow_buffer){.s = s,
				     .codec = p->codec,
				     .pos = p->piece.pos,
				     .size = p->piece.size,
				     .least = bytes,
				     .most = bytes + ARROW_PADDING};
}

/* ---- numbers and booleans ------------------------------------------------ */

static int arrow_part_layout(const struct arrow *s,
			     const struct arrow_column *c,
			     const struct arrow_part *p, struct array_layout *l,
			     struct error *err)
{
	struct arrow_buffer b = buffer_of(&s->arrays, c, p);
	bool plain = !p->codec;
	int r = 0;

	l->file = s->arrays.file;
	l->stored = c->dtype;
	l->pos = p->piece.pos;
	l->shape[0] = l->chunk[0] = p->piece.rows;
	memcpy(l->shape + 1, c->shape, c->rank * sizeof *c->shape);
	memcpy(l->chunk + 1, c->shape, c->rank * sizeof *c->shape);
	if (p->codec && b.least)
		r = arrow_buffer_size(&b, &b.size, &plain, err);
	if (r < 0)
		return r;
	l->kind = ARRAY_MADE;
	l->maker = p->codec == ARROW_ZSTD  ? "tensorfs: from zstd"
		   : p->codec == ARROW_LZ4 ? "tensorfs: from lz4"
					   : "tensorfs: from bits";
	if (!p->codec && c->kind == ARROW_BITS)
		l->chunk[0] = min_u64(
			l->chunk[0],
			max_u64(BITS_CHUNK / max_u64(c->per_row, 1), 1));
	if (c->kind == ARROW_NUMBERS && plain) {
		l->kind = ARRAY_LINEAR;
		l->pos += p->codec ? ARROW_PREFIX : 0;
	}
	return 0;
}

static int arrow_array_learn(struct array *a, uint32_t part,
			     struct array_layout *out, struct error *err)
{
	const struct arrow_own *own = a->own;

	return arrow_part_layout((struct arrow *)a->source, own->column,
				 &own->parts.at[part], out, err);
}

static void expand_bits(const unsigned char *bits, unsigned first, uint64_t n,
			unsigned char *out)
{
	for (uint64_t i = 0; i < n; i++)
		out[i] = bits[(first + i) / 8] >> (first + i) % 8 & 1;
}

/* Make the booleans [from, from + n) from bits that the file holds uncompressed. */
static int make_bits(const struct array *a, const struct arrow_part *p,
		     uint64_t from, uint64_t n, unsigned char *out,
		     struct error *err)
{
	uint64_t first = from / 8, bytes = div_up(from + n, 8) - first;
	cleanup_free unsigned char *bits = malloc(bytes ? bytes : 1);
	int r;

	if (!bits)
		return error_no_memory(err, "the bits of booleans");
	r = arrays_read(a->source, p->piece.pos + first, bits, bytes, err);
	if (r == 0)
		expand_bits(bits, from % 8, n, out);
	return r;
}

static int make_decoded(const struct array *a, const struct arrow_column *c,
			const struct arrow_part *p, unsigned char *out,
			size_t size, struct error *err)
{
	cleanup_free unsigned char *data = NULL;
	struct arrow_buffer b = buffer_of(a->source, c, p);
	uint64_t bytes = b.least;
	int r;

	b.once = true;
	r = arrow_buffer_part(&b, 0, bytes, &data, NULL, err);
	if (r < 0)
		return r;
	if (c->kind == ARROW_BITS) {
		expand_bits(data, 0, size, out);
		return 0;
	}
	if (bytes != size)
		return error_set(err, -EIO,
				 "a batch has another size than when the file "
				 "was opened: the file was overwritten");
	memcpy(out, data, size);
	return 0;
}

static int arrow_array_make(struct array *a, uint32_t part,
			    const struct grid *g, uint64_t chunk, void *out,
			    size_t size, struct error *err)
{
	const struct arrow_own *own = a->own;
	const struct arrow_column *c = own->column;
	const struct arrow_part *p = &own->parts.at[part];
	uint64_t first, n;

	if (p->codec)
		return make_decoded(a, c, p, out, size, err);
	first = chunk * g->chunk[0];
	n = min_u64(g->chunk[0], p->piece.rows - first) * c->per_row;
	memset(out, 0, size);
	return make_bits(a, p, first * c->per_row, n, out, err);
}

static bool arrow_array_origin(const struct array *a, uint32_t part, FILE *out)
{
	const struct arrow_own *own = a->own;
	const struct arrow *s = (const struct arrow *)a->source;
	const struct arrow_piece *p = &own->parts.at[part].piece;

	return fprintf(out,
		       "column %td, %" PRIu64 " rows in bytes %" PRIu64
		       "+%" PRIu64,
		       own->column - s->schema.at, p->rows, p->pos,
		       p->size) > 0;
}

static const struct array_ops arrow_ops = {
	.learn = arrow_array_learn,
	.make = arrow_array_make,
	.origin = arrow_array_origin,
	.attributes = arrow_own_attributes,
	.free = arrow_own_done,
};

/* ---- the array ----------------------------------------------------------- */

static int arrow_array_set_layout(struct arrow *s, const struct arrow_own *own,
				  struct array_layout *l, struct error *err)
{
	const struct arrow_column *c = own->column;

	l->stored = c->dtype;
	l->file = s->arrays.file;
	l->kind = ARRAY_ABSENT; /* there are no rows */
	memcpy(l->shape + 1, c->shape, c->rank * sizeof *c->shape);
	if (!own->parts.n)
		return 0;
	if (c->kind == ARROW_CELLS)
		return arrow_cells_layout(s, c, &own->parts.at[0], l, err);
	if (!arrow_varies(c))
		return arrow_part_layout(s, c, &own->parts.at[0], l, err);
	l->kind = ARRAY_MADE;
	l->maker = "tensorfs: from offsets";
	l->shape[0] = l->chunk[0] = own->parts.at[0].piece.rows;
	return 0;
}

static int arrow_array_set_parts(struct arrow *s, const struct arrow_own *own,
				 struct array_spec *spec,
				 struct array_part **out, struct error *err)
{
	struct array_part *p;

	if (own->parts.n > UINT32_MAX)
		return error_set(err, -ENOTSUP,
				 "it has more than 2^32 batches");
	*out = p = calloc(own->parts.n, sizeof *p);
	if (!p)
		return error_no_memory(err, "the table of a column's batches");
	for (size_t i = 0; i < own->parts.n; i++)
		p[i] = (struct array_part){s->arrays.file, spec->name,
					   own->parts.at[i].piece.rows};
	spec->layout = NULL;
	spec->parts = p;
	spec->nparts = (uint32_t)own->parts.n;
	return 0;
}

static const struct array_ops *arrow_array_ops(const struct arrow_column *c)
{
	if (c->kind == ARROW_CELLS)
		return arrow_varies(c) ? &arrow_cells_ops
				       : &arrow_cells_number_ops;
	return arrow_varies(c) ? &arrow_values_ops : &arrow_ops;
}

int arrow_array(struct arrow *s, uint32_t i, struct array **out,
		struct error *err)
{
	const struct arrow_column *c = &s->schema.at[i];
	struct arrow_own *own = s->own[i];
	cleanup_free struct array_part *parts = NULL;
	struct array_layout l = {.kind = ARRAY_ABSENT};
	struct array_spec spec = {.layout = &l,
				  .stored = c->dtype,
				  .rank = c->rank + 1,
				  .note = c->note};
	int r;

	spec.name = intern_text(&s->arrays.intern, c->name);
	if (!spec.name)
		return error_no_memory(err, "the name of a column");
	spec.shape[0] = s->rows;
	memcpy(spec.shape + 1, c->shape, c->rank * sizeof *c->shape);
	spec.ops = arrow_array_ops(c);
	spec.text_bytes = !arrow_varies(c)         ? 0
			  : c->kind == ARROW_CELLS ? arrow_cells_mean(s, own)
						   : arrow_values_mean(own);
	r = own->parts.n > 1 ? arrow_array_set_parts(s, own, &spec, &parts, err)
			     : arrow_array_set_layout(s, own, &l, err);
	if (r < 0)
		return r;
	spec.own = own;
	s->own[i] = NULL;
	return array_new(&s->arrays, &spec, out, err);
}
