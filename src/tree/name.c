/* SPDX-License-Identifier: BSD-2-Clause */
/* Stored names that no file can have, escaped to names that a file can have. */
#include "tree/tree.h"

#include <stdio.h>
#include <string.h>

/*
 * Every name that a file system accepts stays as it is, '%' included.  A name is
 * changed only where it must be; `user.tensorfs.name` then has the original.  Two names
 * may become equal; the tree numbers these ("~2").
 */

#define HASH_TAIL 17 /* '~' and 16 digits */

static uint64_t name_hash(const char *s)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (; *s; s++)
		hash = (hash ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
	return hash;
}

/* Write one byte: "%XX" when `all` or if it is a slash, otherwise the byte itself.
 * Returns the number of bytes written. */
static size_t escape_byte(unsigned char c, bool all, char out[4])
{
	if (all || c == '/')
		return (size_t)snprintf(out, 4, "%%%02X", c);
	out[0] = (char)c;
	return 1;
}

/* Escape as many bytes of `name` as fit into `max` bytes, and return the number
 * written; *rest is the first byte that did not fit. */
static size_t escape_some(const char *name, bool all, char *out, size_t max,
			  const char **rest)
{
	size_t n = 0;

	for (; *name; name++) {
		char one[4];
		size_t len = escape_byte((unsigned char)*name, all, one);

		if (n + len > max)
			break;
		memcpy(out + n, one, len);
		n += len;
	}
	*rest = name;
	return n;
}

/* Return the length of `out` without an incomplete UTF-8 sequence at its end (RFC
 * 3629), or `n` if there is none.  `next` is the byte that would follow. */
static size_t utf8_cut(const char *out, size_t n, unsigned char next)
{
	size_t back;

	if ((next & 0xc0) != 0x80)
		return n;
	for (back = 1; back <= 3 && back <= n; back++) {
		unsigned char c = (unsigned char)out[n - back];

		if (c >= 0xc0)
			return n - back;
		if (c < 0x80)
			break;
	}
	return n;
}

bool tree_escape(const char *name, char out[FILES_NAME_MAX + 1])
{
	bool all = !strcmp(name, ".") || !strcmp(name, "..");
	const char *rest;
	size_t n;

	if (*name == '\0') {
		strcpy(out, "%00");
		return true;
	}
	n = escape_some(name, all, out, FILES_NAME_MAX, &rest);
	if (*rest) {
		n = escape_some(name, all, out, FILES_NAME_MAX - HASH_TAIL,
				&rest);
		n = utf8_cut(out, n, (unsigned char)*rest);
		n += (size_t)snprintf(out + n, HASH_TAIL + 1, "~%016llx",
				      (unsigned long long)name_hash(name));
	}
	out[n] = '\0';
	return strcmp(name, out) != 0;
}
