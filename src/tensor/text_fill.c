/* SPDX-License-Identifier: BSD-2-Clause */
/* Fill a segment of a text with values of the parts, some of which may fail. */
/*
 * A segment is walked in runs that lie in one part, or in a gap; a run is read in as
 * few boxes as possible.  A box that fails is halved until the unreadable samples stand
 * alone, and only these are marked: a damaged string costs its own sample, not its 4095
 * neighbours.  A part that is missing fails as a whole, at once.  When every sample of
 * a segment fails, the load fails and nothing is cached.
 */
#include "tensor/text_private.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"

/* Failing runs are halved for this many seconds, so that a library that hangs is not
 * called again and again. */
#define HALVE_SECONDS 2

struct filling {
	struct text *x;
	struct lines lines;
	uint64_t first; /* first sample of the segment */
	uint64_t until; /* time of clock_ns after which boxes are not halved */
	struct error why, first_why;
};

/* For missing=fill, values of a missing part are empty.  Return whether they are. */
static bool fills_missing(struct text *x)
{
	if (x->t->missing != MISSING_FILL)
		return false;
	if (!atomic_exchange(&x->set.warned, true))
		log_warn("%s: values of missing parts read as empty "
			 "(missing=fill)",
			 x->t->name);
	return true;
}

/* Record that `n` values cannot be read; f->why says why.  Return an error only if
 * memory ran out. */
static int fill_failed(struct filling *f, uint64_t n)
{
	if (f->why.code == -ENOMEM)
		return -ENOMEM;
	if (f->why.code == -ENODATA && fills_missing(f->x)) {
		lines_put_empty(&f->lines, n);
	} else {
		if (!f->first_why.code)
			f->first_why = f->why;
		lines_put_failed(&f->lines, n, &f->why);
	}
	return f->lines.code;
}

/* Take a value from the source. */
static void fill_put_value(void *ctx, const char *s, size_t len)
{
	struct filling *f = ctx;
	struct text *x = f->x;
	uint64_t sample = f->first + f->lines.values, n, index;

	if (f->lines.code)
		return;
	if (x->style == LINES_NPY && !(len % x->sequence.bytes)) {
		n = len / x->sequence.bytes;
		if (text_counts_differ(x, sample, n, &index)) {
			text_counts_error(x, sample, n, index, &f->why);
			fill_failed(f, 1);
			return;
		}
	}
	lines_put(&f->lines, s, len);
}

static int fill_from(struct filling *f, struct tensor *t, uint32_t part,
		     unsigned rank, const struct box *from, uint64_t skip,
		     uint64_t n);

/* Read the elements of box `b` of a part's dataset.  If that fails, halve the box,
 * unless it is one sample. */
static int fill_box(struct filling *f, struct tensor *t, uint32_t part,
		    unsigned rank, const struct box *b)
{
	uint64_t n = box_elements(b, rank), per = f->x->sample_values;
	uint64_t value = f->lines.values;
	struct lines_mark mark;
	int r;

	lines_mark(&f->lines, &mark);
	f->why.code = 0;
	r = t->ops->values(t, part, b, fill_put_value, f, &f->why);
	if (r == 0)
		r = f->lines.code;
	if (r == 0 && f->lines.values != value + n)
		r = error_set(&f->why, -EIO,
			      "%s: %llu values came instead of %llu", t->name,
			      (unsigned long long)(f->lines.values - value),
			      (unsigned long long)n);
	if (r == 0)
		return 0;
	lines_rewind(&f->lines, &mark);
	f->why.code = r;
	if (r == -ENOMEM || r == -ENODATA ||
	    value / per == (value + n - 1) / per || clock_ns() > f->until)
		return fill_failed(f, n);
	r = fill_from(f, t, part, rank, b, 0, n / 2);
	return r < 0 ? r : fill_from(f, t, part, rank, b, n / 2, n - n / 2);
}

/* Read elements [skip, skip + n) of box `from` of a part's dataset. */
static int fill_from(struct filling *f, struct tensor *t, uint32_t part,
		     unsigned rank, const struct box *from, uint64_t skip,
		     uint64_t n)
{
	while (n) {
		struct box b;
		uint64_t took = box_front(from, rank, skip, n, &b);
		int r = fill_box(f, t, part, rank, &b);

		if (r < 0)
			return r;
		skip += took;
		n -= took;
	}
	return 0;
}

static int fill_tensor(struct filling *f, struct tensor *t, const struct box *b,
		       uint64_t at, uint64_t n);

/* Read one run of a tensor, which lies in one part or in a gap; set *n to its elements. */
static int fill_run(struct filling *f, struct tensor *t, const struct box *b,
		    uint64_t at, uint64_t *n)
{
	const struct layout *l = NULL;
	struct mosaic_piece piece;
	struct mosaic_hit hit;
	int64_t part;
	int r = tensor_find(t, b, at, &part, &piece, &f->why);

	if (r < 0) {
		if (t->mosaic) {
			mosaic_find(t->mosaic, b, at, &hit);
			*n = min_u64(*n, hit.run);
		}
		return fill_failed(f, *n);
	}
	*n = min_u64(*n, piece.run);
	if (part < 0) {
		lines_put_empty(&f->lines, *n);
		return f->lines.code;
	}
	if (t->mosaic)
		l = atomic_load(&t->parts[part].layout);
	if (l && l->kind == LAYOUT_NESTED)
		return fill_tensor(f, l->nested, &piece.from, piece.skip, *n);
	return fill_from(f, t, (uint32_t)part, l ? l->grid->rank : t->rank,
			 &piece.from, piece.skip, *n);
}

/* Read elements [at, at + n) of box `b` of a tensor. */
static int fill_tensor(struct filling *f, struct tensor *t, const struct box *b,
		       uint64_t at, uint64_t n)
{
	while (n) {
		uint64_t run = n;
		int r = fill_run(f, t, b, at, &run);

		if (r < 0)
			return r;
		at += run;
		n -= run;
	}
	return 0;
}

int text_fill(struct chunk_set *s, uint64_t segment, _Atomic uint64_t *gauge,
	      struct buf **out, struct error *err)
{
	struct text *x = text_of(s);
	struct filling f = {.x = x,
			    .until = clock_ns() + HALVE_SECONDS * CLOCK_SECOND};
	struct box whole;
	uint64_t n;
	int r;

	text_segment_range(x, segment, &f.first, &n);
	r = lines_init(&f.lines, x->style, n, x->sample_values, &f.why);
	if (r == 0) {
		f.lines.sequence = &x->sequence;
		text_whole_box(x->t, &whole);
		r = fill_tensor(&f, x->t, &whole, f.first * x->sample_values,
				n * x->sample_values);
	}
	if (r < 0)
		r = error_set(err, r, "%s", f.why.text);
	else if (n && f.lines.failed == n && f.first_why.code)
		r = error_set(err, f.first_why.code, "%s", f.first_why.text);
	else
		r = lines_pack(&f.lines, gauge, out, err);
	lines_free(&f.lines);
	return r;
}
