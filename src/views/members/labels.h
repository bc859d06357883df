/* SPDX-License-Identifier: BSD-2-Clause */
/* The label of a file is the name of its directory. */
#ifndef VIEWS_MEMBERS_LABELS_H
#define VIEWS_MEMBERS_LABELS_H

#include "views/members/member_views.h"

/* Return the label of a file; "" in the root. */
const char *member_view_label(const struct member_views *b, uint64_t record);

/* Labels are numbered in order of names (by bytes), as torchvision's ImageFolder
 * numbers them; files in the root have none. */
struct member_view_labels {
	uint64_t n; /* number of directories that have files */
	struct member_view_labelled {
		uint32_t dir;   /* a record; ascending */
		uint32_t label; /* the number of its label */
	} at[];
};
/* Return the labels of all files, for the caller to free; NULL if memory ran out. */
struct member_view_labels *
member_view_labels_new(const struct member_views *b,
		       const struct member_view_list *list);
/* Set *label to the number of a file's label.  Returns false if the file has none. */
bool member_view_labels_find(const struct member_view_labels *l,
			     const struct member_views *b, uint64_t record,
			     uint32_t *label);

#endif
