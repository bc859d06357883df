/* SPDX-License-Identifier: BSD-2-Clause */
/* manifest.csv, files.txt and others: a line for each sample, for loaders that need a
 * list. */

/*
 * Lines are made in blocks of LINES, each a document that the cache keeps, so of a list
 * of a billion samples only the blocks that are read are made.  If all lines have the
 * same length, the start of a block is a product.  If not, lines are counted once and
 * the starts of blocks are kept: where lines differ only in their labels, from the
 * labels' lengths; where samples lie in several files, by making all lines.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/number.h"
#include "views/lists.h"
#include "views/name.h"
#include "views/node.h"
#include "views/state.h"
#include "views/table.h"

#define LINES 1024
#define COUNTED_MAX (UINT64_C(1) << 32)

struct list_table {
	/* bytes; line 0: lines differ, `start` is used */
	uint64_t header, line;
	uint64_t blocks, total;
	uint64_t start[]; /* [blocks + 1] */
};
struct lists {
	_Atomic(struct list_table *) of[LISTS];
};

static const struct view_ops *const list_ops[LISTS] = {
	&view_manifest_csv, &view_manifest_jsonl, &view_files_txt,
	&view_file_list, &view_metadata_csv};

static enum list_kind list_kind_of(const struct view *v)
{
	unsigned k = 0;

	while (list_ops[k] != v->ops)
		k++;
	return (enum list_kind)k;
}

static bool list_fits(struct tensor *t, unsigned axes)
{
	uint64_t n = axes ? listing_samples(t, axes) : 0;

	return n && n < FILES_NODE_MAX &&
	       (view_is_numeric(t) || view_is_text(t) || view_is_sized(t));
}

static bool list_labels_fit(struct tensor *t, unsigned axes)
{
	return list_fits(t, axes) && view_classes.fits(t, axes);
}

/* ---- where blocks begin ----------------------------------------------------------------- */

static int list_measure(const struct listing *x, uint64_t first, uint64_t end,
			uint64_t *bytes, struct error *err)
{
	size_t len = 0;
	char *text = listing_lines(x, first, end, &len, err);

	free(text);
	*bytes = len;
	return text ? 0 : err->code;
}

static int list_count_blocks(struct list_table *l, const struct listing *x,
			     struct error *err)
{
	int r = 0;

	for (uint64_t i = 0; i < l->blocks && r == 0; i++) {
		uint64_t n = 0;

		r = list_measure(x, i * LINES,
				 min_u64((i + 1) * LINES, x->samples), &n, err);
		l->start[i + 1] = l->start[i] + n;
	}
	l->total = l->start[l->blocks];
	return r;
}

/* Set the starts of blocks where lines differ only in their labels. */
static int list_count_labels(struct list_table *l, const struct listing *x,
			     struct error *err)
{
	const uint64_t last = x->samples - 1;
	uint32_t *sizes = listing_label_sizes(x);
	const uint32_t *of = x->classes->of;
	uint64_t rest = 0;
	int r = sizes ? list_measure(x, last, x->samples, &rest, err)
		      : error_no_memory(err, "the sizes of labels");

	if (r == 0) {
		rest -= (last ? 0 : l->header) + sizes[of[last]];
		l->total = l->header;
		for (uint64_t i = 0; i < x->samples; i++) {
			l->total += rest + sizes[of[i]];
			l->start[i / LINES + 1] = l->total;
		}
	}
	free(sizes);
	return r;
}

static int list_table_new(struct list_table **out, const struct view *v,
			  struct error *err)
{
	struct listing x;
	struct list_table *l;
	uint64_t blocks, line = 0;
	bool same, sources;
	int r = listing_begin(&x, list_kind_of(v), v, err);

	if (r < 0)
		return r;
	sources = v->tensor->mosaic &&
		  (x.kind == LIST_CSV || x.kind == LIST_JSONL);
	same = !x.classes && !sources;
	blocks = div_up(x.samples, LINES);
	if (!same && x.samples > COUNTED_MAX)
		r = error_set(err, -EFBIG,
			      "%s: too many samples to count the bytes of "
			      "their lines",
			      v->tensor->name);
	l = r < 0 ? NULL : calloc(1, sizeof *l + (same ? 0 : blocks + 1) * 8);
	if (r == 0 && !l)
		r = error_no_memory(err, "the table of a list of samples");
	if (r == 0) {
		l->blocks = blocks;
		l->header = strlen(listing_header(x.kind));
	}
	if (r == 0 && same)
		r = list_measure(&x, x.samples - 1, x.samples, &line, err);
	if (r == 0 && same) {
		l->line = line - (x.samples == 1 ? l->header : 0);
		l->total = l->header + l->line * x.samples;
	}
	if (r == 0 && !same)
		r = sources ? list_count_blocks(l, &x, err)
			    : list_count_labels(l, &x, err);
	listing_done(&x);
	if (r < 0)
		free(l);
	else
		*out = l;
	return r;
}

static struct lists *lists_of(struct tensor *t)
{
	struct lists *l = atomic_load(&t->views->lists), *none = NULL;

	if (l)
		return l;
	l = calloc(1, sizeof *l);
	if (!l || atomic_compare_exchange_strong(&t->views->lists, &none, l))
		return l;
	free(l);
	return none;
}

static void lists_free(struct lists *l)
{
	for (unsigned i = 0; l && i < LISTS; i++)
		free(atomic_load(&l->of[i]));
	free(l);
}

static int list_table_get(const struct view *v, const struct list_table **out,
			  struct error *err)
{
	struct lists *all = lists_of(v->tensor);
	struct list_table *l, *none = NULL;
	int r;

	if (!all)
		return error_no_memory(err, "the table of a list of samples");
	*out = atomic_load(&all->of[list_kind_of(v)]);
	if (*out)
		return 0;
	r = list_table_new(&l, v, err);
	if (r < 0)
		return r;
	if (!atomic_compare_exchange_strong(&all->of[list_kind_of(v)], &none,
					    l)) {
		free(l);
		l = none;
	}
	*out = l;
	return 0;
}

/* ---- operations --------------------------------------------------------------------------- */

static int list_size(const struct view *v, const uint64_t *at, struct pinner *p,
		     uint64_t *size, struct error *err)
{
	const struct list_table *l;
	int r = list_table_get(v, &l, err);

	(void)at, (void)p;
	if (r == 0)
		*size = l->total;
	return r;
}

static int list_prepare(const struct view *v, const uint64_t *at, uint64_t off,
			uint64_t len, struct error *err)
{
	const struct list_table *l;

	(void)at, (void)off, (void)len;
	return list_table_get(v, &l, err);
}

static uint64_t list_block_start(const struct list_table *l, uint64_t block)
{
	if (!l->line)
		return l->start[block];
	if (block == l->blocks)
		return l->total;
	return block ? l->header + block * LINES * l->line : 0;
}

/* Return the block that has byte `off`. */
static uint64_t list_block_at(const struct list_table *l, uint64_t off)
{
	struct bisect b = bisect_in(1, max_u64(l->blocks, 1));

	while (bisect_next(&b))
		bisect_answer(&b, list_block_start(l, b.mid) > off);
	return b.lo - 1;
}

static int list_map(const struct view *v, const uint64_t *at, uint64_t off,
		    struct plan *plan, struct error *err)
{
	struct lists *all = atomic_load(&v->tensor->views->lists);
	const struct list_table *l =
		all ? atomic_load(&all->of[list_kind_of(v)]) : NULL;
	uint64_t first = tensor_document_chunk(v, at), block, took, len;

	if (!l)
		return error_set(err, -EIO, "%s: the list was not prepared",
				 v->tensor->name);
	for (block = list_block_at(l, off);
	     block < l->blocks && plan_open(plan); block++) {
		len = list_block_start(l, block + 1) - off;
		took = plan_chunk(plan, &v->tensor->views->documents,
				  first + block,
				  off - list_block_start(l, block), len);
		off += took;
		if (took < len)
			break;
	}
	return 0;
}

static bool list_is_document(const struct view *v, const uint64_t *at)
{
	(void)v, (void)at;
	return false;
}

/* Make block at[0]. */
static char *list_block(const struct view *v, const uint64_t *at, size_t *len,
			struct error *err)
{
	const struct list_table *l;
	struct listing x;
	char *text;

	if (list_table_get(v, &l, err) < 0 ||
	    listing_begin(&x, list_kind_of(v), v, err) < 0)
		return NULL;
	text = listing_lines(&x, at[0] * LINES,
			     min_u64((at[0] + 1) * LINES, x.samples), len, err);
	listing_done(&x);
	if (text && *len != list_block_start(l, at[0] + 1) -
				    list_block_start(l, at[0])) {
		free(text);
		error_set(err, -EIO,
			  "%s: lines have an unexpected length, which is a "
			  "defect in tensorfs",
			  v->tensor->name);
		return NULL;
	}
	return text;
}

static void lists_end(struct tensor *t)
{
	lists_free(atomic_exchange(&t->views->lists, NULL));
}

#define LIST(variable, file, what, test)         \
	const struct view_ops variable = {       \
		.name = "lists",                 \
		.summary = what,                 \
		.top = file,                     \
		.unlisted = true,                \
		.fits = test,                    \
		.end = lists_end,                \
		.size = list_size,               \
		.prepare = list_prepare,         \
		.map = list_map,                 \
		.document = list_block,          \
		.is_document = list_is_document, \
	}
LIST(view_manifest_csv, "manifest.csv", "manifest.csv, a row for each sample",
     list_fits);
LIST(view_manifest_jsonl, "manifest.jsonl",
     "manifest.jsonl, a line of JSON for each sample", list_fits);
LIST(view_files_txt, "files.txt", "files.txt, the paths of samples", list_fits);
LIST(view_file_list, "file_list", "file_list, paths and labels for DALI",
     list_labels_fit);
LIST(view_metadata_csv, "metadata.csv",
     "metadata.csv, paths and labels for Hugging Face", list_labels_fit);
