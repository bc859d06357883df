/* SPDX-License-Identifier: BSD-2-Clause */
/* Units of a stream decoded ahead on threads, delivered in order. */
/*
 * The reader's thread cuts the compressed bytes into units, which is cheap, and takes
 * the decoded units back in the same order:
 *
 *	next -> [ unit | unit | unit | unit ] -> taken -> bytes and points
 *	            run on threads, any order
 *
 * Data that depends on its predecessor (one large frame, linked blocks) comes in units,
 * too: then `next` returns AHEAD_WAIT until the unit before was taken, and one unit is
 * in flight while the reader consumes the one before it.  So decoding overlaps with the
 * reader's work even there.
 *
 * Without threads a unit runs when its turn comes.
 *
 * Doubt.  When a decoder notices damage, the bytes that it made before may be wrong
 * already: a flipped bit in bytes that are stored uncompressed is noticed only by the
 * checksum, which comes at the end of a block or frame.  The bytes are delivered,
 * because the scanner that reads them may have checksums of its own; but all windows
 * since the last checksum that matched are marked bad.
 */
#include "stream/ahead.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "base/pool.h"

#define AHEAD_MEMORY (UINT64_C(192) << 20)
#define ALONE ((size_t)256 << 10)

struct ahead {
	const struct ahead_ops *ops;
	struct ahead_decoder *own;
	struct stream_scan *scan;
	struct pool *pool;    /* NULL: no threads */
	pthread_mutex_t lock; /* protects `done` of units */
	pthread_cond_t done;

	/* Used on the reader's thread only. */
	struct ahead_unit *first, **last; /* units in flight, in order */
	unsigned n, most;
	uint64_t cost;
	bool ended;
	struct error end; /* the error that `next` ended with */

	struct ahead_unit *unit; /* the unit that is being delivered */
	size_t pos;              /* bytes of it that were delivered */
	size_t mark;             /* number of its next mark */
	uint64_t out;            /* decoded bytes before `unit` */
	bool displaced;          /* all that follows may be displaced */
	bool apart;              /* do not skip the next mark */
	unsigned char *state;    /* AHEAD_STATE_MOST bytes, or NULL */
	struct error failed;
};

/* ---- units --------------------------------------------------------------- */

static void ahead_unit_free(const struct ahead_ops *ops, struct ahead_unit *u)
{
	if (!u)
		return;
	if (ops->clear)
		ops->clear(u);
	vec_free(&u->marks);
	free(u->in);
	free(u->out);
	free(u);
}

void ahead_discard(const struct ahead_decoder *d, struct ahead_unit *u)
{
	ahead_unit_free(d->ahead->ops, u);
}

bool ahead_gather(struct ahead_unit *u, struct slide *f, size_t n)
{
	size_t want = u->in_size + n;

	if (want > u->in_room) {
		size_t room = max_u64(want, min_u64(2 * u->in_room, 4 << 20));
		unsigned char *p = realloc(u->in, room);

		if (!p)
			return false;
		u->in = p;
		u->in_room = room;
	}
	memcpy(u->in + u->in_size, f->data, n);
	u->in_size += n;
	slide_drop(f, n);
	return true;
}

bool ahead_add_mark(struct ahead_unit *u, struct ahead_mark mark)
{
	size_t n = u->marks.n;

	/* If no decoded bytes lie between two marks, the later one can replace the
	 * earlier one, unless it depends on that. */
	if (n && u->marks.at[n - 1].out == mark.out) {
		struct ahead_mark *was = &u->marks.at[n - 1];

		if (!(mark.flags & POINT_LATER) || was->flags & POINT_LATER)
			*was = mark;
		return true;
	}
	return vec_push(&u->marks, mark);
}

/* ---- in flight ----------------------------------------------------------- */

static void ahead_run_unit(struct ahead_unit *u)
{
	struct error why;

	/* An error of decoding comes before an error that ended gathering. */
	if (u->ahead->ops->run(u, &why) < 0)
		u->err = why;
	/* The compressed bytes are not needed any longer. */
	free(u->in);
	u->in = NULL;
}

static void ahead_run_job(void *arg)
{
	struct ahead_unit *u = arg;
	struct ahead *a = u->ahead;

	ahead_run_unit(u);
	lock_scope(&a->lock);
	u->done = true;
	pthread_cond_broadcast(&a->done);
}

static void ahead_append_unit(struct ahead *a, struct ahead_unit *u)
{
	u->ahead = a;
	*a->last = u;
	a->last = &u->later;
	a->n++;
	a->cost += u->cost;
	if (a->pool)
		pool_submit(a->pool, ahead_run_job, u);
}

/* Gather units while there is room for them. */
static void ahead_fill(struct ahead *a)
{
	while (!a->ended && a->n < a->most &&
	       (!a->n || a->cost < AHEAD_MEMORY)) {
		struct ahead_unit *u = NULL;
		int r = a->ops->next(a->own, &u, &a->end);

		if (r == AHEAD_WAIT)
			return;
		if (r == AHEAD_UNIT)
			ahead_append_unit(a, u);
		else
			a->ended = true;
	}
}

/* Wait for the oldest unit and return it, or NULL if there is none. */
static struct ahead_unit *ahead_take_oldest(struct ahead *a)
{
	struct ahead_unit *u = a->first;

	if (!u)
		return NULL;
	if (a->pool) {
		lock_scope(&a->lock);
		while (!u->done)
			pthread_cond_wait(&a->done, &a->lock);
	} else {
		ahead_run_unit(u);
	}
	a->first = u->later;
	if (!a->first)
		a->last = &a->first;
	a->n--;
	a->cost -= u->cost;
	return u;
}

static void ahead_drop_units(struct ahead *a)
{
	if (a->pool)
		pool_drain(a->pool);
	while (a->first) {
		struct ahead_unit *u = a->first;

		a->first = u->later;
		ahead_unit_free(a->ops, u);
	}
	a->last = &a->first;
	a->n = 0;
	a->cost = 0;
	a->ended = false;
	a->end.code = 0;
}

void ahead_drop(struct ahead_decoder *d)
{
	ahead_drop_units(d->ahead);
}

/* ---- in order ------------------------------------------------------------ */

static int ahead_fail(struct ahead *a, const struct error *why,
		      struct error *err)
{
	if (&a->failed != why)
		a->failed = *why;
	if (err)
		*err = *why;
	return why->code;
}

/* Record that `why` ended the unit at `out`; where it is damage, the bytes since
 * `verified` are bad. */
static int ahead_fail_at(struct ahead *a, uint64_t out, uint64_t verified,
			 const struct error *why, struct error *err)
{
	if (why->code == -EBADMSG && verified < out)
		scan_bad(a->scan, verified, why);
	return ahead_fail(a, why, err);
}

/* Begin to deliver the next unit.  Return 1, 0 at the end of the stream, or -errno. */
static int ahead_begin_unit(struct ahead *a, struct error *err)
{
	struct error why = {0};
	struct ahead_unit *u;
	int r = 0;

	ahead_fill(a);
	u = ahead_take_oldest(a);
	if (!u)
		return a->end.code ? ahead_fail(a, &a->end, err) : 0;
	u->at = a->out;
	u->verified = 0;
	a->unit = u;
	a->pos = a->mark = 0;
	if (a->ops->taken)
		r = a->ops->taken(a->own, u, &why);
	if (r < 0)
		return ahead_fail(a, &why, err);
	a->displaced |= u->displaced;
	ahead_fill(a);
	return 1;
}

/* Report the failed checksum over bytes that began before the unit. */
static void ahead_report_bad(struct ahead *a)
{
	scan_bad(a->scan, a->unit->bad_from, &a->unit->why);
	a->apart = true;
}

/* End the delivery of a unit.  Return 0, or -errno if the unit ended with an error. */
static int ahead_finish_unit(struct ahead *a, struct error *err)
{
	struct ahead_unit *u = a->unit;
	int r = 0;

	a->out += u->out_size;
	if (u->bad && !u->bad_until)
		ahead_report_bad(a);
	if (u->err.code)
		r = ahead_fail_at(a, a->out, u->verified, &u->err, err);
	a->unit = NULL;
	ahead_unit_free(a->ops, u);
	return r;
}

static bool ahead_is_mark_wanted(const struct ahead *a, size_t i)
{
	const struct ahead_unit *u = a->unit;
	const struct ahead_mark *m = &u->marks.at[i];
	size_t end = i + 1 < u->marks.n ? u->marks.at[i + 1].out : u->out_size;

	if (m->must || m->bad || scan_wants_point(a->scan, a->out + m->out))
		return true;
	/* A mark that depends on nothing gets a point if the bytes before it are bad
	 * or can be reached only from far away, or if it needs no state and its own
	 * bytes are not few. */
	return !(m->flags & POINT_LATER) &&
	       (a->apart || (!m->state && end - m->out >= ALONE));
}

static int ahead_make_point(struct ahead *a, const struct ahead_mark *m,
			    struct error *err)
{
	struct ahead_unit *u = a->unit;
	struct stream_point p = {.out = a->out + m->out,
				 .in = m->in,
				 .bits = m->bits,
				 .flags = m->flags};
	size_t n = 0;
	int r;

	if (a->displaced)
		p.flags |= POINT_BAD;
	if (m->state && !a->state && !(a->state = malloc(AHEAD_STATE_MOST)))
		return error_no_memory(err, "decoding ahead");
	if (m->state)
		n = a->ops->state(u, m, a->state);
	r = scan_point(a->scan, &p, n ? a->state : NULL, n, err);
	if (r == 0 && m->bad)
		scan_bad(a->scan, p.out, &u->why);
	a->apart = m->bad || m->flags & POINT_LATER;
	return r;
}

/* Make a point here if one is wanted.  *stop is the place of the next wanted mark,
 * or the end of the unit. */
static int ahead_pass_marks(struct ahead *a, size_t *stop, struct error *err)
{
	struct ahead_unit *u = a->unit;
	int r = 0;

	if (a->mark < u->marks.n && u->marks.at[a->mark].out == a->pos) {
		if (ahead_is_mark_wanted(a, a->mark))
			r = ahead_make_point(a, &u->marks.at[a->mark], err);
		a->mark++;
	}
	while (a->mark < u->marks.n && !ahead_is_mark_wanted(a, a->mark))
		a->mark++;
	*stop = a->mark < u->marks.n ? u->marks.at[a->mark].out : u->out_size;
	return r;
}

static ssize_t ahead_read(struct stream_decoder *d, void *to, size_t n,
			  struct error *err)
{
	struct ahead *a = ((struct ahead_decoder *)d)->ahead;
	struct ahead_unit *u;
	size_t stop;
	int r;

	if (a->failed.code)
		return ahead_fail(a, &a->failed, err);
	while (!a->unit || a->pos == a->unit->out_size) {
		r = a->unit ? ahead_finish_unit(a, err) : 0;
		if (r == 0)
			r = ahead_begin_unit(a, err);
		if (r <= 0)
			return r;
	}
	u = a->unit;
	r = ahead_pass_marks(a, &stop, err);
	if (r < 0)
		return r;
	n = (size_t)min_u64(n, stop - a->pos);
	if (u->bad && a->pos < u->bad_until && a->pos + n >= u->bad_until)
		ahead_report_bad(a);
	memcpy(to, u->out + u->before + a->pos, n);
	a->pos += n;
	return (ssize_t)n;
}

/* ---- beginning and end --------------------------------------------------- */

static void ahead_free(struct ahead *a)
{
	if (!a)
		return;
	ahead_drop_units(a);
	ahead_unit_free(a->ops, a->unit);
	pool_free(a->pool);
	pthread_cond_destroy(&a->done);
	pthread_mutex_destroy(&a->lock);
	free(a->state);
	free(a);
}

static int ahead_new(struct ahead_decoder *own, struct error *err)
{
	struct stream_scan *scan = own->stream.scan;
	unsigned threads = scan_threads(scan);
	struct ahead *a = calloc(1, sizeof *a);

	if (!a)
		return error_no_memory(err, "decoding ahead");
	own->ahead = a;
	a->ops = own->stream.format->ahead;
	a->own = own;
	a->scan = scan;
	a->last = &a->first;
	a->most = threads > 1 ? threads + 2 : 1;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->done, NULL);
	return threads > 1 ? pool_new(&a->pool, "decode", threads, a->most, err)
			   : 0;
}

static void ahead_close(struct stream_decoder *base)
{
	struct ahead_decoder *d = (struct ahead_decoder *)base;

	/* This comes first: units that are running may use what the format has. */
	ahead_free(d->ahead);
	if (base->format->ahead->close)
		base->format->ahead->close(d);
	slide_free(&d->feed);
	free(d);
}

static int ahead_open(struct stream_decoder **out,
		      const struct stream_format *format,
		      struct stream_scan *scan, struct error *err)
{
	const struct ahead_ops *ops = format->ahead;
	struct ahead_decoder *d = calloc(1, ops->size);
	int r;

	*out = NULL;
	if (!d)
		return error_no_memory(err, "decoding ahead");
	d->stream = (struct stream_decoder){format, scan};
	slide_of_scan(&d->feed, scan);
	r = ops->open ? ops->open(d, err) : 0;
	if (r == 0)
		r = ahead_new(d, err);
	if (r < 0)
		ahead_close(&d->stream);
	else
		*out = &d->stream;
	return r;
}

const struct stream_decoder_ops ahead_decoder = {
	.open = ahead_open,
	.read = ahead_read,
	.close = ahead_close,
};
