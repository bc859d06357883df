/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells which file is which field of which sample. */

/*
 * WebDataset splits names with the regular expression
 *
 *	^((?:.*\/|)[^.]+)[.]([^\/]*)$
 *
 * in which '.' does not match a newline.  So the key ends at the first dot of the base
 * name.  With a newline in the directory, only the part behind the last slash before it
 * can be "the directory", and must not have another dot.  A base name that begins with
 * a dot would, below a directory, be a field of a sample called "directory/": all
 * hidden files of one directory would be one sample.  That is never useful; hidden
 * files are left out.
 */
#include "shards/key.h"

#include <stdbool.h>
#include <string.h>

/* Return true if the first component of the path is "__NAME__".  The "$" of
 * WebDataset's expression also matches before a last newline. */
static bool key_is_meta(const char *path)
{
	size_t n = strcspn(path, "/");

	if (n && path[n - 1] == '\n' && !path[n])
		n--;
	return n >= 4 && !memcmp(path, "__", 2) &&
	       !memcmp(path + n - 2, "__", 2);
}

size_t shards_key(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	const char *dot = strchr(base, '.');
	const char *line = strchr(path, '\n');

	if (!dot || dot == base || key_is_meta(path))
		return 0;
	if (line && line < base) {
		while (line > path && line[-1] != '/')
			line--;
		if (memchr(line, '.', (size_t)(base - line)))
			return 0;
	}
	return (size_t)(dot - path);
}

static int key_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : (unsigned char)c;
}

int shards_compare_fields(const char *a, const char *b)
{
	while (*a && key_lower(*a) == key_lower(*b)) {
		a++;
		b++;
	}
	return key_lower(*a) - key_lower(*b);
}
