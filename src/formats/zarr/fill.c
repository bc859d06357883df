/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads fill values of Zarr: from JSON to an element as it is stored. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "codec/pipeline.h"
#include "codec/recode.h"
#include "formats/zarr/meta.h"

static int bad_fill(const struct dtype *d, struct error *err)
{
	char name[80];

	dtype_name(d, name, sizeof name);
	return error_set(err, -EBADMSG, "'fill_value' is not of type %s", name);
}

/* ---- bytes --------------------------------------------------------------- */

static int base64_value(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *p = c ? strchr(digits, c) : NULL;

	return p ? (int)(p - digits) : -1;
}

/* Decode base64 to at most `room` bytes; return false if it is not base64 or has
 * more. */
static bool base64(const char *s, unsigned char *out, size_t room)
{
	size_t n = strlen(s), made = 0;
	uint32_t bits = 0;
	unsigned have = 0;

	if (n % 4)
		return false;
	for (unsigned i = 0; i < 2 && n && s[n - 1] == '='; i++)
		n--;
	for (size_t i = 0; i < n; i++) {
		int v = base64_value(s[i]);

		if (v < 0)
			return false;
		bits = bits << 6 | (uint32_t)v;
		have += 6;
		if (have < 8)
			continue;
		have -= 8;
		if (made == room)
			return false;
		out[made++] = (unsigned char)(bits >> have);
	}
	return true;
}

/* Read a list of `n` bytes, as version 3 writes raw bits. */
static bool byte_list(const json_t *v, unsigned char *out, size_t n)
{
	if (json_array_size(v) != n)
		return false;
	for (size_t i = 0; i < n; i++) {
		uint64_t b;

		if (!zarr_count(json_array_get(v, i), &b) || b > 255)
			return false;
		out[i] = (unsigned char)b;
	}
	return true;
}

static bool bytes_fill(const json_t *v, const struct dtype *d,
		       unsigned char *out)
{
	if (json_is_array(v))
		return byte_list(v, out, d->size);
	if (json_is_string(v))
		return base64(json_string_value(v), out, d->size);
	return (json_is_integer(v) && !json_integer_value(v)) ||
	       json_is_false(v);
}

/* ---- numbers ------------------------------------------------------------- */

/* Return true for an integer as zarr_json puts it in quotes: "-12". */
static bool is_digits(const char *s)
{
	s += *s == '-';
	return *s && !s[strspn(s, "0123456789")];
}

/* Read a whole number: its sign and magnitude. */
static bool whole(const json_t *v, bool *negative, uint64_t *size)
{
	const char *s = json_string_value(v);
	double x;
	char *end;

	if (json_is_boolean(v)) {
		*negative = false;
		*size = json_is_true(v);
		return true;
	}
	if (json_is_integer(v)) {
		int64_t i = json_integer_value(v);

		*negative = i < 0;
		*size = i < 0 ? -(uint64_t)i : (uint64_t)i;
		return true;
	}
	if (json_is_real(v)) { /* some writers write 0.0 for 0 */
		x = json_real_value(v);
		*negative = x < 0;
		*size = (uint64_t)(fabs(x) < 0x1p53 ? fabs(x) : 0);
		return fabs(x) < 0x1p53 && x == floor(x);
	}
	if (!s || !is_digits(s))
		return false;
	*negative = *s == '-';
	errno = 0;
	*size = strtoull(s + *negative, &end, 10);
	return !errno && !*end;
}

static bool int_fill(const json_t *v, const struct dtype *d, unsigned char *out)
{
	unsigned bits = 8 * d->size;
	bool negative, is_signed = d->kind == DTYPE_INT;
	uint64_t size, most;

	/* In dates "NaT" (not a time) is NumPy's least number. */
	if (d->text && d->size == 8 && json_is_string(v) &&
	    !strcmp(json_string_value(v), "NaT")) {
		store_le64(out, UINT64_C(1) << 63);
		return true;
	}
	if (!whole(v, &negative, &size))
		return false;
	most = d->kind == DTYPE_BOOL ? 1 : UINT64_MAX >> (64 - bits);
	if (is_signed)
		most = (most >> 1) + negative;
	if (size > most || (negative && size && !is_signed))
		return false;
	store_le64(out, negative ? -size : size);
	return true;
}

/* Read the bits of a float as version 3 writes them: "0x7fc00000". */
static bool hex_fill(const char *s, uint32_t bytes, unsigned char *out)
{
	uint64_t bits = 0;

	if (strncmp(s, "0x", 2) != 0 || strlen(s) != 2 + 2 * (size_t)bytes ||
	    bytes > 8)
		return false;
	for (s += 2; *s; s++) {
		const char *digits = "0123456789abcdef";
		const char *p = strchr(digits, *s | 0x20);

		if (!p || *s < '0' || (*s < 'A' && *s > '9'))
			return false;
		bits = bits << 4 | (uint64_t)(p - digits);
	}
	store_le64(out, bits);
	return true;
}

/* Read a number; only integers keep more digits than a double has. */
static bool to_real(const json_t *v, long double *out)
{
	const char *s = json_string_value(v);
	bool negative;
	uint64_t size;

	if (json_is_integer(v))
		*out = (long double)json_integer_value(v);
	else if (json_is_real(v))
		*out = (long double)json_real_value(v);
	else if (s && !strcmp(s, "NaN"))
		*out = (long double)NAN;
	else if (s && !strcmp(s, "Infinity"))
		*out = (long double)INFINITY;
	else if (s && !strcmp(s, "-Infinity"))
		*out = -(long double)INFINITY;
	else if (s && whole(v, &negative, &size))
		*out = negative ? -(long double)size : (long double)size;
	else if (s && is_digits(s))
		*out = (long double)strtod(s, NULL);
	else
		return false;
	return true;
}

/* Write one float of `bytes` bytes, little-endian. */
static bool float_fill(const json_t *v, uint32_t bytes, unsigned char *out)
{
	const struct recode half = {.from = 8,
				    .to = 2,
				    .width = 8,
				    .of = RECODE_F64,
				    .into = RECODE_F16};
	const char *s = json_string_value(v);
	long double extended;
	double x;
	float f;

	if (s && hex_fill(s, bytes, out))
		return true;
	if (!to_real(v, &extended))
		return false;
	x = (double)extended;
	f = (float)x; /* rounded twice, as NumPy does it */
	switch (bytes) {
	case 2:
		recode_run(&half, &x, out, 1);
		if (isnan(x)) /* NumPy's NaN; libhdf5 makes another one */
			memcpy(out, "\0\x7e", 2);
		return true;
	case 4:
		memcpy(out, &f, sizeof f);
		return true;
	case 8:
		memcpy(out, &x, sizeof x);
		return true;
	default:
		memcpy(out, &extended, 10);
		return bytes == 16 && sizeof extended == 16;
	}
}

static bool complex_fill(const json_t *v, const struct dtype *d,
			 unsigned char *out)
{
	uint32_t half = d->size / 2;

	if (!json_is_array(v)) /* a real number: the imaginary part is 0 */
		return float_fill(v, half, out);
	return json_array_size(v) == 2 &&
	       float_fill(json_array_get(v, 0), half, out) &&
	       float_fill(json_array_get(v, 1), half, out + half);
}

static bool fill_from_json(const json_t *v, const struct dtype *d,
			   unsigned char *out)
{
	bool ok;

	switch (d->kind) {
	case DTYPE_INT:
	case DTYPE_UINT:
	case DTYPE_BOOL:
		ok = int_fill(v, d, out);
		break;
	case DTYPE_FLOAT:
		ok = float_fill(v, d->size, out);
		break;
	case DTYPE_COMPLEX:
		ok = complex_fill(v, d, out);
		break;
	default:
		return bytes_fill(v, d, out);
	}
	if (ok && d->big_endian)
		swap_bytes(out, d->size,
			   d->kind == DTYPE_COMPLEX ? d->size / 2 : d->size);
	return ok;
}

int zarr_read_fill(const json_t *v, struct intern *in, struct zarr_array *z,
		   struct error *err)
{
	uint32_t size = z->stored.size;
	cleanup_free unsigned char *fill = calloc(1, size + 32);
	bool zeros = true;

	if (!fill)
		return error_no_memory(err, "the fill value");
	z->fill = NULL;
	z->no_fill = !v || json_is_null(v);
	if (z->no_fill)
		return 0;
	if (!fill_from_json(v, &z->stored, fill))
		return bad_fill(&z->stored, err);
	for (uint32_t i = 0; i < size; i++)
		zeros &= !fill[i];
	if (zeros)
		return 0;
	z->fill = intern_bytes(in, fill, size);
	return z->fill ? 0 : error_no_memory(err, "the fill value");
}
