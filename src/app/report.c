/* SPDX-License-Identifier: BSD-2-Clause */
/* Examines a tensor: parts, chunks, flags, and the cost of a sample. */
#include "app/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "base/vec.h"
#include "members/member_files.h"
#include "views/members/member_views.h"

#define BATCH 1024
#define LISTED 65536 /* chunks that are listed at a time */
/* The largest number of distinct flag values; further ones are counted together. */
#define FLAGS_MAX 1000

int report_part(struct tensor *t, uint32_t p, const struct layout **l,
		struct error *err)
{
	struct stat st;
	int r = 0;

	if (tensor_is_distributed(t))
		r = handles_probe(t->handles, t->parts[p].file, &st, err);
	return r < 0 ? r : tensor_learn(t, p, l, err);
}

/* ---- which rows of a part ------------------------------------------------ */

struct report_rows *report_rows(const struct tensor *t)
{
	const struct report_rows all = {0, UINT64_MAX}, none = {UINT64_MAX, 0};
	struct report_rows *rows = calloc(t->nparts + 1, sizeof *rows);
	uint32_t tiles = t->mosaic ? mosaic_count(t->mosaic) : 0;
	struct tile tile;

	for (uint32_t p = 0; rows && p < t->nparts; p++)
		rows[p] = t->mosaic ? none : all;
	for (uint32_t i = 0; rows && i < tiles; i++) {
		const struct slab *s = &tile.from;
		struct report_rows *r;

		mosaic_tile(t->mosaic, i, &tile);
		r = &rows[tile.part];
		if (tile.all || !tile.rank) {
			*r = all;
			continue;
		}
		r->begin = min_u64(r->begin, s->start[0]);
		r->end = max_u64(
			r->end, s->start[0] + (s->count[0] - 1) * s->stride[0] +
					s->block[0]);
	}
	return rows;
}

/* Clip the rows of a part to those [*begin, *end) that exist.  Return the bytes of one
 * row, 0 if there are no rows. */
static uint64_t clip_rows(const struct report_rows *rows, const struct grid *g,
			  uint64_t *begin, uint64_t *end)
{
	uint64_t row = g->elem;

	if (!g->rank)
		return 0;
	*end = min_u64(rows->end, g->shape[0]);
	*begin = min_u64(rows->begin, *end);
	/* This cannot overflow: the product divides chunk_bytes or the size of the
	 * shape, both checked. */
	for (unsigned i = 1; i < g->rank; i++)
		row *= g->shape[i];
	return row;
}

void report_chunks(const struct report_rows *rows, const struct layout *l,
		   uint64_t *first, uint64_t *end)
{
	const struct grid *g = l->grid;
	uint64_t begin, last, each;

	*first = 0;
	*end = g->count;
	if (!g->count || !clip_rows(rows, g, &begin, &last))
		return;
	each = g->count / g->chunks[0];
	*first = begin / g->chunk[0] * each;
	*end = begin < last ? div_up(last, g->chunk[0]) * each : *first;
}

void report_bytes(const struct report_rows *rows, const struct layout *l,
		  uint64_t *first, uint64_t *end)
{
	uint64_t from = l->recode ? l->recode->from : 1;
	uint64_t to = l->recode ? l->recode->to : 1, begin, last;
	uint64_t row = clip_rows(rows, l->grid, &begin, &last);

	*first = *end = 0;
	if (!l->grid->count)
		return;
	if (mul_overflows(l->grid->chunk_bytes / to, from, end)) {
		*end = INT64_MAX; /* no file is that large; reading it will fail */
		return;
	}
	if (!row || row % to)
		return;
	*first = begin * (row / to * from);
	*end = last * (row / to * from);
}

/* ---- parts --------------------------------------------------------------- */

/* Add a sentence to the report, or only count it. */
static void add_problem(struct report *r, const char *text)
{
	if (r->n_problems < REPORT_PROBLEMS)
		r->problems[r->n_problems] = strdup(text);
	r->n_problems++;
}

/* Count the chunks of a sparse grid.  Return -ENOTSUP if the source cannot list its
 * chunks. */
static int count_listed(struct report *r, struct tensor *t, uint32_t p,
			const struct layout *l, uint64_t first, uint64_t end,
			struct error *err)
{
	cleanup_free struct written *at = malloc(LISTED * sizeof *at);
	uint64_t from = first, chunks = 0, stored = 0;
	uint32_t n = 0;
	int code = at ? 0 : error_no_memory(err, "the list of written chunks");

	while (from < end && !code) {
		code = t->ops->list(t, p, l, &from, at, LISTED, &n, err);
		for (uint32_t i = 0; !code && i < n; i++)
			if (at[i].chunk < end) {
				chunks++;
				stored += at[i].at.stored;
			}
	}
	if (code < 0)
		return code;
	if (code == 1) {
		chunks = end - first;
		stored = chunks * at->at.stored;
	}
	r->chunks += chunks;
	r->stored += stored;
	r->unwritten += end - first - chunks;
	return 0;
}

static int count_chunks(struct report *r, struct tensor *t, uint32_t p,
			const struct layout *l, const struct report_rows *rows,
			struct error *err)
{
	struct location at[BATCH];
	uint64_t first, end;

	report_chunks(rows, l, &first, &end);
	if (l->by_library) {
		r->by_library = true;
		r->maker = l->maker;
		r->counted = false;
		r->chunks += end - first;
		return 0;
	}
	if (r->chunks + r->unwritten + (end - first) > REPORT_CHUNKS) {
		r->counted = false;
		return 0;
	}
	if (end - first >= REPORT_LIST && t->ops->list) {
		int code = count_listed(r, t, p, l, first, end, err);

		if (code != -ENOTSUP)
			return code;
	}
	while (first < end) {
		uint32_t n = (uint32_t)min_u64(end - first, BATCH);
		int code = t->ops->locate(t, p, l, first, n, at, err);

		if (code < 0)
			return code;
		for (uint32_t i = 0; i < n; i++) {
			if (at[i].pos == UINT64_MAX) {
				r->unwritten++;
				continue;
			}
			r->chunks++;
			r->stored += at[i].stored;
		}
		first += n;
	}
	return 0;
}

static bool same_storage(const struct layout *a, const struct layout *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind != LAYOUT_CHUNKED)
		return true;
	if (a->grid->rank != b->grid->rank ||
	    memcmp(a->grid->chunk, b->grid->chunk,
		   a->grid->rank * sizeof *a->grid->chunk))
		return false;
	return pipeline_equal(a->pipeline, b->pipeline);
}

static int count_nested(struct report *r, struct tensor *t);

/* Count what one part stores.  If it fails without setting *err, the sentences are in
 * the report already. */
static int count_part(struct report *r, struct tensor *t, uint32_t p,
		      const struct layout *l, const struct report_rows *rows,
		      struct error *err)
{
	uint64_t first, end;

	if (l->kind != LAYOUT_NESTED) {
		r->alike =
			!r->layout || (r->alike && same_storage(r->layout, l));
		r->layout = r->layout ? r->layout : l;
	}
	switch (l->kind) {
	case LAYOUT_CHUNKED:
		return count_chunks(r, t, p, l, rows, err);
	case LAYOUT_LINEAR:
		report_bytes(rows, l, &first, &end);
		r->stored += end - first;
		break;
	case LAYOUT_FETCHED:
		r->stored += l->grid ? l->grid->chunk_bytes : 0;
		break;
	case LAYOUT_NESTED:
		return count_nested(r, l->nested);
	case LAYOUT_ABSENT:
		break;
	}
	return 0;
}

/* Examine one part.  A failure is added to the report and returned. */
static int look_at_part(struct report *r, struct tensor *t, uint32_t p,
			const struct report_rows *rows)
{
	const struct layout *l = NULL;
	struct error why = {0};
	int code = report_part(t, p, &l, &why);

	if (code == 0)
		code = count_part(r, t, p, l, rows, &why);
	if (code < 0 && why.code && code != -ENOMEM)
		add_problem(r, why.text);
	return code;
}

/* Examine the parts of a part.  Their depth is bounded, but not their number.  Return
 * the worst failure; -ENODATA (a part is missing) only if there is no other. */
static int count_nested(struct report *r, struct tensor *t)
{
	cleanup_free struct report_rows *rows = report_rows(t);
	int worst = rows ? 0 : -ENOMEM;
	static const char too_many[] =
		"virtual datasets of virtual datasets have too many parts: not "
		"all were examined";

	for (uint32_t p = 0; p < t->nparts && worst != -ENOMEM; p++) {
		int code;

		if (r->nested >= REPORT_NESTED) {
			if (r->nested == REPORT_NESTED)
				add_problem(r, too_many);
			r->nested = REPORT_NESTED + 1;
			r->counted = false;
			return -EIO;
		}
		r->nested++;
		code = look_at_part(r, t, p, &rows[p]);
		if (code < 0 &&
		    (worst == 0 || worst == -ENODATA || code == -ENOMEM))
			worst = code;
	}
	return worst;
}

/* Examine all parts of the tensor.  Return -ENOMEM or 0. */
static int look_at_tensor_parts(struct report *r, struct error *err)
{
	struct tensor *t = r->tensor;
	cleanup_free struct report_rows *rows = report_rows(t);
	int code = rows ? 0 : -ENOMEM;

	for (uint32_t p = 0; p < t->nparts && code != -ENOMEM; p++) {
		code = look_at_part(r, t, p, &rows[p]);
		r->present += code == 0;
		r->missing += code == -ENODATA;
		r->bad += code < 0 && code != -ENODATA;
	}
	return code == -ENOMEM ? error_no_memory(err, "the parts of the tensor")
			       : 0;
}

/* ---- flags --------------------------------------------------------------- */

static bool add_flag(struct report *r, const char *value)
{
	struct report_flag *grown;

	for (size_t i = 0; i < r->n_flags; i++)
		if (!strcmp(r->flags[i].value, value)) {
			r->flags[i].blocks++;
			return true;
		}
	if (r->n_flags == FLAGS_MAX)
		return add_flag(r, r->flags[FLAGS_MAX - 1].value);
	grown = realloc(r->flags, (r->n_flags + 1) * sizeof *grown);
	if (!grown)
		return false;
	r->flags = grown;
	grown[r->n_flags].blocks = 1;
	grown[r->n_flags].value =
		strdup(r->n_flags == FLAGS_MAX - 1 ? "(others)" : value);
	return grown[r->n_flags].value && ++r->n_flags;
}

static int look_at_flag(struct report *r, uint64_t block, struct pinner *p,
			struct error *err)
{
	struct error why = {0};
	char flag[256];

	if (!r->tensor->flags)
		return 0;
	if (tensor_block_flag(r->tensor, block, p, flag, sizeof flag, &why) < 0)
		snprintf(flag, sizeof flag, "(unreadable)");
	return add_flag(r, flag)
		       ? 0
		       : error_no_memory(err, "the flags of the blocks");
}

/* Count the flags of the blocks that are present. */
static int look_at_flags(struct report *r, struct pinner *p, struct error *err)
{
	struct tensor *t = r->tensor;
	uint64_t n = t->flags ? min_u64(tensor_blocks(t), REPORT_CHUNKS) : 0;
	struct box b;
	int code = 0;

	for (uint64_t k = 0; code == 0 && k < n; k++) {
		int64_t part;

		tensor_block_box(t, k, &b);
		part = tensor_part_of(t, &b);
		if (part < 0 || atomic_load(&t->parts[part].layout))
			code = look_at_flag(r, k, p, err);
	}
	return code;
}

/* Count the blocks: parts of a mosaic, else chunks, which cannot be missing.  Texts have
 * no blocks. */
static void count_report_blocks(struct report *r)
{
	const struct tensor *t = r->tensor;

	r->blocks = t->mosaic                    ? t->nparts
		    : dtype_is_binary(&t->dtype) ? tensor_blocks(t)
						 : 0;
	if (!t->mosaic && r->layout && r->layout->kind == LAYOUT_CHUNKED)
		r->present = min_u64(r->chunks, r->blocks);
}

int report_make(struct report *r, struct tensor *t,
		const struct view_options *o, struct pinner *p,
		struct error *err)
{
	struct error why = {0};
	int code;

	memset(r, 0, sizeof *r);
	r->tensor = t;
	r->sample_axes = view_sample_axes(o, t);
	r->alike = r->counted = true;
	if (t->why_not)
		return 0;
	code = look_at_tensor_parts(r, err);
	count_report_blocks(r);
	if (code == 0)
		code = look_at_flags(r, p, err);
	if (code == 0 && r->layout &&
	    tensor_sample_cost(t, r->sample_axes, &r->sample, &why) < 0)
		memset(&r->sample, 0, sizeof r->sample);
	if (code < 0)
		report_free(r);
	return code;
}

void report_free(struct report *r)
{
	for (size_t i = 0; i < r->n_flags; i++)
		free(r->flags[i].value);
	free(r->flags);
	for (size_t i = 0; i < REPORT_PROBLEMS; i++)
		free(r->problems[i]);
	memset(r, 0, sizeof *r);
}

/* ---- the tensors of a tree ------------------------------------------------*/

struct level {
	uint64_t ino, next;
};

/* Return true if this is a directory of an archive that has no member views with
 * tensors. */
static bool only_members(const struct tree *tree, const struct node *n)
{
	return (member_views_are(n->files) || member_files_are(n->files)) &&
	       (n->node || tree_entry_count(tree, n->ino) ==
				   n->files->ops->count(n->files, 0));
}

static int walk_tensors(struct tree *tree, const struct node *from, bool fields,
			report_each *each, void *ctx)
{
	char name[FILES_NAME_MAX + 1];
	vec(struct level) stack = VEC_EMPTY;
	struct level top = {from->ino, 0};
	struct tensor *t = from->files ? tensor_of_files(from->files) : NULL;
	int r = 0;

	if (t)
		r = each(ctx, t);
	if (r || (t && !fields) || from->type != S_IFDIR ||
	    (from->files && only_members(tree, from)))
		return r;
	if (!vec_push(&stack, top))
		return -ENOMEM;
	while (stack.n > 0 && r == 0) {
		struct level *l = &stack.at[stack.n - 1];
		struct level below = {0, 0};
		struct node node;

		if (tree_entry(tree, l->ino, l->next++, &node, name,
			       sizeof name) < 0) {
			stack.n--;
			continue;
		}
		if (node.type != S_IFDIR || node.node)
			continue; /* this is a view or a file */
		if (node.graft)
			continue; /* this is another source */
		t = node.files ? tensor_of_files(node.files) : NULL;
		below.ino = node.ino;
		if (t)
			r = each(ctx, t);
		if (!r && (!t || fields) && !vec_push(&stack, below))
			r = -ENOMEM;
	}
	vec_free(&stack);
	return r;
}

int report_walk(struct tree *tree, const struct node *from, report_each *each,
		void *ctx)
{
	return walk_tensors(tree, from, false, each, ctx);
}

int report_walk_fields(struct tree *tree, const struct node *from,
		       report_each *each, void *ctx)
{
	return walk_tensors(tree, from, true, each, ctx);
}
