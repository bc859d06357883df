/* SPDX-License-Identifier: BSD-2-Clause */
/* Collect the bytes of a read and choose how they are handed over. */
/*
 * A plan is a list of extents; pinning makes spans of them.  The reply has one of two
 * forms, tried in this order:
 *
 *   memory     every span is memory, and the runs are long: an iovec straight
 *              from the decoded buffers.  Nothing is copied here.  Large runs
 *              of zeros point into a page block of zeros.
 *   gathered   everything else: one buffer, filled run by run; bytes that are
 *              stored verbatim are read straight into it.
 *
 * Spans are pinned directly as long as the first form is possible: there is room in
 * `pins`, runs are not tiny, the pinned buffers stay within fs->pin_budget, and no bytes
 * come from a file.  When that ends, the spans pinned so far are copied and released, and
 * the rest of the window is gathered.  Nothing is pinned or decoded twice, and one read
 * never holds many descriptors.
 */
#include <errno.h>
#include <string.h>

#include "base/counters.h"
#include "base/number.h"
#include "fs/fs_private.h"

/* A run of fewer bytes costs more as an iovec of its own than as a copy. */
#define RUN_MIN PLAN_RUN
/* Up to this many runs are always handed over as iovecs. */
#define RUN_FEW 4
/* Extents of a READ in which each is compared with the others (mark_alone). */
#define ALONE_MAX 16

/* Long runs of zeros point here; it is never written. */
#define ZEROS 131072
static unsigned char zeros[ZEROS] __attribute__((aligned(4096)));

struct collector {
	struct fs *fs;
	struct reply *out;
	size_t want;
	uint64_t pinned; /* decoded bytes that the pins hold */
	unsigned scratch_used;
	struct gather gather; /* in use once out->gathered is set */
	struct reversal around;
};

static int plan_check(const struct plan *plan, uint64_t off, struct error *err)
{
	if (plan->n == 0 || plan->have == 0 || plan->have > plan->want)
		return error_set(
			err, -EIO,
			"nothing is known to be at byte %llu: a defect",
			(unsigned long long)off);
	return 0;
}

int reply_map(const struct node *n, uint64_t off, uint64_t want,
	      struct plan *plan, struct error *err)
{
	int r;

	plan_init(plan, want);
	plan->takes_strips = true;
	r = n->files->ops->map(n->files, n->node, off, plan, err);
	return r < 0 ? r : plan_check(plan, off, err);
}

void window_init(struct window *w, const struct node *n, uint64_t len)
{
	const struct files_ops *ops = n->files->ops;

	w->of = (struct file_window){.len = len};
	if (ops->reversed)
		w->of.reversed =
			ops->reversed(n->files, n->node, &w->of.reversed_from);
	w->planned = false;
}

int window_map(struct window *w, const struct node *n, uint64_t off,
	       uint64_t have, struct error *err)
{
	bool first = w->planned;

	w->planned = false;
	return first ? plan_check(&w->plan, off, err)
		     : reply_map(n, off + have, w->of.len - have, &w->plan,
				 err);
}

static void reply_unpin(struct fs *fs, struct reply *r)
{
	while (r->npins)
		store_unpin(fs->store, &r->pins[--r->npins]);
}

/* Change to the gathered form: copy what is pinned and release it. */
static int collect_gather(struct collector *c, struct error *err)
{
	struct reply *out = c->out;
	unsigned i;
	int r = 0;

	out->gathered = buf_new(c->want, NULL);
	if (!out->gathered)
		return error_set(err, -ENOMEM,
				 "out of memory for a read of %zu bytes",
				 c->want);
	gather_init(&c->gather, c->fs->store, c->fs->pin_budget,
		    out->gathered->data, c->want);
	for (i = 0; i < out->npins && r == 0; i++)
		r = gather_span(&c->gather, &out->pins[i], err);
	reply_unpin(c->fs, out);
	return r;
}

/* Copy a span that lies in the plan's scratch to the reply, which outlives the plan;
 * return false if there is no room. */
static bool keep_scratch(struct collector *c, const struct plan *plan,
			 struct span *s)
{
	struct reply *out = c->out;

	if (s->kind != SPAN_MEM || s->mem < plan->scratch ||
	    s->mem >= plan->scratch + PLAN_SCRATCH)
		return true;
	if (s->len > sizeof out->scratch - c->scratch_used)
		return false;
	memcpy(out->scratch + c->scratch_used, s->mem, s->len);
	s->mem = out->scratch + c->scratch_used;
	c->scratch_used += (unsigned)s->len;
	return true;
}

static bool pins_exhausted(const struct collector *c)
{
	return c->out->npins == REPLY_PINS ||
	       (c->out->npins > 0 && c->pinned >= c->fs->pin_budget);
}

/* Mark the run if it is the only one of its chunk in a READ.  READs of many runs are
 * gathered and do not use the mark. */
static void mark_alone(struct plan *plan, unsigned i)
{
	struct extent *x = &plan->ext[i];

	if (plan->n > ALONE_MAX || plan->have < plan->want ||
	    x->kind != EXTENT_CHUNK || x->u.chunk.rows > 1)
		return;
	for (unsigned k = 0; k < plan->n; k++)
		if (k != i && extent_same_chunk(x, &plan->ext[k]))
			return;
	x->u.chunk.alone = true;
}

static int collect_extent(struct collector *c, const struct plan *plan,
			  const struct extent *x, struct error *err)
{
	struct reply *out = c->out;
	struct span *s;
	int r;

	if (!out->gathered && (plan->has_strips || pins_exhausted(c))) {
		r = collect_gather(c, err);
		if (r < 0)
			return r;
	}
	if (out->gathered)
		return gather_extent(&c->gather, x, err);
	s = &out->pins[out->npins];
	r = store_pin(c->fs->store, x, s, err);
	if (r < 0)
		return r;
	out->npins++;
	if (s->len != x->len)
		return error_set(err, -EIO,
				 "a span of %zu bytes for %llu: a defect",
				 s->len, (unsigned long long)x->len);
	if (s->buf)
		c->pinned += s->buf->capacity;
	if (!keep_scratch(c, plan, s) || s->kind == SPAN_FD)
		return collect_gather(c, err);
	return 0;
}

static bool fill_is_zero(const struct fill *f)
{
	const unsigned char *pattern = f->pattern;
	uint32_t i;

	for (i = 0; i < f->width; i++)
		if (pattern[i])
			return false;
	return true;
}

static bool push_iov(struct reply *out, const void *mem, size_t len)
{
	if (out->niov == REPLY_IOV)
		return false;
	/* The kernel only reads what a reply points to. */
	out->iov[out->niov].iov_base = (void *)(uintptr_t)mem;
	out->iov[out->niov++].iov_len = len;
	return true;
}

static bool push_zeros(struct reply *out, size_t len)
{
	while (len) {
		size_t n = min_u64(len, ZEROS);

		if (!push_iov(out, zeros, n))
			return false;
		len -= n;
	}
	return true;
}

/* Make the memory form; return false if it is not possible. */
static bool form_memory(struct reply *out, size_t want)
{
	unsigned i;

	out->niov = 0;
	for (i = 0; i < out->npins; i++) {
		const struct span *s = &out->pins[i];
		bool ok = false;

		if (s->kind == SPAN_MEM)
			ok = push_iov(out, s->mem, s->len);
		else if (s->kind == SPAN_FILL && fill_is_zero(&s->fill))
			ok = push_zeros(out, s->len);
		if (!ok)
			return false;
	}
	return out->niov <= RUN_FEW || want / out->niov >= RUN_MIN;
}

static int collect_finish(struct collector *c, struct error *err)
{
	struct reply *out = c->out;
	int r = 0;

	if (!out->gathered) {
		if (form_memory(out, c->want))
			return 0;
		r = collect_gather(c, err);
	}
	if (r == 0 && c->gather.left)
		r = error_set(err, -EIO, "%zu bytes are missing: a defect",
			      c->gather.left);
	if (r < 0)
		return r;
	out->niov = 0;
	push_iov(out, out->gathered->data, c->want);
	return 0;
}

static int collect_reversed(struct collector *c, const struct node *n,
			    struct window *w, struct error *err)
{
	const struct reversal *x = &c->around;
	struct reply *out = c->out;
	int r;

	out->gathered = buf_new(x->len, NULL);
	if (!out->gathered)
		return error_set(err, -ENOMEM,
				 "out of memory for a read of %zu bytes",
				 c->want);
	r = reverse_gather(c->fs, n, x, w, out->gathered->data, err);
	if (r < 0)
		fs_release(c->fs, out);
	else
		push_iov(out, out->gathered->data + x->lead, c->want);
	return r;
}

static void note_end(struct reply *out, const struct plan *plan)
{
	const struct extent *e = plan->n ? &plan->ext[plan->n - 1] : NULL;
	bool chunk = e && e->kind == EXTENT_CHUNK;

	out->set = chunk ? e->u.chunk.set : NULL;
	out->index = chunk ? e->u.chunk.index : 0;
}

int reply_collect(struct fs *fs, const struct node *n, uint64_t off,
		  struct window *w, struct reply *out, struct error *err)
{
	size_t len = (size_t)w->of.len;
	struct collector c = {.fs = fs, .out = out, .want = len};
	struct plan *plan = &w->plan;
	struct ahead ahead;
	uint64_t have = 0;
	int r = 0, end;

	out->npins = 0;
	out->niov = 0;
	out->gathered = NULL;
	out->len = len;
	out->set = NULL;
	if (reverse_around(&w->of, off, &c.around))
		return collect_reversed(&c, n, w, err);
	while (r == 0 && have < len) {
		r = window_map(w, n, off, have, err);
		if (r == 0 && have == 0 &&
		    (plan->has_strips ||
		     (plan->n > RUN_FEW && plan->have / plan->n < RUN_MIN)))
			r = collect_gather(&c, err);
		for (unsigned i = 0; r == 0 && i < plan->n; i++) {
			want_ahead(fs->store, plan, i, &ahead);
			mark_alone(plan, i);
			r = collect_extent(&c, plan, &plan->ext[i], err);
		}
		note_end(out, plan);
		have += plan->have;
	}
	if (r == 0)
		r = collect_finish(&c, err);
	if (out->gathered) {
		end = gather_finish(&c.gather, r ? NULL : err);
		r = r < 0 ? r : end;
	}
	if (r < 0)
		fs_release(fs, out);
	return r;
}

void fs_release(struct fs *fs, struct reply *r)
{
	reply_unpin(fs, r);
	buf_unref(r->gathered);
	r->gathered = NULL;
}
