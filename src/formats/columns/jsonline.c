/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of columns that are not arrays, as lines of JSON. */
#include "formats/columns/jsonline.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/json.h"

void jsonline_put(struct jsonline *l, const char *s, size_t n)
{
	if (l->too_long || l->no_memory)
		return;
	if (n > JSONLINE_MAX - l->n) {
		l->too_long = true;
		return;
	}
	if (n > l->room - l->n) {
		size_t room = 2 * (l->n + n) + 256;
		char *at = realloc(l->at, room);

		if (!at) {
			l->no_memory = true;
			return;
		}
		l->at = at;
		l->room = room;
	}
	if (n)
		memcpy(l->at + l->n, s, n);
	l->n += n;
}

/* Return true for text without characters to be escaped, which most text is. */
static bool is_plain_ascii(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c < 0x20 || c > 0x7e || c == '"' || c == '\\')
			return false;
	}
	return true;
}

void jsonline_text(struct jsonline *l, const char *s, size_t n)
{
	cleanup_free char *quoted = NULL;
	json_t *j;

	if (n > JSONLINE_MAX) {
		l->too_long = true;
		return;
	}
	if (is_plain_ascii(s, n)) {
		jsonline_char(l, '"');
		jsonline_put(l, s, n);
		jsonline_char(l, '"');
		return;
	}
	j = json_text(s, n);
	quoted = j ? json_dumps(j, JSON_ENCODE_ANY) : NULL;
	json_decref(j);
	if (quoted)
		jsonline_put(l, quoted, strlen(quoted));
	else
		l->no_memory = true;
}

void jsonline_hex(struct jsonline *l, const unsigned char *s, size_t n)
{
	static const char digit[] = "0123456789abcdef";

	jsonline_char(l, '"');
	for (size_t i = 0; i < n && !l->too_long && !l->no_memory; i++) {
		char two[2] = {digit[s[i] >> 4], digit[s[i] & 15]};

		jsonline_put(l, two, 2);
	}
	jsonline_char(l, '"');
}

void jsonline_integer(struct jsonline *l, const unsigned char *s,
		      unsigned bytes, bool is_signed)
{
	uint64_t v = load_le(s, bytes);
	char digits[32];
	int n;

	if (is_signed && bytes < 8 && v >> (8 * bytes - 1))
		v |= UINT64_MAX << 8 * bytes;
	if (is_signed)
		n = snprintf(digits, sizeof digits, "%" PRId64, (int64_t)v);
	else
		n = snprintf(digits, sizeof digits,
			     v > INT64_MAX ? "\"%" PRIu64 "\"" : "%" PRIu64, v);
	jsonline_put(l, digits, (size_t)n);
}

#define DECIMAL_BYTES 64
#define DECIMAL_SCALE 400 /* digits behind the point, or zeros in front of it */

/* Write the decimal digits of a magnitude of n bytes, from `end` to the front.  The
 * magnitude becomes 0.  Return how many digits there are, at least one. */
static unsigned decimal_digits(unsigned char *v, size_t n, char *end)
{
	unsigned digits = 0;
	bool more = true;

	while (more || !digits) {
		unsigned rest = 0;

		more = false;
		for (size_t i = n; i-- > 0;) {
			unsigned all = rest << 8 | v[i];

			v[i] = (unsigned char)(all / 10);
			rest = all % 10;
			more |= v[i] != 0;
		}
		*--end = (char)('0' + rest);
		digits++;
	}
	return digits;
}

void jsonline_decimal(struct jsonline *l, const unsigned char *s, size_t n,
		      int64_t scale)
{
	char room[3 * DECIMAL_BYTES + DECIMAL_SCALE], *end = room + sizeof room;
	unsigned char v[DECIMAL_BYTES];
	bool negative = n && s[n - 1] >> 7;
	unsigned carry = 1, digits;

	if (!n || n > sizeof v || scale > DECIMAL_SCALE ||
	    scale < -DECIMAL_SCALE) {
		jsonline_hex(l, s, n);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		unsigned byte = negative ? (s[i] ^ 0xffu) + carry : s[i];

		carry = byte >> 8;
		v[i] = (unsigned char)byte;
	}
	digits = decimal_digits(v, n, end);
	while ((int64_t)digits <= scale) {
		digits++;
		end[-(ptrdiff_t)digits] = '0';
	}
	jsonline_put(l, negative ? "\"-" : "\"", negative ? 2 : 1);
	jsonline_put(l, end - digits, digits - (scale > 0 ? (size_t)scale : 0));
	if (scale > 0) {
		jsonline_char(l, '.');
		jsonline_put(l, end - scale, (size_t)scale);
	}
	for (; scale < 0 && (digits > 1 || end[-1] != '0'); scale++)
		jsonline_char(l, '0');
	jsonline_char(l, '"');
}

static double half(uint32_t v)
{
	int exponent = v >> 10 & 31;
	double m = v & 1023, x;

	if (exponent == 31)
		x = m > 0 ? NAN : INFINITY;
	else
		x = exponent ? ldexp(m + 1024, exponent - 25) : ldexp(m, -24);
	return v >> 15 ? -x : x;
}

void jsonline_float(struct jsonline *l, const unsigned char *s, unsigned bytes)
{
	uint64_t bits = load_le(s, bytes);
	uint32_t low = (uint32_t)bits;
	char digits[40];
	double v;
	float f;
	int n;

	memcpy(&v, &bits, sizeof v);
	memcpy(&f, &low, sizeof f);
	if (bytes == 2)
		v = half(low);
	else if (bytes == 4)
		v = (double)f;
	if (isnan(v))
		n = snprintf(digits, sizeof digits, "\"NaN\"");
	else if (isinf(v))
		n = snprintf(digits, sizeof digits, "\"%sInfinity\"",
			     v < 0 ? "-" : "");
	else
		n = snprintf(digits, sizeof digits, "%.17g", v);
	jsonline_put(l, digits, (size_t)n);
	if (isfinite(v) && !strpbrk(digits, ".e"))
		jsonline_put(l, ".0", 2);
}

int jsonline_check(struct jsonline *l, struct error *err)
{
	int r = 0;

	if (l->too_long)
		r = error_set(
			err, -ENOTSUP,
			"a row of more than %zu bytes cannot be shown as JSON",
			JSONLINE_MAX);
	else if (l->no_memory)
		r = error_no_memory(err, "a row as JSON");
	if (r < 0)
		l->n = 0;
	l->too_long = l->no_memory = false;
	return r;
}

void jsonline_free(struct jsonline *l)
{
	free(l->at);
	l->at = NULL;
}
