/* SPDX-License-Identifier: BSD-2-Clause */
/* Element types: kind, size, byte order; their NumPy spelling. */
#include "tensor/dtype.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

/*
 * The spelling is that of np.save: a structure is the Python list that its dtype.descr
 * prints, padding shown as nameless voids, names as Python's repr shows them.  Types
 * that NumPy cannot express get a spelling too, because people read it: members that
 * overlap, or two members of one name, which HDF5 does not let anybody write, give a
 * text that NumPy refuses.
 */

/* A buffer that text is appended to; `used` counts on when the text no longer fits. */
struct text_out {
	char *at;
	size_t used, room;
};
__attribute__((format(printf, 2, 3))) static void
dtype_print(struct text_out *o, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(o->used < o->room ? o->at + o->used : NULL,
		      o->used < o->room ? o->room - o->used : 0, fmt, ap);
	va_end(ap);
	o->used += n > 0 ? (size_t)n : 0;
}

/* Append `n` bytes.  Shapes and plain types are appended by this, because the header of a
 * .npy file is written for each request, and vsnprintf took a fifth of its time. */
static void dtype_append(struct text_out *o, const char *text, size_t n)
{
	if (o->used < o->room) {
		size_t fits = min_u64(n, o->room - o->used - 1);

		memcpy(o->at + o->used, text, fits);
		o->at[o->used + fits] = '\0';
	}
	o->used += n;
}

static void dtype_print_shape(struct text_out *o, const uint64_t *shape,
			      unsigned rank)
{
	char number[2 + DIGITS_MAX] = ", ";

	dtype_append(o, "(", 1);
	for (unsigned i = 0; i < rank; i++) {
		unsigned n = digits_put(number + 2, shape[i]);

		dtype_append(o, i ? number : number + 2, i ? 2 + n : n);
	}
	dtype_append(o, rank == 1 ? ",)" : ")", rank == 1 ? 2 : 1);
}

void dtype_shape_text(const uint64_t *shape, unsigned rank, char *buf, size_t n)
{
	struct text_out o = {buf, 0, n};

	dtype_print_shape(&o, shape, rank);
}

/* ---- names as Python writes them ----------------------------------------- */

/* Return the character at `s` and set *len to its bytes; *len is 0 when it is not
 * UTF-8. */
static uint32_t utf8_read(const unsigned char *s, unsigned *len)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned n = *s < 0x80   ? 1
		     : *s < 0xc0 ? 0
		     : *s < 0xe0 ? 2
		     : *s < 0xf0 ? 3
		     : *s < 0xf8 ? 4
				 : 0;
	uint32_t c = n > 1 ? *s & (0x7fu >> n) : *s;

	*len = 0;
	for (unsigned i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if (!n || c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	*len = n;
	return c;
}

/*
 * Python escapes what Unicode calls control, format, private, or space.  It also
 * escapes characters that are not assigned yet, which differ between versions of
 * Python; these are left as they are, and mean the same.
 */
static bool character_is_printable(uint32_t c)
{
	static const uint32_t not [][2] = {
		{0, 0x1f},          {0x7f, 0xa0},       {0xad, 0xad},
		{0x600, 0x605},     {0x61c, 0x61c},     {0x6dd, 0x6dd},
		{0x70f, 0x70f},     {0x890, 0x891},     {0x8e2, 0x8e2},
		{0x1680, 0x1680},   {0x180e, 0x180e},   {0x2000, 0x200f},
		{0x2028, 0x202f},   {0x205f, 0x206f},   {0x3000, 0x3000},
		{0xd800, 0xf8ff},   {0xfeff, 0xfeff},   {0xfff0, 0xfffb},
		{0xfffe, 0xffff},   {0x110bd, 0x110bd}, {0x110cd, 0x110cd},
		{0x13430, 0x1345f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
		{0xe0000, 0xe00ff}, {0xe01f0, 0x10ffff}};

	for (size_t i = 0; i < sizeof not / sizeof *not ; i++)
		if (c <= not [i][1])
			return c < not [i][0];
	return true;
}

static void dtype_print_character(struct text_out *o, uint32_t c,
				  const char *bytes, unsigned len, char quote)
{
	if (c == '\t')
		dtype_print(o, "\\t");
	else if (c == '\n')
		dtype_print(o, "\\n");
	else if (c == '\r')
		dtype_print(o, "\\r");
	else if (c == '\\' || c == (unsigned char)quote)
		dtype_print(o, "\\%c", (char)c);
	else if (character_is_printable(c))
		dtype_print(o, "%.*s", (int)len, bytes);
	else if (c < 0x100)
		dtype_print(o, "\\x%02x", (unsigned)c);
	else if (c < 0x10000)
		dtype_print(o, "\\u%04x", (unsigned)c);
	else
		dtype_print(o, "\\U%08x", (unsigned)c);
}

/* Print as Python's repr() does.  Bytes that are not UTF-8 become U+DC80 and up, as
 * os.fsdecode makes them. */
static void dtype_print_repr(struct text_out *o, const char *s)
{
	char quote = strchr(s, '\'') && !strchr(s, '"') ? '"' : '\'';
	unsigned len;

	dtype_print(o, "%c", quote);
	for (; *s; s += len) {
		uint32_t c = utf8_read((const unsigned char *)s, &len);

		if (!len) {
			c = 0xdc00 + (unsigned char)*s;
			len = 1;
		}
		dtype_print_character(o, c, s, len, quote);
	}
	dtype_print(o, "%c", quote);
}

/* ---- spelling ------------------------------------------------------------ */

static const struct {
	char letter;      /* NumPy's letter; 0: NumPy has none */
	const char *name; /* of numbers: the name before the number of bits */
	bool has_order;
} kinds[] = {
	[DTYPE_INT] = {'i', "int", true},
	[DTYPE_UINT] = {'u', "uint", true},
	[DTYPE_FLOAT] = {'f', "float", true},
	[DTYPE_COMPLEX] = {'c', "complex", true},
	[DTYPE_BOOL] = {'b', NULL, false},
	[DTYPE_BYTES] = {'S', NULL, false},
	[DTYPE_OPAQUE] = {'V', NULL, false},
	[DTYPE_STRUCT] = {0, NULL, false},
	[DTYPE_STRING] = {0, NULL, false},
	[DTYPE_TEXT] = {0, NULL, false},
	[DTYPE_RAGGED] = {0, NULL, false},
	[DTYPE_BLOB] = {0, NULL, false},
	[DTYPE_OTHER] = {0, NULL, false},
};

static void dtype_print_plain(struct text_out *o, const struct dtype *d);
static void dtype_print_struct(struct text_out *o, const struct dtype *d);

static void dtype_print_descr(struct text_out *o, const struct dtype *d)
{
	if (d->kind == DTYPE_STRUCT)
		dtype_print_struct(o, d);
	else
		dtype_print_plain(o, d);
}

static void dtype_print_plain(struct text_out *o, const struct dtype *d)
{
	char order = '|', plain[2 + DIGITS_MAX];

	switch (d->kind) {
	case DTYPE_STRING:
		dtype_print(o, "str");
		break;
	case DTYPE_TEXT:
		dtype_print(o, "json");
		break;
	case DTYPE_RAGGED:
		dtype_print_descr(o, &d->fields->type);
		dtype_print(o, " sequence");
		break;
	case DTYPE_BLOB:
		dtype_print(o, "bytes");
		break;
	case DTYPE_OTHER:
		dtype_print(o, "%s", d->text ? d->text : "unknown");
		break;
	default:
		if (kinds[d->kind].has_order && d->size > 1)
			order = d->big_endian ? '>' : '<';
		plain[0] = order;
		plain[1] = kinds[d->kind].letter;
		dtype_append(o, plain, 2 + digits_put(plain + 2, d->size));
	}
}

static void dtype_print_padding(struct text_out *o, uint64_t n,
				const char *before)
{
	dtype_print(o, "%s('', '|V%llu')", before, (unsigned long long)n);
}

bool dtype_field_size(const struct dtype_field *f, uint64_t *count,
		      uint64_t *size)
{
	uint64_t n = 1;

	for (uint32_t i = 0; i < f->rank; i++)
		if (mul_overflows(n, f->dims[i], &n))
			return false;
	*count = n;
	return !mul_overflows(n, f->type.size, size);
}

static void dtype_print_field_name(struct text_out *o,
				   const struct dtype_field *f)
{
	if (f->title) {
		dtype_print(o, "(");
		dtype_print_repr(o, f->title);
		dtype_print(o, ", ");
	}
	dtype_print_repr(o, f->name);
	dtype_print(o, f->title ? ")" : "");
}

static void dtype_print_struct(struct text_out *o, const struct dtype *d)
{
	uint64_t at = 0, count, size;

	dtype_print(o, "[");
	for (uint32_t i = 0; i < d->nfields; i++) {
		const struct dtype_field *f = &d->fields[i];
		bool quoted = f->type.kind != DTYPE_STRUCT;

		if (f->offset > at)
			dtype_print_padding(o, f->offset - at, i ? ", " : "");
		dtype_print(o, i || f->offset > at ? ", (" : "(");
		dtype_print_field_name(o, f);
		dtype_print(o, quoted ? ", '" : ", ");
		dtype_print_descr(o, &f->type);
		dtype_print(o, quoted ? "'" : "");
		if (f->rank) {
			dtype_print(o, ", ");
			dtype_print_shape(o, f->dims, f->rank);
		}
		dtype_print(o, ")");
		if (!dtype_field_size(f, &count, &size))
			size = 0;
		at = max_u64(at, f->offset + size);
	}
	if (d->size > at)
		dtype_print_padding(o, d->size - at, d->nfields ? ", " : "");
	dtype_print(o, "]");
}

size_t dtype_descr(const struct dtype *d, char *buf, size_t n)
{
	struct text_out o = {buf, 0, n};

	if (n)
		*buf = '\0';
	dtype_print_descr(&o, d);
	return o.used;
}

static void dtype_print_name(struct text_out *o, const struct dtype *d)
{
	switch (d->kind) {
	case DTYPE_BOOL:
		dtype_print(o, "bool");
		break;
	case DTYPE_BYTES:
		dtype_print(o, "string of %u bytes", (unsigned)d->size);
		break;
	case DTYPE_OPAQUE:
		dtype_print(o, "opaque of %u bytes", (unsigned)d->size);
		break;
	case DTYPE_STRUCT:
		dtype_print(o, "structure of %u field%s", (unsigned)d->nfields,
			    d->nfields == 1 ? "" : "s");
		break;
	case DTYPE_STRING:
		dtype_print(o, "string");
		break;
	case DTYPE_RAGGED:
		dtype_print(o, "sequence of ");
		dtype_print_name(o, &d->fields->type);
		break;
	case DTYPE_BLOB:
		dtype_print(o, "bytes");
		break;
	case DTYPE_TEXT:
	case DTYPE_OTHER:
		dtype_print(o, "%s", d->text ? d->text : "unknown");
		break;
	default:
		if (d->kind == DTYPE_FLOAT && d->size == 16)
			dtype_print(o, "longdouble");
		else if (d->kind == DTYPE_COMPLEX && d->size == 32)
			dtype_print(o, "clongdouble");
		else
			dtype_print(o, "%s%u", kinds[d->kind].name,
				    (unsigned)d->size * 8);
	}
}

void dtype_name(const struct dtype *d, char *buf, size_t n)
{
	struct text_out o = {buf, 0, n};

	if (n)
		*buf = '\0';
	dtype_print_name(&o, d);
	if (o.used >= n && n > sizeof "...") {
		char *end = buf + n - sizeof "...";

		while (end > buf && *end != ' ' && *end != ',')
			end--;
		strcpy(end > buf ? end : buf + n - sizeof "...", "...");
	}
}

/* ---- comparing ----------------------------------------------------------- */

static bool dtype_same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

bool dtype_same_place(const struct dtype_field *a, const struct dtype_field *b)
{
	return a->offset == b->offset && a->rank == b->rank &&
	       (a->dims == b->dims || !a->rank ||
		!memcmp(a->dims, b->dims, a->rank * sizeof *a->dims));
}

bool dtype_equal(const struct dtype *a, const struct dtype *b)
{
	if (a->kind != b->kind || a->size != b->size || a->vlen != b->vlen ||
	    a->padding != b->padding || a->nfields != b->nfields ||
	    !dtype_same_text(a->text, b->text))
		return false;
	if (kinds[a->kind].has_order && a->size > 1 &&
	    a->big_endian != b->big_endian)
		return false;
	if (a->fields == b->fields)
		return true;
	for (uint32_t i = 0; i < a->nfields; i++)
		if (!dtype_same_text(a->fields[i].name, b->fields[i].name) ||
		    !dtype_same_text(a->fields[i].title, b->fields[i].title) ||
		    !dtype_same_place(&a->fields[i], &b->fields[i]) ||
		    !dtype_equal(&a->fields[i].type, &b->fields[i].type))
			return false;
	return true;
}

/* ---- order --------------------------------------------------------------- */

static int dtype_compare_declared(const void *a, const void *b, void *fields)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const struct dtype_field *f = fields;

	if (f[x].declared != f[y].declared)
		return f[x].declared < f[y].declared ? -1 : 1;
	return x < y ? -1 : x > y;
}

void dtype_declared(const struct dtype *d, uint32_t *out)
{
	for (uint32_t i = 0; i < d->nfields; i++)
		out[i] = i;
	qsort_r(out, d->nfields, sizeof *out, dtype_compare_declared,
		(void *)(uintptr_t)d->fields);
}
