/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides which files of a scan are members of samples; shards/layout.h puts them into
 * shards. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "pack/shards/private.h"
#include "shards/sizer.h"

struct planner {
	struct scan *s;
	const struct shards_rules *r;
	struct shards_plan *plan;
	struct shards_sizer *sizer;
};

/* ---- what is a member ---------------------------------------------------- */

/* Count a file that belongs to no sample.  Returns false if memory ran out. */
static bool shards_plan_note_other(struct shards_plan *plan, const char *path)
{
	if (!plan->others++)
		plan->other = strdup(path);
	return plan->other;
}

/* Return 1 if an entry is a member, 0 if it is not, or -ENOMEM. */
static int shards_plan_is_member(struct planner *p,
				 const struct shards_own *own,
				 const struct scan_entry *e, const char *path)
{
	bool ok = true;

	if (S_ISDIR(e->mode) || shards_own_is(own, path))
		return 0;
	if (S_ISREG(e->mode) && shards_key(path))
		return 1;
	if (S_ISLNK(e->mode) && shards_key(path)) {
		p->plan->n_links++;
		ok = scan_problem(p->s, path,
				  "a symlink, which readers of shards skip; it "
				  "was left out");
	} else if (S_ISREG(e->mode) || S_ISLNK(e->mode)) {
		ok = shards_plan_note_other(p->plan, path);
	} else {
		p->plan->not_files++;
	}
	return ok ? 0 : -ENOMEM;
}

/* Reduce the scan's list to members. */
static int shards_plan_filter(struct planner *p, const struct shards_own *own,
			      struct error *err)
{
	struct scan *s = p->s;
	uint64_t to = 0;

	for (uint64_t i = 0; i < s->list.n; i++) {
		int r = shards_plan_is_member(p, own, &s->list.at[i],
					      scan_path(s, i));

		if (r < 0)
			return error_no_memory(
				err, "the list of files that are left out");
		if (r)
			s->list.at[to++] = s->list.at[i];
	}
	s->list.n = to;
	return 0;
}

/* ---- as entries of a layout ---------------------------------------------- */

static const char *shards_plan_entry_path(void *ctx, uint64_t i)
{
	const struct planner *p = ctx;

	return scan_path(p->s, i);
}

static int shards_plan_entry_size(void *ctx, uint64_t i, uint64_t *size,
				  struct error *err)
{
	struct planner *p = ctx;
	struct feed_attr a;

	feed_attr_set(&a, &p->s->list.at[i], &p->r->attr);
	shards_attr(&a);
	return shards_sizer_member(p->sizer, scan_path(p->s, i), &a, size, err);
}

static int shards_plan_reorder(struct scan *s, const uint64_t *order,
			       struct error *err)
{
	struct scan_entry *to = calloc(s->list.n + 1, sizeof *to);

	if (!to)
		return error_no_memory(err, "the order of the shards' members");
	for (uint64_t i = 0; i < s->list.n; i++)
		to[i] = s->list.at[order[i]];
	free(s->list.at);
	s->list.at = to;
	s->list.room = s->list.n + 1;
	return 0;
}

/* Count the bytes.  Each name counts as a file of its own, because a shard stands
 * alone. */
static void shards_plan_count_bytes(struct planner *p)
{
	struct scan *s = p->s;

	s->bytes = 0;
	for (uint64_t i = 0; i < s->list.n; i++) {
		s->list.at[i].same_as = i;
		s->bytes += s->list.at[i].size;
	}
	p->plan->bytes = s->bytes;
	p->plan->files = s->list.n;
}

static int shards_plan_lay_out(struct planner *p, struct error *err)
{
	const struct shards_entries entries = {.ctx = p,
					       .n = p->s->list.n,
					       .top = p->r->top,
					       .path = shards_plan_entry_path,
					       .size = shards_plan_entry_size};
	struct shards_layout l;
	int r = shards_sizer_new(&p->sizer, p->r->numeric_owner, err);

	if (r == 0)
		r = shards_layout_make(&l, &entries, &p->r->cut, &p->r->order,
				       err);
	shards_sizer_free(p->sizer);
	if (r < 0)
		return r;
	r = shards_plan_reorder(p->s, l.order, err);
	if (r == 0) {
		p->plan->list = l.list;
		p->plan->samples = l.samples;
		l.list = (shards_list)VEC_EMPTY;
		shards_plan_count_bytes(p);
	}
	shards_layout_free(&l);
	return r;
}

int shards_plan(struct shards_plan *out, struct scan *s,
		const struct shards_rules *r, struct error *err)
{
	struct planner p = {.s = s, .r = r, .plan = out};
	struct shards_own own;
	int code;

	*out = (struct shards_plan){0};
	code = shards_own_find(&own, r->name, r->top, err);
	if (code == 0)
		code = shards_plan_filter(&p, &own, err);
	if (code == 0)
		code = shards_plan_lay_out(&p, err);
	shards_own_free(&own);
	if (code < 0)
		shards_plan_free(out);
	return code;
}

void shards_plan_free(struct shards_plan *p)
{
	vec_free(&p->list);
	free(p->other);
	*p = (struct shards_plan){0};
}
