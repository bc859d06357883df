/* SPDX-License-Identifier: BSD-2-Clause */
/* Stored names that no file can have, made into some that one can. */
#include "tree/tree.h"

#include <stdio.h>
#include <string.h>

/*
 * Everything that a file system accepts stays as it is, '%' included: a name is
 * changed only where it must be, and then `user.tensorfs.name` has the original.
 * Two names may come out equal; the tree numbers these ("~2").
 */

#define HASH_TAIL 17 /* '~' and 16 digits */

static uint64_t name_hash(const char *s)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (; *s; s++)
		hash = (hash ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
	return hash;
}

/* How one byte is written: itself, or "%XX" when `all` or it is a slash. */
static size_t escape_byte(unsigned char c, bool all, char out[4])
{
	if (all || c == '/')
		return (size_t)snprintf(out, 4, "%%%02X", c);
	out[0] = (char)c;
	return 1;
}

/* As many whole bytes of `name` as fit in `max`; *rest is the first that did
 * not. */
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

/* Step back from inside a UTF-8 sequence to its beginning; where there is no
 * such sequence, stay. */
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
