/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of shards that are shown: NAME-000000.tar, and the index NAME-index.json. */
#include "shards/names.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

#define WIDTH_MIN 6

void shards_name_from_source(char out[SHARDS_NAME_MOST + 1], const char *base,
			     size_t len)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789_.-";

	if (!len || len > SHARDS_NAME_MOST || *base == '.' || *base == '-' ||
	    strspn(base, plain) < len) {
		base = "shards";
		len = 6;
	}
	memcpy(out, base, len);
	out[len] = '\0';
}

static unsigned shards_number_width(uint64_t n)
{
	unsigned width = digits_of(n ? n - 1 : 0);

	return width < WIDTH_MIN ? WIDTH_MIN : width;
}

/* The index comes last, because digits sort before letters. */
void shards_file_name(const char *name, uint64_t k, uint64_t n, char *buf,
		      size_t room)
{
	if (k == n)
		snprintf(buf, room, "%s-index.json", name);
	else
		snprintf(buf, room, "%s-%0*" PRIu64 ".tar", name,
			 (int)shards_number_width(n), k);
}

int shards_file_find(const char *name, uint64_t n, const char *file,
		     uint64_t *k)
{
	size_t len = strlen(name);
	uint64_t number = 0;
	unsigned width = shards_number_width(n);

	if (strncmp(file, name, len) || file[len] != '-')
		return -ENOENT;
	file += len + 1;
	if (!strcmp(file, "index.json")) {
		*k = n;
		return 0;
	}
	for (; width; width--, file++) {
		if (*file < '0' || *file > '9')
			return -ENOENT;
		number = number * 10 + (uint64_t)(*file - '0');
	}
	if (number >= n || strcmp(file, ".tar"))
		return -ENOENT;
	*k = number;
	return 0;
}

static json_t *shards_line_json(const char *name, uint64_t k, uint64_t n,
				const struct shards_line *l)
{
	char url[SHARDS_NAME_MOST + 40];

	shards_file_name(name, k, n, url, sizeof url);
	return json_pack("{s:s, s:I, s:I, s:I}", "url", url, "nsamples",
			 (json_int_t)l->samples, "filesize",
			 (json_int_t)l->size, "nfiles", (json_int_t)l->files);
}

char *shards_index_text(const char *name, uint64_t n,
			void (*line)(const void *ctx, uint64_t k,
				     struct shards_line *out),
			const void *ctx, size_t *len)
{
	json_t *list = json_array(), *all = NULL;
	char *text = NULL, *out = NULL;
	bool ok = list;

	for (uint64_t k = 0; k < n && ok; k++) {
		struct shards_line l;

		line(ctx, k, &l);
		ok = json_array_append_new(
			     list, shards_line_json(name, k, n, &l)) == 0;
	}
	if (ok)
		all = json_pack("{s:s, s:i, s:s, s:O}", "__kind__",
				"wids-shard-index-v1", "wids_version", 1,
				"name", name, "shardlist", list);
	json_decref(list);
	if (all)
		text = json_dumps(all, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
	json_decref(all);
	if (text && asprintf(&out, "%s\n", text) < 0)
		out = NULL;
	free(text);
	if (out)
		*len = strlen(out);
	return out;
}
