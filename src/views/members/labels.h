/* SPDX-License-Identifier: BSD-2-Clause */
/* Labels of files: the names of the directories they are in. */
#ifndef VIEWS_MEMBERS_LABELS_H
#define VIEWS_MEMBERS_LABELS_H

#include "views/members/beside.h"

/* The label of a file: its directory's name; "" in the root. */
const char *beside_label(const struct beside *b, uint64_t record);

/* Labels are numbered in order of names (bytes), as torchvision's ImageFolder does; files in
 * the root have none. */
struct beside_labels {
	uint64_t n; /* directories that have files */
	struct beside_labelled {
		uint32_t dir;   /* record; ascending */
		uint32_t label; /* its number */
	} at[];
};
/* malloc'ed; NULL: no memory. */
struct beside_labels *beside_labels_new(const struct beside *b,
					const struct beside_list *list);
/* False: the file has none. */
bool beside_labels_find(const struct beside_labels *l, const struct beside *b,
			uint64_t record, uint32_t *label);

#endif
