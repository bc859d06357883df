/* SPDX-License-Identifier: BSD-2-Clause */
/* Element types: kind, size, byte order; their NumPy spelling. */
#include "tensor/dtype.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

unsigned dtype_swap_width(const struct dtype *d)
{
	switch (d->kind) {
	case DTYPE_INT:
	case DTYPE_UINT:
	case DTYPE_FLOAT:
		return d->size > 1 ? d->size : 0;
	case DTYPE_COMPLEX:
		return d->size / 2;
	default:
		return 0;
	}
}

static char dtype_letter(const struct dtype *d)
{
	switch (d->kind) {
	case DTYPE_INT:
		return 'i';
	case DTYPE_UINT:
		return 'u';
	case DTYPE_FLOAT:
		return 'f';
	case DTYPE_COMPLEX:
		return 'c';
	case DTYPE_BOOL:
		return 'b';
	default:
		return 0;
	}
}

void dtype_descr(const struct dtype *d, char *buf, size_t n)
{
	char letter = dtype_letter(d), order = '|';

	if (!letter) {
		snprintf(buf, n, "%s",
			 d->kind == DTYPE_STRING ? "str" : d->text);
		return;
	}
	if (d->size > 1)
		order = d->big_endian ? '>' : '<';
	snprintf(buf, n, "%c%c%u", order, letter, (unsigned)d->size);
}

void dtype_name(const struct dtype *d, char *buf, size_t n)
{
	static const char *const names[] = {
		[DTYPE_INT] = "int",
		[DTYPE_UINT] = "uint",
		[DTYPE_FLOAT] = "float",
		[DTYPE_COMPLEX] = "complex",
	};

	switch (d->kind) {
	case DTYPE_BOOL:
		snprintf(buf, n, "bool");
		break;
	case DTYPE_STRING:
		snprintf(buf, n, "string");
		break;
	case DTYPE_OTHER:
		snprintf(buf, n, "%s", d->text);
		break;
	default:
		snprintf(buf, n, "%s%u", names[d->kind], (unsigned)d->size * 8);
	}
}

bool dtype_equal(const struct dtype *a, const struct dtype *b)
{
	return a->kind == b->kind && a->size == b->size && a->vlen == b->vlen &&
	       (a->size == 1 || a->big_endian == b->big_endian);
}

/* snprintf that remembers where it is and whether it still fits. */
struct text_out {
	char *at;
	size_t used, room;
};
__attribute__((format(printf, 2, 3))) static void put(struct text_out *o,
						      const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(o->used < o->room ? o->at + o->used : NULL,
		      o->used < o->room ? o->room - o->used : 0, fmt, ap);
	va_end(ap);
	o->used += n > 0 ? (size_t)n : 0;
}

/*
 * The dictionary that np.save writes: keys sorted, ", " after every item, and
 * spaces that leave room for the first axis to grow to 21 digits; then padding
 * to a multiple of 64 (a whole 64 when nothing is missing) that ends in '\n'.
 */
size_t dtype_npy_header(const struct dtype *d, unsigned rank,
			const uint64_t *shape, void *buf, size_t n)
{
	char text[1024], descr[80];
	struct text_out o = {text, 0, sizeof text};
	unsigned char *out = buf;
	size_t total, pad;

	dtype_descr(d, descr, sizeof descr);
	put(&o, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
	for (unsigned i = 0; i < rank; i++)
		put(&o, i ? ", %llu" : "%llu", (unsigned long long)shape[i]);
	put(&o, rank == 1 ? ",), }" : "), }");
	if (rank)
		put(&o, "%*s", (int)(21 - digits_of(shape[0])), "");
	if (o.used >= sizeof text)
		return 0;
	pad = 64 - (10 + o.used + 1) % 64;
	total = 10 + o.used + pad + 1;
	if (total > n || total > 65535)
		return 0;
	memcpy(out, "\x93NUMPY\x01", 7);
	out[7] = 0;
	out[8] = (unsigned char)((total - 10) & 0xff);
	out[9] = (unsigned char)((total - 10) >> 8);
	memcpy(out + 10, text, o.used);
	memset(out + 10 + o.used, ' ', pad);
	out[total - 1] = '\n';
	return total;
}

void dtype_shape_text(const uint64_t *shape, unsigned rank, char *buf, size_t n)
{
	struct text_out o = {buf, 0, n};

	put(&o, "(");
	for (unsigned i = 0; i < rank; i++)
		put(&o, i ? ", %llu" : "%llu", (unsigned long long)shape[i]);
	put(&o, rank == 1 ? ",)" : ")");
}
