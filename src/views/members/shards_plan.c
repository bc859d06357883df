/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides which members are in which shard of the view shards/, and where. */

/*
 * Members are visited in the order in which `pack` visits a directory: by name, the
 * entries of a directory at the place of its name.  Meanwhile each takes about 100
 * bytes and its path.
 */
#include "views/members/shards.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/vec.h"
#include "shards/key.h"
#include "shards/layout.h"
#include "shards/sizer.h"

struct entry {
	uint64_t path; /* offset in `text` */
	uint64_t
		size; /* its bytes in a tar, set by member_view_plan_entry_size */
	uint32_t record;
};
struct planner {
	const struct member_views *b;
	const struct members *m;
	struct shards_sizer *sizer;
	struct member_view_path path;
	vec(uint32_t) stack;
	vec(struct entry) list;
	char *text;
	size_t text_n, text_room;
};

/* ---- members ------------------------------------------------------------- */

static bool member_view_plan_keep_path(struct planner *p, const char *path,
				       size_t n)
{
	if (p->text_room - p->text_n < n) {
		size_t room = 2 * (p->text_room + n) + 4096;
		char *more = realloc(p->text, room);

		if (!more)
			return false;
		p->text = more;
		p->text_room = room;
	}
	memcpy(p->text + p->text_n, path, n);
	p->text_n += n;
	return true;
}

/* Add a member if it belongs to a sample.  Returns false if memory ran out. */
static bool member_view_plan_add_member(struct planner *p, uint32_t record)
{
	struct entry e = {.path = p->text_n, .record = record};
	ssize_t n;

	if (!S_ISREG(p->m->at[record].mode))
		return true;
	n = member_view_path(p->b, record, &p->path);
	if (n < 0)
		return false;
	if (!shards_key(p->path.at))
		return true;
	return member_view_plan_keep_path(p, p->path.at, (size_t)n + 1) &&
	       vec_push(&p->list, e);
}

/* Push the entries of a directory, the last one first, so that they are popped in
 * order. */
static bool member_view_plan_push_entries(struct planner *p, uint64_t dir)
{
	const struct member_record *r = &p->m->at[dir];

	for (uint64_t i = r->size; i-- > 0;)
		if (!vec_push(&p->stack, (uint32_t)(r->data + i)))
			return false;
	return true;
}

static int member_view_plan_find_members(struct planner *p, struct error *err)
{
	bool ok =
		member_view_plan_push_entries(p, member_views_args(p->b)->root);

	while (ok && p->stack.n) {
		uint32_t i = p->stack.at[--p->stack.n];

		ok = p->m->at[i].kind == MEMBER_DIR
			     ? member_view_plan_push_entries(p, i)
			     : member_view_plan_add_member(p, i);
	}
	return ok ? 0 : error_no_memory(err, "the paths of members");
}

/* ---- as entries of a layout ---------------------------------------------- */

static const char *member_view_plan_entry_path(void *ctx, uint64_t i)
{
	const struct planner *p = ctx;

	return p->text + p->list.at[i].path;
}

static int member_view_plan_entry_size(void *ctx, uint64_t i, uint64_t *size,
				       struct error *err)
{
	struct planner *p = ctx;
	struct entry *e = &p->list.at[i];
	const struct member_record *r =
		&p->m->at[member_view_node(p->b, e->record)];
	const struct feed_attr a = {.mode = r->mode,
				    .size = r->size,
				    .mtime = member_mtime(p->m, r)};
	int code = shards_sizer_member(p->sizer, p->text + e->path, &a,
				       &e->size, err);

	*size = e->size;
	return code;
}

static int member_view_plan_fill(struct member_view_shards *s,
				 const struct planner *p,
				 const struct shards_layout *l,
				 struct error *err)
{
	uint64_t at = 0;

	s->n = p->list.n;
	s->n_shards = l->list.n;
	s->record = calloc(s->n, sizeof *s->record);
	s->at = calloc(s->n + 1, sizeof *s->at);
	s->shard = calloc(s->n_shards, sizeof *s->shard);
	if (!s->record || !s->at || !s->shard)
		return error_no_memory(err, "the layout of shards/");
	for (uint64_t i = 0; i < s->n; i++) {
		const struct entry *e = &p->list.at[l->order[i]];

		s->record[i] = e->record;
		s->at[i] = at;
		if (add_overflows(at, e->size, &at))
			return error_set(err, -EOVERFLOW,
					 "the members together are larger than "
					 "tars can be");
	}
	s->at[s->n] = at;
	for (uint64_t k = 0; k < s->n_shards; k++) {
		const struct shard *x = &l->list.at[k];

		s->shard[k] = (struct member_view_shard){x->first, x->files,
							 x->samples};
	}
	return 0;
}

static int member_view_plan_lay_out(struct member_view_shards *s,
				    struct planner *p, struct error *err)
{
	const struct shards_entries entries = {
		.ctx = p,
		.n = p->list.n,
		.top = member_views_args(p->b)->source,
		.path = member_view_plan_entry_path,
		.size = member_view_plan_entry_size};
	const struct shards_order sorted = {0};
	struct shards_cut cut =
		shards_cut_default(&member_views_args(p->b)->options.shards);
	struct shards_layout l;
	int r = shards_layout_make(&l, &entries, &cut, &sorted, err);

	if (r < 0)
		return r;
	r = l.list.n > SHARDS_MOST
		    ? error_set(err, -EOVERFLOW,
				"there would be %" PRIu64
				" shards, but at most %" PRIu64
				" are shown: make each of them larger",
				(uint64_t)l.list.n, SHARDS_MOST)
		    : member_view_plan_fill(s, p, &l, err);
	shards_layout_free(&l);
	return r;
}

int member_view_shards_plan(struct member_view_shards *s, struct error *err)
{
	struct planner p = {.b = s->b, .m = member_views_args(s->b)->m};
	int r = shards_sizer_new(&p.sizer, true, err);

	if (r == 0)
		r = member_view_plan_find_members(&p, err);
	if (r == 0)
		r = member_view_plan_lay_out(s, &p, err);
	shards_sizer_free(p.sizer);
	free(p.path.at);
	free(p.text);
	vec_free(&p.stack);
	vec_free(&p.list);
	return r;
}
