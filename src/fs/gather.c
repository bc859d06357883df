/* SPDX-License-Identifier: BSD-2-Clause */
/* Copy the bytes of many extents into one buffer, run by run. */
/*
 * A row of a tensor whose chunks are small tiles is thousands of runs of a few
 * dozen bytes, and each tile comes back in the next row.  Asking the store for
 * every run would cost a lookup under a lock per 64 bytes.  So a gather
 * remembers the spans it pinned last in a small direct-mapped table, and a run
 * that hits it is an addition and a memcpy:
 *
 *     (set, index) --hash--> slot --> decoded buffer   memcpy at skip
 *                                 |   fill pattern     expand at skip
 *                                 '   file range       window of 4 KiB, memcpy
 *
 * The last line is for chunks stored verbatim and for contiguous datasets cut
 * across their rows: small runs are served from a window read around them,
 * larger ones go straight to their place.
 *
 * Pins are bounded: by the bytes that the pinned buffers hold (pin_budget),
 * because the cache cannot evict them, and to GATHER_FILES descriptors.
 * A slot that is given up is unpinned; if it read from a file, the file must
 * still be the one that was opened.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/copies.h"
#include "base/counters.h"
#include "base/number.h"
#include "fs/fs_private.h"

/* Keys of file ranges; no chunk set has such a number. */
#define FILE_KEY (UINT64_C(1) << 63)
#define FILE_REGION (UINT64_C(1) << 20)

/* One extent as the table sees it. */
struct run {
	uint64_t set, index, skip;
	size_t len;
};

void gather_init(struct gather *g, struct store *s, uint64_t pin_budget,
		 void *to, size_t len)
{
	unsigned i;

	g->store = s;
	g->pin_budget = pin_budget;
	g->to = to;
	g->left = len;
	g->across = 0;
	g->pinned = 0;
	g->files = 0;
	g->hand = 0;
	g->windows = NULL;
	for (i = 0; i < GATHER_SLOTS; i++)
		g->slot[i].used = false;
}

static void gather_advance(struct gather *g, size_t len)
{
	g->to += len;
	g->left -= len;
}

/* Read between `min` and `max` bytes of a pinned file at `pos`; return how many, or
 * -errno. */
static ssize_t read_range(struct store *store, const struct handle *h,
			  uint64_t pos, void *to, size_t min, size_t max,
			  struct error *err)
{
	size_t have = 0;

	while (have < min) {
		ssize_t n = pread(h->fd, (char *)to + have, max - have,
				  (off_t)(h->base + pos + have));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_errno(
				err, -EIO, "%s: cannot read %zu bytes at %llu",
				handles_path(store_handles(store), h->file),
				min, (unsigned long long)pos);
		if (n == 0)
			return error_set(
				err, -ESTALE,
				"%s: ends before byte %llu: it was truncated",
				handles_path(store_handles(store), h->file),
				(unsigned long long)(pos + min));
		have += (size_t)n;
	}
	counter_add(COUNT_BYTES_VERBATIM, have);
	return (ssize_t)have;
}

/* Write `len` bytes of the repeated pattern, from its byte `phase` on. */
static void fill_expand(unsigned char *to, size_t len, const struct fill *f,
			uint64_t phase)
{
	const unsigned char *pattern = f->pattern;
	size_t have, i;

	if (f->width <= 1) {
		memset(to, f->width ? pattern[0] : 0, len);
		return;
	}
	have = min_u64(len, f->width);
	for (i = 0; i < have; i++)
		to[i] = pattern[(phase + i) % f->width];
	/* `have` is a multiple of the period until the last copy. */
	while (have < len) {
		size_t n = min_u64(have, len - have);

		memcpy(to + have, to, n);
		have += n;
	}
}

static int gather_room(const struct gather *g, size_t len, struct error *err)
{
	if (len <= g->left)
		return 0;
	return error_set(err, -EIO,
			 "an extent of %zu bytes, %zu are left: a defect", len,
			 g->left);
}

int gather_span(struct gather *g, const struct span *s, struct error *err)
{
	ssize_t n;
	int r = gather_room(g, s->len, err);

	if (r < 0)
		return r;
	switch (s->kind) {
	case SPAN_MEM:
		memcpy(g->to, s->mem, s->len);
		break;
	case SPAN_FILL:
		fill_expand(g->to, s->len, &s->fill, s->phase);
		break;
	case SPAN_FD:
		n = read_range(g->store, &s->handle, s->pos, g->to, s->len,
			       s->len, err);
		if (n < 0)
			return (int)n;
		r = handles_check(store_handles(g->store), &s->handle, err);
		if (r < 0)
			return r;
		break;
	}
	gather_advance(g, s->len);
	return 0;
}

/* ---- the table ---------------------------------------------------------- */

static struct gather_slot *gather_slot_of(struct gather *g, const struct run *x)
{
	uint64_t h = (x->index + x->set * 37) * UINT64_C(0x9e3779b97f4a7c15);

	return &g->slot[h >> 57];
}

static uint64_t slot_cost(const struct gather_slot *slot)
{
	return slot->span.buf ? slot->span.buf->capacity : 0;
}

static int slot_release(struct gather *g, struct gather_slot *slot,
			struct error *err)
{
	int r = 0;

	if (!slot->used)
		return 0;
	if (slot->span.kind == SPAN_FD)
		r = handles_check(store_handles(g->store), &slot->span.handle,
				  err);
	g->pinned -= slot_cost(slot);
	g->files -= slot->span.kind == SPAN_FD;
	store_unpin(g->store, &slot->span);
	slot->used = false;
	return r;
}

/* Copy a run of a decoded buffer, after checking that it lies within it. */
static int copy_memory(struct gather *g, const struct gather_slot *slot,
		       const struct extent *x, struct error *err)
{
	const struct buf *b = slot->span.buf;
	uint64_t skip = x->u.chunk.skip;
	size_t off = 0, len = b->size;

	if (x->u.chunk.slice != EXTENT_WHOLE) {
		const struct chunk_set *set = x->u.chunk.set;
		int r = set->ops->slice(set, b, x->u.chunk.slice, &off, &len);

		if (r < 0)
			return error_set(err, r, "%.*s", (int)len,
					 (const char *)b->data + off);
	}
	if (off > b->size || len > b->size - off || skip > len ||
	    x->len > len - skip)
		return error_set(
			err, -EIO,
			"chunk %llu has no %llu bytes at %llu: a defect",
			(unsigned long long)x->u.chunk.index,
			(unsigned long long)x->len, (unsigned long long)skip);
	memcpy(g->to, b->data + off + skip, x->len);
	return 0;
}

/* Copy a short run of a file through the slot's window. */
static int copy_window(struct gather *g, struct gather_slot *slot,
		       const struct run *x, struct error *err)
{
	unsigned char *win;
	uint64_t pos = slot->origin + x->skip;
	ssize_t n;

	if (!g->windows)
		g->windows = malloc((size_t)GATHER_SLOTS * GATHER_WINDOW);
	if (!g->windows)
		return error_no_memory(err, "a read of small runs");
	win = g->windows + (size_t)(slot - g->slot) * GATHER_WINDOW;
	if (pos < slot->win_pos || pos - slot->win_pos > slot->win_len ||
	    x->len > slot->win_len - (pos - slot->win_pos)) {
		slot->win_len = 0;
		n = read_range(g->store, &slot->span.handle, pos, win, x->len,
			       GATHER_WINDOW, err);
		if (n < 0)
			return (int)n;
		slot->win_pos = pos;
		slot->win_len = (size_t)n;
	}
	memcpy(g->to, win + (pos - slot->win_pos), x->len);
	return 0;
}

static int slot_copy(struct gather *g, struct gather_slot *slot,
		     const struct run *run, const struct extent *x,
		     struct error *err)
{
	const struct span *s = &slot->span;
	ssize_t n = 0;
	int r = 0;

	if (s->kind == SPAN_MEM)
		r = copy_memory(g, slot, x, err);
	else if (s->kind == SPAN_FILL)
		fill_expand(g->to, run->len, &s->fill,
			    s->phase + run->skip % s->fill.width);
	else if (run->len < GATHER_WINDOW)
		r = copy_window(g, slot, run, err);
	else
		n = read_range(g->store, &s->handle, slot->origin + run->skip,
			       g->to, run->len, run->len, err);
	if (r < 0 || n < 0)
		return r < 0 ? r : (int)n;
	slot->span.given += run->len;
	gather_advance(g, run->len);
	return 0;
}

/* Put a pinned span into a slot, normalised so that it serves any skip of its chunk. */
static void slot_set(struct gather *g, struct gather_slot *slot,
		     const struct run *run, const struct span *s)
{
	slot->set = run->set;
	slot->index = run->index;
	slot->span = *s;
	slot->span.given = 0; /* copies add to it */
	slot->used = true;
	slot->win_pos = 0;
	slot->win_len = 0;
	slot->origin = 0;
	if (s->kind == SPAN_FD)
		slot->origin = s->pos - run->skip;
	if (s->kind == SPAN_FILL)
		slot->span.phase = (uint32_t)((s->phase + s->fill.width -
					       run->skip % s->fill.width) %
					      s->fill.width);
	g->pinned += slot_cost(slot);
	g->files += s->kind == SPAN_FD;
}

/* Return true if this span can serve other runs of its chunk, too. */
static bool span_is_reusable(const struct extent *x, const struct span *s)
{
	if (s->kind == SPAN_FILL)
		return s->fill.width > 0;
	if (s->kind == SPAN_FD)
		return s->len < GATHER_WINDOW;
	if (!s->buf || x->kind != EXTENT_CHUNK)
		return false;
	if (x->u.chunk.slice != EXTENT_WHOLE)
		return x->u.chunk.set->ops->slice != NULL;
	return s->mem == s->buf->data + x->u.chunk.skip;
}

/* Release slots in turn until the bounds hold again. */
static int gather_trim(struct gather *g, const struct gather_slot *keep,
		       struct error *err)
{
	unsigned tries;
	int r = 0;

	for (tries = 0; tries < GATHER_SLOTS && r == 0; tries++) {
		struct gather_slot *slot = &g->slot[g->hand];
		bool bytes = g->pinned > g->pin_budget;
		bool files = g->files > GATHER_FILES;

		if (!bytes && !files)
			break;
		g->hand = (g->hand + 1) % GATHER_SLOTS;
		if (slot != keep && slot->used &&
		    ((bytes && slot->span.buf) ||
		     (files && slot->span.kind == SPAN_FD)))
			r = slot_release(g, slot, err);
	}
	return r;
}

static int gather_pin(struct gather *g, struct gather_slot *slot,
		      const struct run *run, const struct extent *x,
		      struct error *err)
{
	struct span s;
	int r;

	/* Release first, so that two large chunks are not held at once. */
	r = slot ? slot_release(g, slot, err) : 0;
	if (r < 0)
		return r;
	r = store_pin(g->store, x, &s, err);
	if (r < 0)
		return r;
	if (slot && s.len == x->len && span_is_reusable(x, &s)) {
		slot_set(g, slot, run, &s);
		r = gather_trim(g, slot, err);
		return r < 0 ? r : slot_copy(g, slot, run, x, err);
	}
	if (s.len != x->len)
		r = error_set(err, -EIO,
			      "a span of %zu bytes for %llu: "
			      "a defect",
			      s.len, (unsigned long long)x->len);
	else
		r = gather_span(g, &s, err);
	store_unpin(g->store, &s);
	return r;
}

static int gather_run(struct gather *g, const struct extent *x,
		      struct error *err)
{
	struct gather_slot *slot;
	struct run run;
	int r;

	if (x->len > g->left)
		return gather_room(g, (size_t)x->len, err);
	run.len = (size_t)x->len;
	switch (x->kind) {
	case EXTENT_CHUNK:
		run.set = x->u.chunk.set->id;
		run.index = x->u.chunk.index;
		run.skip = x->u.chunk.skip;
		break;
	case EXTENT_FILE:
		if (run.len >= GATHER_WINDOW)
			return gather_pin(g, NULL, NULL, x, err);
		run.set = FILE_KEY | x->u.file.file;
		run.index = x->u.file.pos / FILE_REGION;
		run.skip = x->u.file.pos % FILE_REGION;
		break;
	default:
		return gather_pin(g, NULL, NULL, x, err);
	}
	slot = gather_slot_of(g, &run);
	if (slot->used && slot->index == run.index && slot->set == run.set)
		r = slot_copy(g, slot, &run, x, err);
	else
		r = gather_pin(g, slot, &run, x, err);
	return r;
}

/* Copy rows 1 and up of a strip of rows whose row 0 was copied, straight from the slot's
 * buffer, without further lookups.  Return false if the slot has no decoded buffer. */
static bool copy_strip(struct gather *g, unsigned char *to,
		       const struct extent *x)
{
	struct run run = {.set = x->u.chunk.set->id, .index = x->u.chunk.index};
	struct gather_slot *slot = gather_slot_of(g, &run);
	uint64_t rows = x->u.chunk.rows, step = x->u.chunk.step;
	uint64_t skip = x->u.chunk.skip, len = x->len, size;
	const unsigned char *from;

	if (!slot->used || slot->index != run.index || slot->set != run.set ||
	    slot->span.kind != SPAN_MEM)
		return false;
	/* Row 0 lay within the buffer, so this does not underflow. */
	size = slot->span.buf->size;
	if (step > (size - skip - len) / (rows - 1))
		return false;
	from = slot->span.buf->data + skip;
	copy_rows(to + x->u.chunk.pitch, x->u.chunk.pitch, from + step, step,
		  rows - 1, len);
	slot->span.given += (rows - 1) * len;
	return true;
}

/* Copy all rows of a strip.  When adjacent strips have completed their rows, advance the
 * output position past these. */
static int gather_strip(struct gather *g, const struct extent *x,
			struct error *err)
{
	const uint64_t rows = x->u.chunk.rows, pitch = x->u.chunk.pitch;
	unsigned char *rows_at = g->to, *to = g->to + g->across;
	struct extent one = *x;
	size_t left = g->left;
	int r;

	if (pitch * rows > left || x->len > pitch - g->across)
		return gather_room(g, (size_t)(pitch * rows) + 1, err);
	g->to = to;
	g->left = (size_t)x->len;
	r = gather_run(g, x, err);
	one.u.chunk.rows = 0;
	if (r == 0 && !copy_strip(g, to, x))
		for (uint64_t i = 1; r == 0 && i < rows; i++) {
			one.u.chunk.skip += x->u.chunk.step;
			g->to = to + i * pitch;
			g->left = (size_t)x->len;
			r = gather_run(g, &one, err);
		}
	g->to = rows_at;
	g->left = left;
	g->across += x->len;
	if (g->across == pitch) {
		g->across = 0;
		gather_advance(g, (size_t)(pitch * rows));
	}
	return r;
}

int gather_extent(struct gather *g, const struct extent *x, struct error *err)
{
	return x->kind == EXTENT_CHUNK && x->u.chunk.rows
		       ? gather_strip(g, x, err)
		       : gather_run(g, x, err);
}

int gather_finish(struct gather *g, struct error *err)
{
	unsigned i;
	int r = 0;

	for (i = 0; i < GATHER_SLOTS; i++) {
		int one = slot_release(g, &g->slot[i], r ? NULL : err);

		if (r == 0)
			r = one;
	}
	free(g->windows);
	g->windows = NULL;
	return r;
}

int gather_stored(struct fs *fs, const struct node *n, uint64_t off,
		  struct window *w, void *to, struct error *err)
{
	const struct plan *plan = &w->plan;
	size_t len = (size_t)w->of.len;
	struct gather g;
	struct ahead ahead;
	uint64_t have = 0;
	int r = 0, end;

	gather_init(&g, fs->store, fs->pin_budget, to, len);
	while (r == 0 && have < len) {
		r = window_map(w, n, off, have, err);
		for (unsigned i = 0; r == 0 && i < plan->n; i++) {
			want_ahead(fs->store, plan, i, &ahead);
			r = gather_extent(&g, &plan->ext[i], err);
		}
		have += plan->have;
	}
	end = gather_finish(&g, r ? NULL : err);
	return r < 0 ? r : end;
}
