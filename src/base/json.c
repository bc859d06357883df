/* SPDX-License-Identifier: BSD-2-Clause */
/* What jansson does not do: text of unknown encoding, numbers that JSON lacks. */
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

/* Shorten the number at *s, which is `len` long, to `to`; its length there. */
static size_t shorten(const char *s, size_t len, char *to)
{
	char text[40];
	double v = strtod(s, NULL);

	/* (%g drops zeros, and 15 digits are the same double again if fewer are.) */
	for (int digits = 15; digits < 17; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, v);
		if (strtod(text, NULL) != v)
			continue;
		/* JSON tells a real number by its point or exponent. */
		if (!strpbrk(text, ".e"))
			strcat(text, ".0");
		if (strlen(text) > len)
			break;
		memcpy(to, text, strlen(text));
		return strlen(text);
	}
	memmove(to, s, len);
	return len;
}

char *json_exact(const json_t *j, size_t flags)
{
	char *text = json_dumps(j, flags | JSON_REAL_PRECISION(17)), *to = text;
	bool quoted = false;

	for (const char *s = text; s && *s;) {
		size_t len = quoted ? 0 : strspn(s, "+-.0123456789eE");

		/* (Of true, false and null only an e is taken for one.) */
		if (len > 1 && strcspn(s, ".eE") < len && *s != 'e') {
			to += shorten(s, len, to);
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
