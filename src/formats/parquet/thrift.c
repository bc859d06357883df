/* SPDX-License-Identifier: BSD-2-Clause */
/* Thrift's compact protocol, read from memory with every length checked. */
/* The format is described in doc/specs/thrift-compact-protocol.md of Apache Thrift. */
#include "formats/parquet/thrift.h"

#define DEPTH_MAX 32

static void thrift_fail(struct thrift *t)
{
	t->bad = true;
	t->pos = t->n;
}

static unsigned char next_byte(struct thrift *t)
{
	if (t->pos < t->n)
		return t->at[t->pos++];
	thrift_fail(t);
	return 0;
}

static uint64_t thrift_varint(struct thrift *t)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		unsigned char b = next_byte(t);

		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			return v;
	}
	thrift_fail(t);
	return 0;
}

static int64_t thrift_zigzag(struct thrift *t)
{
	uint64_t v = thrift_varint(t);

	return (int64_t)(v >> 1 ^ (0 - (v & 1)));
}

static void thrift_pass(struct thrift *t, uint64_t n)
{
	if (n > t->n - t->pos)
		thrift_fail(t);
	else
		t->pos += n;
}

bool thrift_next(struct thrift *t, struct thrift_field *f)
{
	unsigned char b = next_byte(t);
	int64_t id;

	f->type = b & 15;
	if (t->bad || f->type == THRIFT_STOP)
		return false;
	id = b >> 4 ? f->id + (b >> 4) : thrift_zigzag(t);
	if (f->type > THRIFT_STRUCT || id < INT16_MIN || id > INT16_MAX)
		thrift_fail(t);
	f->id = (int32_t)id;
	return !t->bad;
}

static uint32_t list_head(struct thrift *t, unsigned *type)
{
	unsigned char b = next_byte(t);
	uint64_t n = b >> 4 == 15 ? thrift_varint(t) : b >> 4;

	*type = b & 15;
	if (*type > THRIFT_STRUCT || *type == THRIFT_STOP ||
	    n > t->n - t->pos) { /* an element has at least one byte */
		thrift_fail(t);
		return 0;
	}
	return (uint32_t)n;
}

static void thrift_skip_value(struct thrift *t, unsigned type, bool element,
			      unsigned depth);

static void skip_list(struct thrift *t, unsigned depth)
{
	unsigned type;

	for (uint32_t n = list_head(t, &type); n && !t->bad; n--)
		thrift_skip_value(t, type, true, depth);
}

static void skip_map(struct thrift *t, unsigned depth)
{
	uint64_t n = thrift_varint(t);
	unsigned char types = n ? next_byte(t) : 0;

	for (; n && !t->bad; n--) {
		thrift_skip_value(t, types >> 4, true, depth);
		thrift_skip_value(t, types & 15, true, depth);
	}
}

static void skip_struct(struct thrift *t, unsigned depth)
{
	struct thrift_field f = {0, 0};

	while (thrift_next(t, &f))
		thrift_skip_value(t, f.type, false, depth);
}

static void thrift_skip_value(struct thrift *t, unsigned type, bool element,
			      unsigned depth)
{
	if (depth == DEPTH_MAX) {
		thrift_fail(t);
		return;
	}
	switch (type) {
	case THRIFT_TRUE:
	case THRIFT_FALSE: /* the type of a field is its value */
		thrift_pass(t, element ? 1 : 0);
		break;
	case THRIFT_BYTE:
		thrift_pass(t, 1);
		break;
	case THRIFT_I16:
	case THRIFT_I32:
	case THRIFT_I64:
		thrift_varint(t);
		break;
	case THRIFT_DOUBLE:
		thrift_pass(t, 8);
		break;
	case THRIFT_BINARY:
		thrift_pass(t, thrift_varint(t));
		break;
	case THRIFT_LIST:
	case THRIFT_SET:
		skip_list(t, depth + 1);
		break;
	case THRIFT_MAP:
		skip_map(t, depth + 1);
		break;
	case THRIFT_STRUCT:
		skip_struct(t, depth + 1);
		break;
	default:
		thrift_fail(t);
	}
}

void thrift_skip(struct thrift *t, unsigned type)
{
	thrift_skip_value(t, type, false, 0);
}

int64_t thrift_number(struct thrift *t, const struct thrift_field *f)
{
	if (f->type == THRIFT_BYTE)
		return (int8_t)next_byte(t);
	if (f->type == THRIFT_I16 || f->type == THRIFT_I32 ||
	    f->type == THRIFT_I64)
		return thrift_zigzag(t);
	thrift_fail(t);
	return 0;
}

bool thrift_bool(struct thrift *t, const struct thrift_field *f)
{
	if (f->type != THRIFT_TRUE && f->type != THRIFT_FALSE)
		thrift_fail(t);
	return f->type == THRIFT_TRUE;
}

const char *thrift_text(struct thrift *t, const struct thrift_field *f,
			size_t *len)
{
	uint64_t n = f->type == THRIFT_BINARY ? thrift_varint(t) : UINT64_MAX;
	const char *s = (const char *)t->at + t->pos;

	thrift_pass(t, n);
	*len = t->bad ? 0 : n;
	return t->bad ? "" : s;
}

uint32_t thrift_list(struct thrift *t, const struct thrift_field *f,
		     unsigned *type)
{
	if (f->type == THRIFT_LIST)
		return list_head(t, type);
	thrift_fail(t);
	return 0;
}

uint32_t thrift_structs(struct thrift *t, const struct thrift_field *f)
{
	unsigned type;
	uint32_t n = thrift_list(t, f, &type);

	if (!n || type == THRIFT_STRUCT)
		return n;
	thrift_fail(t);
	return 0;
}

bool thrift_struct(struct thrift *t, const struct thrift_field *f)
{
	if (f->type != THRIFT_STRUCT)
		thrift_fail(t);
	return !t->bad;
}
