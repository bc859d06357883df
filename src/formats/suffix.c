/* SPDX-License-Identifier: BSD-2-Clause */
/* File name suffixes of the values of a binary column: from option ext=, or from their
 * first bytes. */
#include "formats/suffix.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/number.h"

/* Most values whose first bytes are examined. */
#define LOOKED_AT 16
/* Longest value, in bytes, that is parsed to see whether it is JSON. */
#define JSON_MOST (1 << 20)

/* ---- option ext= --------------------------------------------------------- */

static bool is_suffix(const char *s, size_t n)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyz"
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

	return n && n < TENSOR_SUFFIX_MAX && strspn(s, good) >= n &&
	       *s != '.' && s[n - 1] != '.';
}

/* Return where EXT begins in an item "EXT" or "COLUMN:EXT" of `n` bytes: behind the last
 * colon. */
static const char *extension_of(const char *item, size_t n)
{
	const char *colon = memrchr(item, ':', n);

	return colon ? colon + 1 : item;
}

int suffix_check(const char *option, struct error *err)
{
	for (const char *at = option;; at++) {
		size_t n = strcspn(at, "+");
		const char *ext = extension_of(at, n);

		if (!is_suffix(ext, n - (size_t)(ext - at)) || *at == ':')
			return error_set(
				err, -EINVAL,
				"'%.*s' is not EXT or COLUMN:EXT, with "
				"an EXT like jpg of at most %d "
				"characters",
				(int)min_u64(n, 80), at, TENSOR_SUFFIX_MAX - 1);
		at += n;
		if (!*at)
			return 0;
	}
}

/* Return the EXT of `column`, or with NULL the one for all columns, and its length in
 * bytes; NULL if there is none. */
static const char *suffix_find(const char *option, const char *column,
			       size_t *len)
{
	for (const char *at = option; at;) {
		size_t n = strcspn(at, "+");
		const char *ext = extension_of(at, n);
		size_t name = ext > at ? (size_t)(ext - at) - 1 : 0;

		*len = n - (size_t)(ext - at);
		if (column ? name && strlen(column) == name &&
				     !memcmp(at, column, name)
			   : ext == at)
			return ext;
		at = at[n] ? at + n + 1 : NULL;
	}
	return NULL;
}

const char *suffix_named(const char *option, const char *column, size_t *len)
{
	return suffix_find(option, column, len);
}

/* ---- first bytes ----------------------------------------------------------- */

static const struct magic {
	const char *ext;
	unsigned pos;
	unsigned char n, bytes[8];
} magics[] = {
	{"jpg", 0, 3, {0xff, 0xd8, 0xff}},
	{"png", 0, 8, {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'}},
	{"gif", 0, 4, {'G', 'I', 'F', '8'}},
	{"webp", 8, 4, {'W', 'E', 'B', 'P'}},
	{"wav", 8, 4, {'W', 'A', 'V', 'E'}},
	{"avi", 8, 4, {'A', 'V', 'I', ' '}},
	{"tif", 0, 4, {'I', 'I', '*', 0}},
	{"tif", 0, 4, {'M', 'M', 0, '*'}},
	{"npy", 0, 6, {0x93, 'N', 'U', 'M', 'P', 'Y'}},
	{"h5", 0, 8, {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'}},
	{"jp2", 4, 8, {'j', 'P', ' ', ' ', '\r', '\n', 0x87, '\n'}},
	{"avif", 4, 8, {'f', 't', 'y', 'p', 'a', 'v', 'i', 'f'}},
	{"mp4", 4, 4, {'f', 't', 'y', 'p'}},
	{"flac", 0, 4, {'f', 'L', 'a', 'C'}},
	{"ogg", 0, 4, {'O', 'g', 'g', 'S'}},
	{"mp3", 0, 3, {'I', 'D', '3'}},
	{"pdf", 0, 5, {'%', 'P', 'D', 'F', '-'}},
	{"zip", 0, 4, {'P', 'K', 3, 4}},
	{"gz", 0, 3, {0x1f, 0x8b, 8}},
	{"zst", 0, 4, {0x28, 0xb5, 0x2f, 0xfd}},
};

static bool is_json(const char *s, size_t n)
{
	json_t *j;
	bool ok;

	if (!n || n > JSON_MOST || (*s != '{' && *s != '['))
		return false;
	j = json_loadb(s, n, JSON_ALLOW_NUL, NULL);
	ok = j;
	json_decref(j);
	return ok;
}

const char *suffix_guess(const void *value, size_t n)
{
	const unsigned char *v = value;

	for (unsigned i = 0; i < sizeof magics / sizeof *magics; i++) {
		const struct magic *m = &magics[i];

		if (n >= m->pos + m->n && !memcmp(v + m->pos, m->bytes, m->n) &&
		    (m->pos != 8 || !memcmp(v, "RIFF", 4)))
			return m->ext;
	}
	if (n >= 26 && v[0] == 'B' && v[1] == 'M' && load_le32(v + 2) == n)
		return "bmp";
	return is_json(value, n) ? "json" : "bin";
}

struct looking {
	const char *ext;
};

static void suffix_look_at(void *ctx, const char *s, size_t len)
{
	struct looking *l = ctx;

	if (len && !l->ext)
		l->ext = suffix_guess(s, len);
}

/* Guess a suffix from the first values that are not empty.  A read error is ignored: it
 * is reported when the value is read. */
static const char *suffix_of_values(struct array *a)
{
	uint64_t rows = a->along ? a->along[0] : a->t.shape[0];
	struct looking l = {NULL};
	struct error err = {0};
	struct box one;

	memset(&one, 0, sizeof one);
	one.count[0] = 1;
	for (uint64_t i = 0; i < min_u64(rows, LOOKED_AT) && !l.ext; i++) {
		one.start[0] = i;
		if (a->ops->values(a, 0, &one, suffix_look_at, &l, &err) < 0)
			break;
	}
	return l.ext ? l.ext : "bin";
}

int suffix_set(struct array *a, const char *column, bool unread,
	       struct error *err)
{
	const char *option = a->source->views.ext, *ext;
	size_t n;

	ext = suffix_find(option, column, &n);
	if (!ext)
		ext = suffix_find(option, NULL, &n);
	if (!ext) {
		ext = unread || !a->t.elements ? "bin" : suffix_of_values(a);
		n = strlen(ext);
	}
	if (n >= TENSOR_SUFFIX_MAX)
		return error_set(err, -EINVAL, "ext= is too long");
	snprintf(a->t.suffix, sizeof a->t.suffix, ".%.*s", (int)n, ext);
	return 0;
}
