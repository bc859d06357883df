/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of samples (manifest.csv and others): how their lines are made. */
#ifndef VIEWS_LISTS_H
#define VIEWS_LISTS_H

#include "views/classes.h"
#include "views/view.h"

enum list_kind { LIST_CSV, LIST_JSONL, LIST_FILES, LIST_DALI, LIST_HF, LISTS };

/* What the lines of a list are made of; for lists*.c only. */
struct listing {
	enum list_kind kind;
	const struct view *v;
	struct view names; /* the view that has the samples' files */
	uint64_t samples, nbytes;
	const struct class_index *classes;
	const struct grid *grid;      /* grid of the chunks; or NULL */
	char *shape, *dtype, *source; /* as the list's format spells them */
};
/* Prepare for making lines.  The first call reads the labels.  Blocks.  Call
 * listing_done after success. */
int listing_begin(struct listing *x, enum list_kind kind, const struct view *v,
		  struct error *err);
/* Free what listing_begin made. */
void listing_done(struct listing *x);
/* Return the header line of a list; "" if it has none. */
const char *listing_header(enum list_kind kind);
/* Return lines [first, end), with the header in front of line 0 (malloc'ed, *len
 * bytes); NULL with an error. */
char *listing_lines(const struct listing *x, uint64_t first, uint64_t end,
		    size_t *len, struct error *err);
/* Return how many bytes the label of each class takes in a line (malloc'ed); NULL
 * without memory.  The rest of a line is equally long for all samples, unless they lie
 * in several files. */
uint32_t *listing_label_sizes(const struct listing *x);
/* Return the number of samples; UINT64_MAX on overflow. */
uint64_t listing_samples(const struct tensor *t, unsigned axes);

#endif
