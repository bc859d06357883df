/* SPDX-License-Identifier: BSD-2-Clause */
/* Hands out rows of any Arrow type that were loaded: as bytes, or as lines of JSON. */
#include <string.h>

#include "base/bisect.h"
#include "formats/arrow/rows.h"

bool arrow_rows_is_null(const struct arrow_rows *r, uint64_t i)
{
	i += r->bit;
	return r->valid && !(r->valid[i / 8] >> i % 8 & 1);
}

const struct arrow_rows *arrow_rows_value(const struct arrow_rows *r,
					  uint64_t *i)
{
	while (r->cell->kind == CELL_DICTIONARY && !arrow_rows_is_null(r, *i)) {
		uint64_t at = r->begin[*i];
		struct bisect b = bisect_in(1, r->n_child);

		while (bisect_next(&b))
			bisect_answer(&b, r->child[b.mid].start > at);
		r = &r->child[b.lo - 1];
		*i = at - r->start;
	}
	return r;
}

const unsigned char *arrow_rows_bytes(const struct arrow_rows *r, uint64_t i,
				      uint64_t *len)
{
	*len = 0;
	r = arrow_rows_value(r, &i);
	if (arrow_rows_is_null(r, i))
		return NULL;
	if (r->where) {
		*len = r->len[i];
		return r->where[i];
	}
	*len = r->cell->size;
	return r->data + i * r->cell->size;
}

static void rows_put_list(const struct arrow_rows *items, uint64_t from,
			  uint64_t n, struct jsonline *out)
{
	jsonline_char(out, '[');
	for (uint64_t i = 0; i < n && !out->too_long && !out->no_memory; i++) {
		if (i)
			jsonline_char(out, ',');
		arrow_rows_put(items, from + i, out);
	}
	jsonline_char(out, ']');
}

static void rows_put_members(const struct arrow_rows *r, uint64_t i,
			     struct jsonline *out)
{
	jsonline_char(out, '{');
	for (uint32_t k = 0; k < r->n_child; k++) {
		const char *name = r->child[k].cell->name;

		if (k)
			jsonline_char(out, ',');
		jsonline_text(out, name, strlen(name));
		jsonline_char(out, ':');
		arrow_rows_put(&r->child[k], i, out);
	}
	jsonline_char(out, '}');
}

static void rows_put_bool(const struct arrow_rows *r, uint64_t i,
			  struct jsonline *out)
{
	i += r->bit;
	if (r->data[i / 8] >> i % 8 & 1)
		jsonline_put(out, "true", 4);
	else
		jsonline_put(out, "false", 5);
}

static void rows_put_present(const struct arrow_rows *r, uint64_t i,
			     struct jsonline *out)
{
	const struct arrow_cell *c = r->cell;
	const unsigned char *p = r->data;

	if (c->size && p)
		p += i * c->size;
	switch (c->kind) {
	case CELL_INT:
	case CELL_UINT:
		jsonline_integer(out, p, c->size, c->kind == CELL_INT);
		break;
	case CELL_FLOAT:
		jsonline_float(out, p, c->size);
		break;
	case CELL_BOOL:
		rows_put_bool(r, i, out);
		break;
	case CELL_FIXED:
		if (c->decimal)
			jsonline_decimal(out, p, c->size, c->scale);
		else
			jsonline_hex(out, p, c->size);
		break;
	case CELL_BYTES:
		jsonline_hex(out, r->where[i], r->len[i]);
		break;
	case CELL_TEXT:
		jsonline_text(out, (const char *)r->where[i], r->len[i]);
		break;
	case CELL_LIST:
		rows_put_list(r->child, r->begin[i], r->len[i], out);
		break;
	case CELL_FIXED_LIST:
		rows_put_list(r->child, i * c->per, c->per, out);
		break;
	default:
		rows_put_members(r, i, out);
	}
}

void arrow_rows_put(const struct arrow_rows *r, uint64_t i,
		    struct jsonline *out)
{
	r = arrow_rows_value(r, &i);
	if (r->cell->kind == CELL_NULL || arrow_rows_is_null(r, i))
		jsonline_put(out, "null", 4);
	else
		rows_put_present(r, i, out);
}
