/* SPDX-License-Identifier: BSD-2-Clause */
/* FlatBuffers, read with every offset checked. */
/* The format is described at flatbuffers.dev/internals: a table begins with the distance
 * back to its vtable, the list of the offsets of its fields; an offset of 0 is an absent
 * field. */
#include "formats/arrow/flat.h"

#include <string.h>

#include "base/bytes.h"

static bool flat_is_inside(struct flat *f, uint64_t pos, uint64_t n)
{
	if (pos <= f->n && n <= f->n - pos)
		return true;
	f->bad = true;
	return false;
}

static struct flat_table table_at(struct flat *f, uint64_t pos)
{
	struct flat_table t = {.in = f};
	int64_t fields;
	uint32_t n, size;

	if (!pos || !flat_is_inside(f, pos, 4))
		return t;
	fields = (int64_t)pos - (int32_t)load_le32(f->at + pos);
	if (fields < 0 || !flat_is_inside(f, (uint64_t)fields, 4)) {
		f->bad = true;
		return t;
	}
	n = load_le16(f->at + fields);
	size = load_le16(f->at + fields + 2);
	if (n < 4 || size < 4 || !flat_is_inside(f, (uint64_t)fields, n) ||
	    !flat_is_inside(f, pos, size)) {
		f->bad = true;
		return t;
	}
	t.pos = (uint32_t)pos;
	t.size = size;
	t.fields = (uint32_t)fields + 4;
	t.n_fields = (n - 4) / 2;
	return t;
}

/* Return the position of a field that has `bytes` bytes, or 0 if it is absent. */
static uint32_t flat_field_at(const struct flat_table *t, unsigned id,
			      unsigned bytes)
{
	uint32_t off;

	if (!t->pos || id >= t->n_fields)
		return 0;
	off = load_le16(t->in->at + t->fields + 2 * (size_t)id);
	if (!off)
		return 0;
	if (off < 4 || off > t->size || bytes > t->size - off) {
		t->in->bad = true;
		return 0;
	}
	return t->pos + off;
}

/* Return where the offset at `at` leads, or 0 if there is none. */
static uint64_t flat_follow_offset(struct flat *f, uint32_t at)
{
	uint32_t off = at ? load_le32(f->at + at) : 0;

	if (at && !off)
		f->bad = true;
	return off ? (uint64_t)at + off : 0;
}

struct flat_table flat_root(struct flat *f)
{
	return table_at(f, flat_is_inside(f, 0, 4) ? load_le32(f->at) : 0);
}

uint64_t flat_unsigned(const struct flat_table *t, unsigned id, unsigned bytes,
		       uint64_t otherwise)
{
	uint32_t at = flat_field_at(t, id, bytes);

	return at ? load_le(t->in->at + at, bytes) : otherwise;
}

int64_t flat_signed(const struct flat_table *t, unsigned id, unsigned bytes,
		    int64_t otherwise)
{
	uint64_t v = flat_unsigned(t, id, bytes, (uint64_t)otherwise);
	unsigned shift = 64 - 8 * bytes;

	return (int64_t)(v << shift) >> shift;
}

struct flat_table flat_child(const struct flat_table *t, unsigned id)
{
	return table_at(t->in,
			flat_follow_offset(t->in, flat_field_at(t, id, 4)));
}

struct flat_vector flat_list(const struct flat_table *t, unsigned id,
			     unsigned bytes)
{
	struct flat_vector v = {.in = t->in};
	uint64_t at = flat_follow_offset(t->in, flat_field_at(t, id, 4));
	uint32_t n;

	if (!at || !flat_is_inside(t->in, at, 4))
		return v;
	n = load_le32(t->in->at + at);
	if (!flat_is_inside(t->in, at + 4, (uint64_t)n * bytes))
		return v;
	v.pos = (uint32_t)at + 4;
	v.n = n;
	return v;
}

const char *flat_text(const struct flat_table *t, unsigned id, size_t *len)
{
	struct flat_vector v = flat_list(t, id, 1);

	*len = v.n;
	return v.pos ? (const char *)t->in->at + v.pos : NULL;
}

struct flat_table flat_element(const struct flat_vector *v, uint32_t i)
{
	return table_at(v->in, flat_follow_offset(v->in, v->pos + 4 * i));
}
