/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of an Arrow IPC file: reads batches of rows, and finds a column in one. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/number.h"
#include "formats/arrow/schema.h"

static int metadata_damaged(struct error *err)
{
	return error_set(err, -EBADMSG, "a message's metadata are damaged");
}

int arrow_head_read(struct flat *f, struct arrow_head *out, struct error *err)
{
	struct flat_table t = flat_root(f);
	int64_t body = flat_signed(&t, 3, 8, 0);

	out->version = flat_signed(&t, 0, 2, 0);
	out->type = flat_unsigned(&t, 1, 1, 0);
	out->header = flat_child(&t, 2);
	out->body = (uint64_t)body;
	return f->bad || body < 0 || !out->header.pos ? metadata_damaged(err)
						      : 0;
}

/* Set *out to the number of variadic buffers of the first `n` view fields.  Returns false
 * if the batch does not have so many buffers. */
static bool more_buffers(const struct arrow_batch *b, uint32_t n, uint64_t *out)
{
	const unsigned char *p = b->more.in->at + b->more.pos;

	*out = 0;
	for (uint32_t i = 0; i < n; i++)
		if (add_overflows(*out, load_le64(p + 8 * (size_t)i), out))
			return false;
	return *out <= b->buffers.n;
}

int arrow_batch_read(const struct flat_table *t, uint64_t body,
		     const struct arrow_counts *all, struct arrow_batch *out,
		     struct error *err)
{
	int64_t rows = flat_signed(t, 0, 8, 0);
	struct flat_table how = flat_child(t, 3);
	int64_t codec = flat_signed(&how, 0, 1, 0);
	uint64_t more;

	memset(out, 0, sizeof *out);
	out->nodes = flat_list(t, 1, 16);
	out->buffers = flat_list(t, 2, 16);
	out->rows = (uint64_t)rows;
	if (t->in->bad || rows < 0)
		return metadata_damaged(err);
	out->more = flat_list(t, 4, 8);
	if (t->in->bad || out->more.n < all->views ||
	    !more_buffers(out, all->views, &more))
		return metadata_damaged(err);
	if (out->nodes.n != all->nodes || out->buffers.n != all->buffers + more)
		return error_set(err, -EBADMSG,
				 "a batch has %u nodes and %u buffers where "
				 "the schema has %u and %u",
				 out->nodes.n, out->buffers.n, all->nodes,
				 all->buffers);
	if (how.pos &&
	    (codec < 0 || codec > 1 || flat_signed(&how, 1, 1, 0) != 0))
		return error_set(err, -ENOTSUP,
				 "a batch is compressed by a codec other than "
				 "lz4 and zstd, which is not supported");
	if (how.pos)
		out->codec = codec ? ARROW_ZSTD : ARROW_LZ4;
	for (uint32_t i = 0; i < out->buffers.n; i++) {
		const unsigned char *p =
			t->in->at + out->buffers.pos + 16 * (size_t)i;
		uint64_t pos = load_le64(p), n = load_le64(p + 8);

		if (pos > body || n > body - pos)
			return error_set(err, -EBADMSG,
					 "a buffer of %" PRIu64
					 " bytes does not fit in its batch",
					 n);
	}
	return 0;
}

uint64_t arrow_batch_more(const struct arrow_batch *b, uint32_t i)
{
	return load_le64(b->more.in->at + b->more.pos + 8 * (size_t)i);
}

void arrow_batch_buffer(const struct arrow_batch *b, uint32_t i, uint32_t views,
			uint64_t *pos, uint64_t *size)
{
	const unsigned char *p = b->buffers.in->at + b->buffers.pos;
	uint64_t more;

	more_buffers(b, views, &more);
	p += 16 * (i + more);
	*pos = load_le64(p);
	*size = load_le64(p + 8);
}

void arrow_batch_node(const struct arrow_batch *b, uint32_t i, uint64_t *rows,
		      uint64_t *nulls)
{
	const unsigned char *p =
		b->nodes.in->at + b->nodes.pos + 16 * (size_t)i;

	*rows = load_le64(p);
	*nulls = load_le64(p + 8);
}

/* Find buffer `i` of a column; its validity buffer is number 0. */
static void buffer_at(const struct arrow_batch *b, const struct arrow_column *c,
		      uint32_t i, uint64_t *pos, uint64_t *size)
{
	arrow_batch_buffer(b, c->buffer + i, c->views, pos, size);
}

/* Check that the column's nodes have as many rows as the batch, and the lists in it as
 * many items; set out->nulls to the most nulls in any of them. */
static int read_nodes(const struct arrow_batch *b, const struct arrow_column *c,
		      struct arrow_piece *out, struct error *err)
{
	uint64_t want = b->rows;

	for (uint32_t i = 0; i < c->nodes; i++) {
		const unsigned char *p = b->nodes.in->at + b->nodes.pos +
					 16 * ((size_t)c->node + i);
		uint64_t n = load_le64(p), nulls = load_le64(p + 8);

		if (n != want || nulls > n ||
		    (i + 1 < c->nodes &&
		     mul_overflows(want, c->lists[i], &want)))
			return error_set(err, -EBADMSG,
					 "a batch has %" PRIu64
					 " values where there should be "
					 "%" PRIu64,
					 n, want);
		out->nulls = max_u64(out->nulls, nulls);
	}
	return 0;
}

/* Set *out to the bytes that `rows` rows take uncompressed.  Returns false on
 * overflow. */
static bool column_plain_bytes(const struct arrow_column *c, uint64_t rows,
			       uint64_t *out)
{
	uint64_t elements;

	if (mul_overflows(rows, c->per_row, &elements))
		return false;
	if (c->kind == ARROW_BITS)
		*out = div_up(elements, 8);
	return c->kind == ARROW_BITS ||
	       !mul_overflows(elements, c->dtype.size, out);
}

static int piece_too_short(const struct arrow_piece *p, struct error *err)
{
	return error_set(err, -EBADMSG,
			 "a batch has fewer bytes than its %" PRIu64
			 " rows take",
			 p->rows);
}

/* Check that a node has as many values as the batch has rows; set *nulls to how many are
 * null. */
static int read_node(const struct arrow_batch *b, uint32_t node,
		     uint64_t *nulls, struct error *err)
{
	const unsigned char *p =
		b->nodes.in->at + b->nodes.pos + 16 * (size_t)node;
	uint64_t n = load_le64(p);

	*nulls = load_le64(p + 8);
	if (n == b->rows && *nulls <= n)
		return 0;
	return error_set(err, -EBADMSG,
			 "a batch has %" PRIu64
			 " values where there should be %" PRIu64,
			 n, b->rows);
}

/* Find the validity buffer, number `at`, which tells the rows that are null. */
static int read_validity(const struct arrow_batch *b,
			 const struct arrow_column *c, uint32_t node,
			 uint32_t at, unsigned k, struct arrow_piece *out,
			 struct error *err)
{
	struct arrow_column of = {.buffer = at, .views = c->views};
	uint64_t nulls;
	int r = read_node(b, node, &nulls, err);

	if (r < 0 || !nulls)
		return r;
	buffer_at(b, &of, 0, &out->valid[k].pos, &out->valid[k].size);
	if (out->valid[k].size < (b->codec ? 8 : div_up(b->rows, 8)))
		return piece_too_short(out, err);
	return 0;
}

/* Find the buffer of offsets and, behind it, the data that they lead into. */
static int piece_read_offsets(const struct arrow_batch *b,
			      const struct arrow_column *c,
			      struct arrow_piece *out, struct error *err)
{
	uint64_t need = c->wide ? 8 : 4;

	buffer_at(b, c, 1, &out->offsets, &out->offsets_size);
	buffer_at(b, c, c->kind == ARROW_LISTS ? 3 : 2, &out->pos, &out->size);
	if (add_overflows(out->rows, 1, &need) ||
	    mul_overflows(need, c->wide ? 8 : 4, &need))
		return piece_too_short(out, err);
	/* In older files a batch without rows has no offsets at all. */
	if (out->rows && out->offsets_size < (b->codec ? 8 : need))
		return piece_too_short(out, err);
	return 0;
}

static int read_varying(const struct arrow_batch *b,
			const struct arrow_column *c, struct arrow_piece *out,
			struct error *err)
{
	int r = 0;

	if (c->kind == ARROW_TEXT && c->dtype.kind == DTYPE_STRING)
		r = read_node(b, c->node, &out->nulls, err);
	else
		r = read_validity(b, c, c->node, c->buffer, 0, out, err);
	if (r == 0 && c->inside)
		r = read_validity(b, c, c->outer_node, c->outer, 1, out, err);
	if (r == 0 && c->kind == ARROW_LISTS)
		out->nulls = load_le64(b->nodes.in->at + b->nodes.pos +
				       16 * ((size_t)c->node + 1) + 8);
	return r < 0 ? r : piece_read_offsets(b, c, out, err);
}

/* Check the number of rows only; the rest is checked when rows are read. */
static int read_cells(const struct arrow_batch *b, const struct arrow_column *c,
		      struct arrow_piece *out, struct error *err)
{
	uint64_t nulls;
	int r = read_node(b, c->cell.at.nodes, &nulls, err);

	if (c->dtype.kind != DTYPE_BLOB && c->dtype.kind != DTYPE_TEXT)
		out->nulls = nulls;
	return r;
}

int arrow_piece_read(const struct arrow_batch *b, const struct arrow_column *c,
		     struct arrow_piece *out, struct error *err)
{
	uint64_t need;
	int r;

	memset(out, 0, sizeof *out);
	out->rows = b->rows;
	if (c->kind == ARROW_NOT)
		return 0;
	if (c->kind == ARROW_CELLS)
		return read_cells(b, c, out, err);
	if (arrow_varies(c))
		return read_varying(b, c, out, err);
	r = read_nodes(b, c, out, err);
	if (r < 0)
		return r;
	buffer_at(b, c, 1, &out->pos, &out->size);
	if (!column_plain_bytes(c, out->rows, &need) ||
	    (need && b->codec && out->size < 8) ||
	    (!b->codec && out->size < need))
		return piece_too_short(out, err);
	return 0;
}
