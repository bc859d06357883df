/* SPDX-License-Identifier: BSD-2-Clause */
/* What members with views are made of. */
#ifndef VIEWS_MEMBERS_PRIVATE_H
#define VIEWS_MEMBERS_PRIVATE_H

#include <stdatomic.h>
#include <stddef.h>

#include "views/members/beside.h"

struct beside_row {
	struct files *_Atomic files; /* NULL: not asked for yet */
	uint64_t first, numbers;     /* its nodes: first to first + numbers */
	bool shown;
};
struct beside_listed {
	unsigned row;
	uint64_t before; /* members in front of it */
};
struct beside {
	struct files files;      /* first member */
	struct beside_args args; /* its own: members, source */
	struct beside_row row[BESIDE_MAX];
	struct beside_listed listed[BESIDE_MAX]; /* in order of names */
	unsigned n_listed;
	const uint64_t *hidden; /* records, ascending */
	size_t n_hidden;
	struct beside_list *_Atomic list;
	uint32_t *_Atomic places; /* in it, of each record; UINT32_MAX: none */
};

/* files_ops.sample and sample_node: files are numbered as the list has them. */
bool beside_sample(struct files *f, uint64_t node, struct files_sample *out);
uint64_t beside_sample_node(const struct files *f, uint32_t set, uint64_t i);

#endif
