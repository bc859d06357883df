/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of shards: a number in a pattern. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "pack/shards/shards.h"

/* The largest width of a number; no uint64_t has more digits. */
#define WIDTH_MAX 20
#define NAME_BYTES 255

static int shards_name_refuse(struct error *err, const char *pattern,
			      const char *why)
{
	return error_set(
		err, -EINVAL,
		"'%s' cannot name shards: %s; use a name like train-%%06d.tar",
		pattern, why);
}

/* Copy text up to the next number, "%%" as '%', and return where the number begins, or
 * the end. */
static const char *copy_text(char *to, const char *at)
{
	while (*at && !(at[0] == '%' && at[1] != '%')) {
		at += *at == '%';
		*to++ = *at++;
	}
	*to = '\0';
	return at;
}

/* Parse "%06d" and return the text behind it; NULL if it is something else. */
static const char *parse_number(struct shards_name *n, const char *at)
{
	at++;
	n->zeros = *at == '0';
	at += n->zeros;
	while (*at >= '0' && *at <= '9' && n->width <= WIDTH_MAX)
		n->width = n->width * 10 + (unsigned)(*at++ - '0');
	return *at == 'd' && n->width <= WIDTH_MAX ? at + 1 : NULL;
}

static int parse_base(struct shards_name *n, const char *base,
		      const char *pattern, struct error *err)
{
	size_t len = strlen(base);
	const char *at;

	n->before = malloc(len + 1);
	n->after = malloc(len + 1);
	if (!n->before || !n->after)
		return error_no_memory(err, "the names of shards");
	at = copy_text(n->before, base);
	if (!*at)
		return shards_name_refuse(
			err, pattern,
			strchr(pattern, '%') && !strchr(base, '%')
				? "the number must be in the file name, not in "
				  "a directory"
				: "it has no number");
	at = parse_number(n, at);
	if (!at)
		return shards_name_refuse(err, pattern,
					  "the number is written %d or %06d, "
					  "and a percent sign %%");
	if (*copy_text(n->after, at))
		return shards_name_refuse(err, pattern,
					  "it has more than one number");
	return 0;
}

/* Return the name of the index for the caller to free: "train-index.json" for
 * "train-%06d.tar.gz".  NULL if memory ran out. */
static char *shards_index_name(const struct shards_name *n)
{
	size_t len = strlen(n->before);
	char *name;

	while (len && strchr("-_.", n->before[len - 1]))
		len--;
	if (asprintf(&name, "%.*s%sindex.json", (int)len, n->before,
		     len ? "-" : "") < 0)
		return NULL;
	return name;
}

/* Check that names of shards can be in the index (UTF-8) and in a directory (length). */
static int shards_name_check(const struct shards_name *n, const char *pattern,
			     struct error *err)
{
	cleanup_free char *name = shards_name_of(n, UINT64_C(999999));
	json_t *text = name ? json_string(name) : NULL;

	if (!name)
		return error_no_memory(err, "the names of shards");
	if (!text)
		return shards_name_refuse(
			err, pattern,
			"it is not UTF-8, which the index of shards requires");
	json_decref(text);
	if (strlen(name) > NAME_BYTES || strlen(n->index) > NAME_BYTES)
		return shards_name_refuse(err, pattern, "it is too long");
	return 0;
}

int shards_name_parse(struct shards_name *out, const char *pattern,
		      struct error *err)
{
	const char *slash = strrchr(pattern, '/');
	struct shards_name n = {0};
	int r = 0;

	*out = n;
	n.dir = slash ? strndup(pattern,
				(size_t)(slash - pattern) + (slash == pattern))
		      : strdup(".");
	if (!n.dir)
		r = error_no_memory(err, "the names of shards");
	if (r == 0)
		r = parse_base(&n, slash ? slash + 1 : pattern, pattern, err);
	if (r == 0 && !(n.index = shards_index_name(&n)))
		r = error_no_memory(err, "the names of shards");
	if (r == 0)
		r = shards_name_check(&n, pattern, err);
	if (r < 0)
		shards_name_free(&n);
	else
		*out = n;
	return r;
}

void shards_name_free(struct shards_name *n)
{
	free(n->dir);
	free(n->before);
	free(n->after);
	free(n->index);
	*n = (struct shards_name){0};
}

char *shards_name_of(const struct shards_name *n, uint64_t k)
{
	char *name;
	int r = n->zeros ? asprintf(&name, "%s%0*" PRIu64 "%s", n->before,
				    (int)n->width, k, n->after)
			 : asprintf(&name, "%s%*" PRIu64 "%s", n->before,
				    (int)n->width, k, n->after);

	return r < 0 ? NULL : name;
}

bool shards_name_is(const struct shards_name *n, const char *base, uint64_t *k)
{
	size_t len = strlen(base), a = strlen(n->before), b = strlen(n->after);
	cleanup_free char *same = NULL;
	uint64_t number = 0;

	if (len <= a + b || memcmp(base, n->before, a) ||
	    strcmp(base + len - b, n->after))
		return false;
	for (const char *at = base + a; at < base + len - b; at++) {
		if (*at == ' ')
			continue; /* "%6d" */
		if (*at < '0' || *at > '9' || number > UINT64_MAX / 100)
			return false;
		number = number * 10 + (uint64_t)(*at - '0');
	}
	same = shards_name_of(n, number);
	if (!same || strcmp(same, base))
		return false;
	*k = number;
	return true;
}
