/* SPDX-License-Identifier: BSD-2-Clause */
/* What jansson lacks: text of unknown encoding, numbers that JSON does not have. */
#include "base/json.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

json_t *json_text(const char *s, size_t len)
{
	json_t *j = json_stringn(s, len);
	cleanup_free char *wide = NULL;
	size_t n = 0;

	if (j)
		return j;
	wide = malloc(2 * len + 1);
	if (!wide)
		return NULL;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c < 0x80) {
			wide[n++] = (char)c;
		} else {
			wide[n++] = (char)(0xc0 | c >> 6);
			wide[n++] = (char)(0x80 | (c & 0x3f));
		}
	}
	return json_stringn(wide, n);
}

json_t *json_number(double v)
{
	if (isfinite(v))
		return json_real(v);
	if (isnan(v))
		return json_string("NaN");
	return json_string(v < 0 ? "-Infinity" : "Infinity");
}

#define NUMBER_MAX 40 /* longer than any number that jansson writes */

/* Write the real number `text`, which is `len` long, with the fewest digits that make the
 * same double again to `to`, where there is as much room.  Returns its length there. */
static size_t json_shorten_number(const char *text, size_t len, char *to)
{
	char shorter[NUMBER_MAX];
	double v = strtod(text, NULL);

	/* %g drops zeros, and 15 digits are the same double again if fewer are. */
	for (int digits = 15; digits < 17; digits++) {
		snprintf(shorter, sizeof shorter, "%.*g", digits, v);
		if (strtod(shorter, NULL) != v)
			continue;
		/* JSON tells a real number by its point or exponent. */
		if (!strpbrk(shorter, ".e"))
			strcat(shorter, ".0");
		if (strlen(shorter) > len)
			break;
		memcpy(to, shorter, strlen(shorter));
		return strlen(shorter);
	}
	memcpy(to, text, len);
	return len;
}

static bool json_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The length of the number that begins at `s`, 0 if none does; *real is set to whether it
 * has a point or an exponent. */
static size_t number_length(const char *s, bool *real)
{
	size_t n = s[0] == '-';

	*real = false;
	if (!json_is_digit(s[n]))
		return 0;
	for (;; n++) {
		bool mark = s[n] == '.' || s[n] == 'e' || s[n] == 'E';

		if (!mark && !json_is_digit(s[n]) && s[n] != '+' && s[n] != '-')
			return n;
		*real |= mark;
	}
}

char *json_exact(const json_t *j, size_t flags)
{
	char *text = json_dumps(j, flags | JSON_REAL_PRECISION(17)), *to = text;
	char number[NUMBER_MAX];
	bool quoted = false;

	for (const char *s = text; s && *s;) {
		bool real;
		size_t len = quoted ? 0 : number_length(s, &real);

		if (len > 0 && len < sizeof number && real) {
			memcpy(number, s, len);
			number[len] = '\0';
			to += json_shorten_number(number, len, to);
			s += len;
			continue;
		}
		if (*s == '"')
			quoted = !quoted;
		if (*s == '\\' && s[1])
			*to++ = *s++;
		*to++ = *s++;
	}
	if (to)
		*to = '\0';
	return text;
}

void json_put_text(FILE *out, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	putc('"', out);
	while (*s) {
		unsigned n = *s < 0x80                    ? 1
			     : (*s >= 0xc2 && *s <= 0xdf) ? 2
			     : (*s >= 0xe0 && *s <= 0xef) ? 3
			     : (*s >= 0xf0 && *s <= 0xf4) ? 4
							  : 0;
		bool good = n > 0;

		for (unsigned i = 1; good && i < n; i++)
			good = (s[i] & 0xc0) == 0x80;
		/* Over-long forms, surrogates, beyond U+10FFFF. */
		if (good && ((*s == 0xe0 && s[1] < 0xa0) ||
			     (*s == 0xed && s[1] > 0x9f) ||
			     (*s == 0xf0 && s[1] < 0x90) ||
			     (*s == 0xf4 && s[1] > 0x8f)))
			good = false;
		if (!good) {
			fprintf(out, "\\udc%02x", *s++);
		} else if (*s == '"' || *s == '\\') {
			fprintf(out, "\\%c", *s++);
		} else if (*s < 0x20 || *s == 0x7f) {
			fprintf(out, "\\u%04x", *s++);
		} else {
			fwrite(s, 1, n, out);
			s += n;
		}
	}
	putc('"', out);
}
