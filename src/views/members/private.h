/* SPDX-License-Identifier: BSD-2-Clause */
/* The structure of members with views; for this folder only. */
#ifndef VIEWS_MEMBERS_PRIVATE_H
#define VIEWS_MEMBERS_PRIVATE_H

#include <stdatomic.h>
#include <stddef.h>

#include "views/members/beside.h"

struct beside_row {
	struct files *_Atomic files; /* NULL: not made yet */
	/* Its nodes are first to first + numbers. */
	uint64_t first, numbers;
	bool shown;
};
struct beside_listed {
	unsigned row;
	uint64_t before; /* number of members before it */
};
struct beside {
	struct files files;      /* first member */
	struct beside_args args; /* `members` and `source` are owned */
	struct beside_row row[BESIDE_MAX];
	struct beside_listed listed[BESIDE_MAX]; /* in order of names */
	unsigned n_listed;
	const uint64_t *hidden; /* records, ascending */
	size_t n_hidden;
	struct beside_list *_Atomic list;
	/* Place in `list` of each record; UINT32_MAX if it has none. */
	uint32_t *_Atomic places;
};

/* files_ops.sample and sample_node: the samples are the files in `list`. */
bool beside_sample(struct files *f, uint64_t node, struct files_sample *out);
uint64_t beside_sample_node(const struct files *f, uint32_t set, uint64_t i);

#endif
