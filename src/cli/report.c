/* SPDX-License-Identifier: BSD-2-Clause */
/* Look at a tensor: parts, chunks, flags, and what a sample costs. */
#include "cli/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/vec.h"

#define BATCH 1024
/* Distinct flag values that are told apart. */
#define FLAGS_MAX 1000

int report_part(struct tensor *t, uint32_t p, const struct layout **l,
		struct error *err)
{
	struct stat st;
	int r = 0;

	if (t->distributed)
		r = handles_probe(t->handles, t->parts[p].file, &st, err);
	return r < 0 ? r : tensor_learn(t, p, l, err);
}

void report_chunks(const struct tensor *t, uint32_t p, const struct layout *l,
		   uint64_t *first, uint64_t *end)
{
	const struct grid *g = l->grid;
	uint64_t rows, begin, each;

	*first = 0;
	*end = g->count;
	if (!t->rank || !g->rank || !g->count)
		return;
	rows = t->parts[p].end - t->parts[p].begin;
	begin = l->origin ? l->origin[0] : 0;
	each = g->count / g->chunks[0];
	if (!rows || begin >= g->shape[0]) {
		*end = 0;
		return;
	}
	rows = min_u64(rows, g->shape[0] - begin);
	*first = begin / g->chunk[0] * each;
	*end = div_up(begin + rows, g->chunk[0]) * each;
}

void report_bytes(const struct tensor *t, uint32_t p, const struct layout *l,
		  uint64_t *pos, uint64_t *len)
{
	const struct grid *g = l->grid;
	uint64_t row = g->elem, begin;

	*pos = l->pos;
	*len = g->chunk_bytes;
	if (!t->rank || !g->rank)
		return;
	/* The products are parts of chunk_bytes, which was checked. */
	for (unsigned i = 1; i < g->rank; i++)
		row *= g->shape[i];
	begin = min_u64(l->origin ? l->origin[0] : 0, g->shape[0]);
	*pos += begin * row;
	*len = row * min_u64(t->parts[p].end - t->parts[p].begin,
			     g->shape[0] - begin);
}

/* Keep a sentence, or count it. */
static void add_problem(struct report *r, const char *text)
{
	if (r->n_problems < REPORT_PROBLEMS)
		r->problems[r->n_problems] = strdup(text);
	r->n_problems++;
}

static int count_chunks(struct report *r, uint32_t p, const struct layout *l,
			struct error *err)
{
	struct location at[BATCH];
	struct tensor *t = r->tensor;
	uint64_t first, end;

	report_chunks(t, p, l, &first, &end);
	if (r->chunks + r->unwritten + (end - first) > REPORT_CHUNKS) {
		r->counted = false;
		return 0;
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

static int count_part(struct report *r, uint32_t p, const struct layout *l,
		      struct error *err)
{
	uint64_t pos, len;

	switch (l->kind) {
	case LAYOUT_CHUNKED:
		return count_chunks(r, p, l, err);
	case LAYOUT_LINEAR:
		report_bytes(r->tensor, p, l, &pos, &len);
		r->stored += len;
		break;
	case LAYOUT_FETCHED:
		r->stored += l->grid ? l->grid->chunk_bytes : 0;
		break;
	case LAYOUT_ABSENT:
		break;
	}
	return 0;
}

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
	return add_flag(r, flag) ? 0 : error_set(err, -ENOMEM, "out of memory");
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

/* One part: -ENOMEM, else 0; what is wrong goes into the report. */
static int look_at_part(struct report *r, uint32_t p, struct pinner *pinner,
			struct error *err)
{
	const struct layout *l = NULL;
	struct tensor *t = r->tensor;
	struct error why = {0};
	int code = report_part(t, p, &l, &why);

	if (code == 0)
		code = count_part(r, p, l, &why);
	if (code == -ENOMEM)
		return error_set(err, code, "out of memory");
	if (code < 0) {
		add_problem(r, why.text);
		if (code == -ENODATA)
			r->missing++;
		else
			r->bad++;
		return 0;
	}
	r->present++;
	if (!r->layout)
		r->layout = l;
	else if (!same_storage(r->layout, l))
		r->alike = false;
	return t->distributed ? look_at_flag(r, p, pinner, err) : 0;
}

int report_make(struct report *r, struct tensor *t, unsigned sample_axes,
		struct pinner *pinner, struct error *err)
{
	uint64_t counts[RANK_MAX];
	struct error why = {0};
	int code = 0;

	memset(r, 0, sizeof *r);
	r->tensor = t;
	r->sample_axes = (unsigned)min_u64(sample_axes, t->rank);
	r->alike = r->counted = true;
	if (t->why_not)
		return 0;
	for (uint32_t p = 0; p < t->nparts && code == 0; p++)
		code = look_at_part(r, p, pinner, err);
	r->blocks = tensor_blocks(t, counts);
	if (!t->distributed && r->layout && r->layout->kind == LAYOUT_CHUNKED) {
		/* Blocks are chunks then, and none can be missing. */
		r->present = r->chunks;
		for (uint64_t b = 0; code == 0 && t->flags && b < r->blocks &&
				     b < REPORT_CHUNKS;
		     b++)
			code = look_at_flag(r, b, pinner, err);
	}
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

int report_walk(struct tree *tree, const struct node *from, report_each *each,
		void *ctx)
{
	char name[FILES_NAME_MAX + 1];
	vec(struct level) stack = VEC_EMPTY;
	struct level top = {from->ino, 0};
	struct tensor *t = from->files ? tensor_of_files(from->files) : NULL;
	int r = 0;

	if (t)
		return each(ctx, t);
	if (from->type != S_IFDIR)
		return 0;
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
		t = node.files ? tensor_of_files(node.files) : NULL;
		below.ino = node.ino;
		if (t)
			r = each(ctx, t);
		else if (node.type == S_IFDIR && !vec_push(&stack, below))
			r = -ENOMEM;
	}
	vec_free(&stack);
	return r;
}
