/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses JSON as Python writes it, by means of jansson. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "formats/zarr/meta.h"

/*
 * Python's json writes NaN and Infinity as bare words (as in fill values of xarray), and
 * integers of any length (as in fill values of uint64). jansson has neither, so these
 * are put in quotes before jansson parses the text: two more bytes for each.
 */
#define INT64_DIGITS 19 /* digits of the largest int64 */

static bool word_at(const char *p, const char *end, const char *word, size_t *n)
{
	*n = strlen(word);
	return (size_t)(end - p) >= *n && !memcmp(p, word, *n);
}

/* Return how many bytes at `p`, where a value may begin, need quotes; 0 if none do. */
static size_t needs_quotes(const char *p, const char *end)
{
	static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
	const char *q = p;
	size_t n;

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (word_at(p, end, words[i], &n))
			return n;
	if (q < end && *q == '-')
		q++;
	for (n = 0; q < end && *q >= '0' && *q <= '9'; n++)
		q++;
	if (n < INT64_DIGITS || (q < end && strchr(".eE", *q) && *q) ||
	    (n == INT64_DIGITS &&
	     memcmp(q - n, "9223372036854775807", INT64_DIGITS) <= 0))
		return 0;
	return (size_t)(q - p);
}

static bool begins_value(char before)
{
	/* NUL: `p` is at the beginning. */
	return strchr("[:, \t\r\n", before);
}

/* Return the end of the string that begins at `p`. */
static const char *string_end(const char *p, const char *end)
{
	for (p++; p < end && *p != '"'; p++)
		if (*p == '\\' && p + 1 < end)
			p++;
	return p < end ? p + 1 : end;
}

static char *with_quotes(const char *text, size_t n, size_t *len)
{
	const char *p = text, *end = text + n;
	char *out = malloc(2 * n + 1), *to = out, before = '\0';

	while (out && p < end) {
		const char *from = p;
		size_t take;

		if (*p == '"') {
			p = string_end(p, end);
		} else if (begins_value(before) &&
			   (take = needs_quotes(p, end))) {
			*to++ = '"';
			memcpy(to, p, take);
			to += take;
			*to++ = '"';
			p += take;
			before = '"';
			continue;
		} else {
			p++;
		}
		memcpy(to, from, (size_t)(p - from));
		to += p - from;
		before = p[-1] ? p[-1] : 'x';
	}
	*len = (size_t)(to - out);
	return out;
}

int zarr_json(const char *text, size_t n, json_t **out, struct error *err)
{
	size_t len;
	cleanup_free char *quoted = with_quotes(text, n, &len);
	json_error_t where;

	*out = NULL;
	if (!quoted)
		return error_no_memory(err, "the text of a document");
	*out = json_loadb(quoted, len, JSON_ALLOW_NUL | JSON_DECODE_ANY,
			  &where);
	if (*out && json_is_object(*out))
		return 0;
	if (*out) {
		json_decref(*out);
		*out = NULL;
		return error_set(err, -EBADMSG, "it is not a JSON object");
	}
	return error_set(
		err,
		json_error_code(&where) == json_error_out_of_memory ? -ENOMEM
								    : -EBADMSG,
		"it is not JSON: %s in line %d", where.text, where.line);
}

bool zarr_count(const json_t *v, uint64_t *out)
{
	if (!json_is_integer(v) || json_integer_value(v) < 0)
		return false;
	*out = (uint64_t)json_integer_value(v);
	return true;
}

int zarr_read_shape(const json_t *doc, const char *key, unsigned *rank,
		    uint64_t out[RANK_MAX], struct error *err)
{
	const json_t *a = json_object_get(doc, key);
	size_t n = json_array_size(a);

	if (!json_is_array(a))
		return error_set(err, -EBADMSG,
				 "'%s' is not a list of whole numbers", key);
	if (n > RANK_MAX)
		return error_set(err, -ENOTSUP, "it has more than %d axes",
				 RANK_MAX);
	for (size_t i = 0; i < n; i++)
		if (!zarr_count(json_array_get(a, i), &out[i]))
			return error_set(err, -EBADMSG,
					 "'%s' is not a list of whole numbers",
					 key);
	*rank = (unsigned)n;
	return 0;
}
