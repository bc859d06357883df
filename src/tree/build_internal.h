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
	char *text; /* text[0] is '\0': the root's name */
	size_t text_used, text_room;
	vec(struct tree_graft) grafts; /* dir: of `entries` */
	int failed;
	const char *why;
};

/* The children of one directory. */
struct run {
	uint32_t *at;
	size_t n;
	const struct files *files; /* of that directory, or NULL */
};

/* The first failure is the one that tree_finish reports. */
void build_fail(struct tree_builder *b, int code, const char *why);
/* Copy a string; its offset, or TREE_NO_TEXT. */
uint32_t build_text_add(struct tree_builder *b, const char *s);
/* By name; what is hidden comes last. */
void run_sort(struct tree_builder *b, const struct run *run);
/* Make the names of a sorted run unique; 0 or -errno. */
int run_unique(struct tree_builder *b, const struct run *run);

#endif
