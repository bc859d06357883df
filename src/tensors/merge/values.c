/* SPDX-License-Identifier: BSD-2-Clause */
/* Boxes of parts, and strings that are kept as runs of equal ones. */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "tensors/merge/private.h"

/* Flags are kept as runs of equal ones, as many as this. */
#define RUNS_MAX (UINT32_C(1) << 22)

/* ---- runs of boxes ------------------------------------------------------- */

uint64_t merge_first_box(const struct box *b, unsigned rank, uint64_t skip,
			 uint64_t run, struct box *out)
{
	uint64_t at[RANK_MAX], inner = 1, n;
	unsigned axis;

	for (unsigned i = rank; i-- > 0;) {
		at[i] = skip % b->count[i];
		skip /= b->count[i];
	}
	for (axis = rank; axis-- > 0;) {
		uint64_t all = inner * b->count[axis];

		if (axis == 0 || at[axis] || all > run)
			break;
		inner = all;
	}
	if (!rank)
		return 1;
	n = min_u64(run / inner, b->count[axis] - at[axis]);
	for (unsigned i = 0; i < rank; i++) {
		out->start[i] = b->start[i] + (i <= axis ? at[i] : 0);
		out->count[i] = i < axis ? 1 : i == axis ? n : b->count[i];
	}
	return n * inner;
}

int merge_each_part(struct tensor *t, const struct box *b, merge_each *each,
		    void *ctx, struct error *err)
{
	uint64_t all = box_elements(b, t->rank), at = 0;
	int r = 0;

	while (at < all && r == 0) {
		struct mosaic_piece piece;
		const struct layout *l;
		int64_t part;
		uint64_t done = 0, n;
		struct box x;

		r = tensor_find(t, b, at, &part, &piece, err);
		if (r < 0)
			return r;
		at += piece.run;
		if (part < 0) {
			r = each(ctx, t, UINT32_MAX, NULL, piece.run);
			continue;
		}
		r = tensor_learn(t, (uint32_t)part, &l, err);
		while (done < piece.run && r == 0) {
			n = merge_first_box(&piece.from, l->grid->rank,
					    piece.skip + done, piece.run - done,
					    &x);
			done += n;
			r = l->kind == LAYOUT_NESTED
				    ? merge_each_part(l->nested, &x, each, ctx,
						      err)
				    : each(ctx, t, (uint32_t)part, &x, n);
		}
	}
	return r;
}

/* ---- strings that are kept as runs --------------------------------------- */

struct collecting {
	struct values *v;
	bool failed;
	struct error *err;
};

static void add_run(struct collecting *c, const char *s, size_t len,
		    uint64_t rows)
{
	struct journal_run run = {.rows = rows};
	size_t n = c->v->text.runs.n;
	struct journal_run *last = n ? &c->v->text.runs.at[n - 1] : NULL;

	if (last && strlen(last->value) == len &&
	    !memcmp(last->value, s, len)) {
		last->rows += rows;
		return;
	}
	run.value = n < RUNS_MAX && !memchr(s, 0, len) ? strndup(s, len) : NULL;
	if (run.value && vec_push(&c->v->text.runs, run))
		return;
	free(run.value);
	c->failed = true;
}

static void put_string(void *ctx, const char *s, size_t len)
{
	add_run(ctx, s, len, 1);
}

static int collect(void *ctx, struct tensor *t, uint32_t p, const struct box *b,
		   uint64_t n)
{
	struct collecting *c = ctx;

	if (p == UINT32_MAX) {
		add_run(c, "", 0, n);
		return 0;
	}
	return t->ops->values(t, p, b, put_string, c, c->err);
}

int merge_values_runs(struct merge *m, struct values *v, struct error *err)
{
	struct collecting c = {.v = v, .err = err};
	uint64_t step = 65536;
	struct box b;
	int r = 0;

	for (uint64_t at = 0; at < v->t->shape[0] && r == 0; at += step) {
		b.start[0] = at;
		b.count[0] = min_u64(step, v->t->shape[0] - at);
		r = merge_each_part(v->t, &b, collect, &c, err);
		if (*m->o.stop)
			r = error_set(err, -EINTR, "interrupted");
	}
	if (r == 0 && c.failed)
		return error_set(err, -ENOTSUP,
				 "%s: more than %u different runs "
				 "of flags",
				 v->text.path, RUNS_MAX);
	v->captured = r == 0 && v->t->dtype.vlen;
	return r;
}
