/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds rows of nested Parquet columns from their values and levels. */
/*
 * Each column has an entry for each value, and one for each place that lacks a value.
 * The definition level of an entry says how much of the path to the value is present,
 * and its repetition level says which list on that path goes on:
 * github.com/apache/parquet-format, "Nested Encoding".
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "formats/parquet/record.h"
#include "formats/parquet/schema.h"

/* Most bytes loaded for one request. */
#define LOADED_MOST ((size_t)64 << 20)

/* ---- loading -------------------------------------------------------------------- */

static bool rows_grow(void *at, size_t *room, size_t need, size_t size)
{
	size_t more = 2 * need + 256;
	void *p, *old;

	if (need <= *room)
		return true;
	memcpy(&old, at, sizeof old);
	p = realloc(old, more * size);
	if (!p)
		return false;
	memcpy(at, &p, sizeof p);
	*room = more;
	return true;
}

static int rows_add_entry(void *ctx, unsigned again, unsigned level,
			  const unsigned char *v, size_t len)
{
	struct parquet_rows *r = ctx;
	size_t room = r->room;

	if (r->used + len + 2 * r->n +
		    (r->c->width ? 0 : r->values * sizeof *r->ends) >
	    LOADED_MOST)
		return error_set(r->err, -ENOTSUP,
				 "these rows have more than 64 MiB together: "
				 "read fewer rows at once");
	if (!rows_grow(&r->again, &room, r->n + 1, 1) ||
	    !rows_grow(&r->level, &r->room, r->n + 1, 1))
		return error_no_memory(r->err, "the levels of nested rows");
	r->again[r->n] = (uint8_t)again;
	r->level[r->n++] = (uint8_t)level;
	if (!v)
		return 0;
	if (!rows_grow(&r->data, &r->data_room, r->used + len, 1) ||
	    (!r->c->width && !rows_grow(&r->ends, &r->ends_room, r->values + 1,
					sizeof *r->ends)))
		return error_no_memory(r->err, "the values of nested rows");
	if (len)
		memcpy(r->data + r->used, v, len);
	r->used += len;
	if (!r->c->width)
		r->ends[r->values] = r->used;
	r->values++;
	return 0;
}

int parquet_rows_load(const struct arrays *s, const struct parquet_column *c,
		      uint32_t part, uint64_t first, uint64_t n,
		      struct parquet_rows *out, struct error *err)
{
	const struct parquet_entries to = {rows_add_entry, out};

	memset(out, 0, sizeof *out);
	out->c = c;
	out->err = err;
	return parquet_read_entries(s, c, part, first, n, &to, err);
}

void parquet_rows_free(struct parquet_rows *r)
{
	free(r->again);
	free(r->level);
	free(r->data);
	free(r->ends);
}

/* ---- putting together ------------------------------------------------------------ */

struct putting {
	const struct parquet_meta *m;
	struct parquet_rows *rows; /* from column `first` on */
	uint32_t first;
	struct jsonline *out;
	bool bad;
};

static struct parquet_rows *node_rows(const struct putting *p, uint32_t leaf)
{
	return &p->rows[leaf - p->first];
}

/* Return the definition level of the current entry of a node's first column; -1 if there
 * is no entry. */
static int rows_level(const struct putting *p, const struct parquet_node *n)
{
	const struct parquet_rows *r = node_rows(p, n->leaf);

	return r->at < r->n ? r->level[r->at] : -1;
}

/* Return the repetition level of the current entry of a node's first column; -1 if there
 * is no entry. */
static int rows_again(const struct putting *p, const struct parquet_node *n)
{
	const struct parquet_rows *r = node_rows(p, n->leaf);

	return r->at < r->n ? r->again[r->at] : -1;
}

/* Pass the entries of a node that is absent: each of its columns has one that says
 * so. */
static void rows_skip_node(struct putting *p, const struct parquet_node *n)
{
	for (uint32_t i = 0; i < n->leaves; i++) {
		struct parquet_rows *r = node_rows(p, n->leaf + i);

		if (r->at == r->n || r->level[r->at] >= n->levels)
			p->bad = true;
		else
			r->at++;
	}
}

/* Write a decimal; the file has those of fixed length in big-endian order. */
static void node_put_decimal(struct putting *p, const struct parquet_column *c,
			     const unsigned char *v, size_t len)
{
	unsigned char turned[64];

	for (size_t i = 0; i < len && len <= sizeof turned; i++)
		turned[i] = v[c->type == PARQUET_FIXED ? len - 1 - i : i];
	if (len <= sizeof turned)
		jsonline_decimal(p->out, turned, len, c->scale);
	else
		jsonline_hex(p->out, v, len);
}

static void node_put_value(struct putting *p, const struct parquet_node *n)
{
	struct parquet_rows *r = node_rows(p, n->leaf);
	const struct dtype *d = parquet_value_type(r->c);
	size_t from, len;

	if (r->at == r->n || r->level[r->at] != r->c->max_levels) {
		p->bad = true;
		return;
	}
	r->at++;
	len = d->size;
	from = r->value * len;
	if (!r->c->width) {
		from = r->value ? r->ends[r->value - 1] : 0;
		len = r->ends[r->value] - from;
	}
	r->value++;
	if (r->c->decimal)
		node_put_decimal(p, r->c, r->data + from, len);
	else if (d->kind == DTYPE_INT || d->kind == DTYPE_UINT)
		jsonline_integer(p->out, r->data + from, d->size,
				 d->kind == DTYPE_INT);
	else if (d->kind == DTYPE_FLOAT)
		jsonline_float(p->out, r->data + from, d->size);
	else if (d->kind == DTYPE_BOOL && r->data[from])
		jsonline_put(p->out, "true", 4);
	else if (d->kind == DTYPE_BOOL)
		jsonline_put(p->out, "false", 5);
	else if (d->kind == DTYPE_STRING)
		jsonline_text(p->out, len ? (char *)r->data + from : "", len);
	else
		jsonline_hex(p->out, len ? r->data + from : NULL, len);
}

static void node_put(struct putting *p, const struct parquet_node *n);

/* Write one instance of a node that is present. */
static void node_put_present(struct putting *p, const struct parquet_node *n)
{
	uint32_t at = (uint32_t)(n - p->m->nodes) + 1;

	if (!n->children) {
		node_put_value(p, n);
		return;
	}
	if ((n->is_list || n->is_map) && n->children == 1 &&
	    n[1].repetition == 2) {
		node_put(p, n + 1);
		return;
	}
	jsonline_char(p->out, '{');
	for (uint32_t i = 0; i < n->children; i++) {
		const struct parquet_node *c = &p->m->nodes[at];

		if (i)
			jsonline_char(p->out, ',');
		jsonline_text(p->out, c->name, strlen(c->name));
		jsonline_char(p->out, ':');
		node_put(p, c);
		at = c->next;
	}
	jsonline_char(p->out, '}');
}

static void node_put_list(struct putting *p, const struct parquet_node *n,
			  bool wrapped)
{
	bool more = false;

	jsonline_char(p->out, '[');
	if (rows_level(p, n) < n->levels) {
		rows_skip_node(p, n);
	} else {
		do {
			if (more)
				jsonline_char(p->out, ',');
			if (wrapped)
				node_put(p, n + 1);
			else
				node_put_present(p, n);
			more = rows_again(p, n) == n->repeats;
		} while (more && !p->bad && !p->out->too_long &&
			 !p->out->no_memory);
	}
	jsonline_char(p->out, ']');
}

static void node_put(struct putting *p, const struct parquet_node *n)
{
	const struct parquet_node *up = n - 1;

	if (p->bad || p->out->too_long || p->out->no_memory)
		return;
	if (n->repetition == 2) {
		bool in_list = n != p->m->nodes && up->is_list &&
			       up->children == 1 &&
			       !parquet_tree_is_item(up, n);

		node_put_list(p, n, in_list);
	} else if (n->repetition == 1 && rows_level(p, n) < n->levels) {
		rows_skip_node(p, n);
		jsonline_put(p->out, "null", 4);
	} else {
		node_put_present(p, n);
	}
}

int parquet_rows_put(const struct parquet_meta *m, const struct parquet_node *n,
		     struct parquet_rows *rows, struct jsonline *out,
		     struct error *err)
{
	struct putting p = {m, rows, n->leaf, out, false};

	node_put(&p, n);
	/* A row that got too long was left before its end: skip the rest of its
	 * entries. */
	for (uint32_t i = 0; i < n->leaves && !p.bad; i++) {
		struct parquet_rows *r = &rows[i];

		while ((out->too_long || out->no_memory) && r->at < r->n &&
		       (r->again[r->at] || !r->at))
			r->value += r->level[r->at++] == r->c->max_levels;
		p.bad = r->at < r->n && r->again[r->at];
	}
	return p.bad ? error_set(err, -EBADMSG,
				 "levels of its values contradict each other")
		     : 0;
}

/* ---- what it is -------------------------------------------------------------------- */

static const struct parquet_node *
describe_list(const struct parquet_node *n, char *buf, size_t *at, size_t size)
{
	const struct parquet_node *up = n - 1;
	bool in_list = up->is_list && up->children == 1;

	*at += (size_t)snprintf(buf + *at, size - *at, "list of ");
	return in_list && !parquet_tree_is_item(up, n) ? n + 1 : n;
}

void parquet_describe(const struct parquet_meta *m,
		      const struct parquet_node *n, char *buf, size_t size)
{
	const struct dtype *d;
	size_t at = 0;
	/* A repeated element without a list around it. */
	bool item = n->repetition == 2;

	if (item)
		at = (size_t)snprintf(buf, size, "list of ");
	while (at + 9 < size && (n->is_list || n->is_map) && n->children == 1 &&
	       n[1].repetition == 2) {
		n = describe_list(n + 1, buf, &at, size);
		if (n->repetition == 2)
			break;
	}
	if (at >= size)
		return;
	d = parquet_value_type(&m->at[n->leaf]);
	if (n->children)
		snprintf(buf + at, size - at, "structure of %u field%s",
			 n->children, n->children == 1 ? "" : "s");
	else
		dtype_name(d, buf + at, size - at);
}
