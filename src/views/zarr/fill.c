/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the fill value of an array as Zarr spells it. */

/*
 * JSON has no NaN, and Python reads "-0" as an integer, so numbers are written here.
 * Values that are not numbers are base64, as Zarr v2 wants them.  The bits of a NaN are
 * kept where the format can express them (v3).
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "views/zarr/zarr.h"

#define ELEMENT_MAX 32 /* a complex number of two long doubles */

static struct fill zarr_fill_value(const struct tensor *t)
{
	const struct layout *l = !t->mosaic && t->nparts
					 ? atomic_load(&t->parts[0].layout)
					 : NULL;

	return l ? l->fill : t->fill;
}

static unsigned char fill_byte(struct fill f, uint64_t i)
{
	return f.width ? ((const unsigned char *)f.pattern)[i % f.width] : 0;
}

static void put_base64(FILE *out, struct fill f, uint32_t n)
{
	static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "abcdefghijklmnopqrstuvwxyz"
				    "0123456789+/";

	fputc('"', out);
	for (uint64_t i = 0; i < n; i += 3) {
		uint32_t v = 0;

		for (uint64_t k = i; k < i + 3; k++)
			v = v << 8 | (k < n ? fill_byte(f, k) : 0u);
		fputc(digit[v >> 18], out);
		fputc(digit[v >> 12 & 63], out);
		fputc(i + 1 < n ? digit[v >> 6 & 63] : '=', out);
		fputc(i + 2 < n ? digit[v & 63] : '=', out);
	}
	fputc('"', out);
}

/* Return a little-endian number of up to 8 bytes. */
static uint64_t fill_bits(const unsigned char *raw, unsigned size)
{
	uint64_t v = 0;

	for (unsigned i = size; i-- > 0;)
		v = v << 8 | raw[i];
	return v;
}

static double fill_float_value(const unsigned char *raw, unsigned size)
{
	struct recode r = {.from = size,
			   .width = size,
			   .to = 8,
			   .of = size == 2 ? RECODE_F16 : RECODE_F32,
			   .into = RECODE_F64};
	long double extended;
	double v;

	if (size == 16) {
		memcpy(&extended, raw, sizeof extended);
		return (double)extended;
	}
	if (size == 8)
		memcpy(&v, raw, sizeof v);
	else
		recode_run(&r, raw, &v, 1);
	return v;
}

/* Return true if these are the bits of NumPy's NaN, which readers make of "NaN". */
static bool is_plain_nan(uint64_t bits, unsigned size)
{
	return bits == (size == 2   ? UINT64_C(0x7e00)
			: size == 4 ? UINT64_C(0x7fc00000)
				    : UINT64_C(0x7ff8000000000000));
}

static void put_float(FILE *out, const unsigned char *raw, unsigned size,
		      bool v3)
{
	double v = fill_float_value(raw, size);
	char text[40];

	if (isnan(v) && v3 && !is_plain_nan(fill_bits(raw, size), size)) {
		fprintf(out, "\"0x%0*" PRIx64 "\"", (int)size * 2,
			fill_bits(raw, size));
	} else if (isnan(v)) {
		fputs("\"NaN\"", out);
	} else if (isinf(v)) {
		fputs(v > 0 ? "\"Infinity\"" : "\"-Infinity\"", out);
	} else {
		snprintf(text, sizeof text, "%.17g", v);
		fprintf(out, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
	}
}

static void put_int(FILE *out, const unsigned char *raw, unsigned size)
{
	uint64_t v = fill_bits(raw, size), sign = UINT64_C(1) << (size * 8 - 1);

	if (v & sign)
		fprintf(out, "-%" PRIu64, (sign - (v & (sign - 1))));
	else
		fprintf(out, "%" PRIu64, v);
}

/* Write one element in this machine's byte order, which is little-endian. */
static void fill_native_bytes(const struct dtype *d, struct fill f,
			      unsigned char *raw)
{
	unsigned one = d->kind == DTYPE_COMPLEX ? d->size / 2 : d->size;

	for (unsigned i = 0; i < d->size; i++)
		raw[d->big_endian ? i / one * one + (one - 1 - i % one) : i] =
			fill_byte(f, i);
}

void zarr_put_fill(FILE *out, const struct tensor *t, bool v3)
{
	unsigned char raw[ELEMENT_MAX] = {0};
	const struct dtype *d = &t->dtype;
	struct fill f = zarr_fill_value(t);

	if (d->kind > DTYPE_BOOL || d->size > ELEMENT_MAX) {
		put_base64(out, f, d->size);
		return;
	}
	fill_native_bytes(d, f, raw);
	switch (d->kind) {
	case DTYPE_INT:
		put_int(out, raw, d->size);
		break;
	case DTYPE_UINT:
		fprintf(out, "%" PRIu64, fill_bits(raw, d->size));
		break;
	case DTYPE_FLOAT:
		put_float(out, raw, d->size, v3);
		break;
	case DTYPE_COMPLEX:
		fputc('[', out);
		put_float(out, raw, d->size / 2, v3);
		fputs(", ", out);
		put_float(out, raw + d->size / 2, d->size / 2, v3);
		fputc(']', out);
		break;
	default:
		fputs(raw[0] ? "true" : "false", out);
	}
}
