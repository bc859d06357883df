/* SPDX-License-Identifier: BSD-2-Clause */
/* The label of a file is the name of its directory. */
#ifndef VIEWS_MEMBERS_LABELS_H
#define VIEWS_MEMBERS_LABELS_H

#include "views/members/beside.h"

/* Return the label of a file; "" in the root. */
const char *beside_label(const struct beside *b, uint64_t record);

/* Labels are numbered in order of names (by bytes), as torchvision's ImageFolder
 * numbers them; files in the root have none. */
struct beside_labels {
	uint64_t n; /* number of directories that have files */
	struct beside_labelled {
		uint32_t dir;   /* a record; ascending */
		uint32_t label; /* the number of its label */
	} at[];
};
/* Return the labels of all files, for the caller to free; NULL if memory ran out. */
struct beside_labels *beside_labels_new(const struct beside *b,
					const struct beside_list *list);
/* Set *label to the number of a file's label.  Returns false if the file has none. */
bool beside_labels_find(const struct beside_labels *l, const struct beside *b,
			uint64_t record, uint32_t *label);

#endif
