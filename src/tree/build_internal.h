/* SPDX-License-Identifier: BSD-2-Clause */
/* A tree while it is being built; for build.c and unique.c only. */
#ifndef TREE_BUILD_INTERNAL_H
#define TREE_BUILD_INTERNAL_H

#include "base/vec.h"
#include "tree/tree_internal.h"

struct build_entry {
	struct files *files, *extra;
	int64_t mtime;
	uint32_t parent, name, stored, target;
	bool hidden;
};

struct tree_builder {
	vec(struct build_entry) entries;
	char *text; /* names and targets; text[0] is '\0', the root's name */
	size_t text_used, text_room;
	vec(struct tree_graft) grafts; /* `dir` is a number of `entries` */
	int failed;
	const char *why;
};

/* The children of one directory, as numbers of entries. */
struct run {
	uint32_t *at;
	size_t n;
	const struct files *files; /* that back the directory, or NULL */
};

/* Remember a failure; the first one is reported by tree_finish.  `why` may be NULL with
 * -ENOMEM. */
void build_fail(struct tree_builder *b, int code, const char *why);
/* Copy a string and return its offset, or TREE_NO_TEXT if that failed. */
uint32_t build_text_add(struct tree_builder *b, const char *s);
/* Sort children by name; entries that are not listed come last. */
void run_sort(struct tree_builder *b, const struct run *run);
/* Make the names of a sorted run unique.  Returns 0 or -errno. */
int run_unique(struct tree_builder *b, const struct run *run);

#endif
