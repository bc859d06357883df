/* SPDX-License-Identifier: BSD-2-Clause */
/* The structure of members with views; for this folder only. */
#ifndef VIEWS_MEMBERS_PRIVATE_H
#define VIEWS_MEMBERS_PRIVATE_H

#include <stdatomic.h>
#include <stddef.h>

#include "views/members/member_views.h"

struct member_view_row {
	struct files *_Atomic files; /* NULL: not made yet */
	/* Its nodes are first to first + numbers. */
	uint64_t first, numbers;
	bool shown;
};
struct member_view_listed {
	unsigned row;
	uint64_t before; /* number of members before it */
};
struct member_views {
	struct files files;            /* first member */
	struct member_views_args args; /* `members` and `source` are owned */
	struct member_view_row row[MEMBER_VIEW_MAX];
	struct member_view_listed
		listed[MEMBER_VIEW_MAX]; /* in order of names */
	unsigned n_listed;
	const uint64_t *hidden; /* records, ascending */
	size_t n_hidden;
	struct member_view_list *_Atomic list;
	/* Place in `list` of each record; UINT32_MAX if it has none. */
	uint32_t *_Atomic places;
};

/* files_ops.sample and sample_node: the samples are the files in `list`. */
bool member_view_sample(struct files *f, uint64_t node,
			struct files_sample *out);
uint64_t member_view_sample_node(const struct files *f, uint32_t set,
				 uint64_t i);

#endif
