/* SPDX-License-Identifier: BSD-2-Clause */
/* What jansson does not do: text of unknown encoding, numbers that JSON lacks. */
#include "base/json.h"

#include <math.h>
#include <stdlib.h>

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
