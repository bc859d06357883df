/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of samples (manifest.csv and others): their lines, and where these begin. */
#ifndef VIEWS_LISTS_H
#define VIEWS_LISTS_H

#include "views/classes.h"
#include "views/view.h"

enum list_kind { LIST_CSV, LIST_JSONL, LIST_FILES, LIST_DALI, LIST_HF, LISTS };

/* What lines are made of; for view_lists*.c only. */
struct listing {
	enum list_kind kind;
	const struct view *v;
	struct view names; /* of the files */
	uint64_t samples, nbytes;
	const struct class_index *classes;
	const struct grid *grid;      /* of the chunks; or NULL */
	char *shape, *dtype, *source; /* as the format spells them */
};
/* Reads labels the first time.  Blocks; call listing_done. */
int listing_begin(struct listing *x, enum list_kind kind, const struct view *v,
		  struct error *err);
void listing_done(struct listing *x);
/* The first line of a list, or nothing. */
const char *listing_header(enum list_kind kind);
/* Lines [first, end) and, before the first of all, the header; malloc'ed, *len bytes. */
char *listing_lines(const struct listing *x, uint64_t first, uint64_t end,
		    size_t *len, struct error *err);
/* Bytes that the label of each class takes in a line (malloc'ed), which is the rest the same
 * for all samples unless they are in several files; NULL: no memory. */
uint32_t *listing_label_sizes(const struct listing *x);
/* Samples, or UINT64_MAX. */
uint64_t listing_samples(const struct tensor *t, unsigned axes);

#endif
