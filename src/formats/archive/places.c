/* SPDX-License-Identifier: BSD-2-Clause */
/* Find and decode the pieces that an archive is decoded in. */
/*
 * A window that only the decoder of an earlier window can reach (POINT_LATER)
 * belongs to the job of that window, so that each byte is decoded once.  Jobs run
 * on any free thread.
 */
#include "formats/archive/places.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/cleanup.h"
#include "base/number.h"

#define PIECE (UINT64_C(1) << 20)
#define JOB_PLACES 16
/* Sentences that are kept at most. */
#define SENTENCES 1000

/* ---- which places there are ---------------------------------------------- */

static const struct stream_point *places_points(const struct archive *a,
						uint64_t *n)
{
	return stream_points(a->stream, n);
}

uint64_t places_count(const struct archive *a)
{
	uint64_t n;

	if (a->zip)
		return zip_places(a->zip);
	if (a->volume.blocks)
		return a->members.n_blocks;
	if (!a->stream)
		return div_up(a->stored.size, PIECE);
	places_points(a, &n);
	return n;
}

uint64_t places_size(const struct archive *a, uint64_t place)
{
	uint64_t n;

	if (a->zip)
		return zip_place_size(a->zip, place);
	if (a->volume.blocks) {
		const struct member_block *b = &a->members.blocks[place];

		return b->stored && !(b->flags & MEMBER_TAIL) ? b->size : 0;
	}
	if (a->stream)
		return places_points(a, &n)[place].size;
	return min_u64(PIECE, a->stored.size - place * PIECE);
}

uint64_t places_stored(const struct archive *a, uint64_t place)
{
	const struct stream_point *p;
	uint64_t n;

	if (a->zip)
		return zip_place_stored(a->zip, place);
	if (a->volume.blocks)
		return places_size(a, place) ? a->members.blocks[place].stored
					     : 0;
	if (!a->stream)
		return places_size(a, place);
	p = places_points(a, &n);
	return (place + 1 < n ? p[place + 1].in : a->stored.size) - p[place].in;
}

static struct chunk_set *places_chunk_set(const struct archive *a)
{
	if (a->volume.blocks)
		return a->volume.blocks;
	return a->stream ? stream_set(a->stream) : NULL;
}

void places_describe(const struct archive *a, uint64_t place, char *buf,
		     size_t n)
{
	const char *file = backing_name(&a->stored);
	struct chunk_set *set = places_chunk_set(a);
	char text[512];

	if (a->zip) {
		zip_place_describe(a->zip, place, text, sizeof text);
		snprintf(buf, n, "%s%s", a->path,
			 strncmp(text, file, strlen(file))
				 ? ""
				 : text + strlen(file));
		return;
	}
	if (!set) {
		snprintf(buf, n, "%s: bytes %" PRIu64 " to %" PRIu64, a->path,
			 place * PIECE, place * PIECE + places_size(a, place));
		return;
	}
	/* Replace the name of the file in front of it by the path of the archive,
	 * which may be inside of that file. */
	set->ops->describe(set, place, text, sizeof text);
	snprintf(buf, n, "%s%s", a->path,
		 strncmp(text, file, strlen(file)) ? "" : text + strlen(file));
}

static bool visit_range(const struct archive *a, uint64_t off, uint64_t len,
			places_fn *take, void *ctx)
{
	uint64_t size = a->volume.backing.size, first, last;

	if (a->zip)
		return !zip_place_range(a->zip, off, len, &first, &last) ||
		       take(ctx, first, last);
	if (!len || off >= size)
		return true;
	last = off + min_u64(len, size - off) - 1;
	if (a->stream)
		return take(ctx, stream_window_at(a->stream, off),
			    stream_window_at(a->stream, last));
	return take(ctx, off / PIECE, last / PIECE);
}

static bool visit_blocks(const struct archive *a, const struct member_record *r,
			 places_fn *take, void *ctx)
{
	const struct members *m = &a->members;
	uint64_t n = m->block_size ? div_up(r->size, m->block_size) : 0;

	for (uint64_t i = r->data; i < r->data + n; i++) {
		uint64_t at = m->blocks[i].flags & MEMBER_TAIL
				      ? m->blocks[i].pos >> 20
				      : i;

		if (places_size(a, at) && !take(ctx, at, at))
			return false;
	}
	return true;
}

bool places_of(const struct archive *a, const struct member_record *r,
	       places_fn *take, void *ctx)
{
	const struct member_extent *x;

	switch (r->kind) {
	case MEMBER_RANGE:
		/* In an image a range is a file whose list of blocks cannot be
		 * read. */
		return a->volume.blocks ||
		       visit_range(a, r->data, r->size, take, ctx);
	case MEMBER_SPARSE:
		x = &a->members.extents[r->data];
		for (uint64_t i = 1; i <= x->off; i++)
			if (!visit_range(a, x[i].pos, x[i].len, take, ctx))
				return false;
		return true;
	case MEMBER_BLOCKS:
		return visit_blocks(a, r, take, ctx);
	case MEMBER_FRAGMENT:
		return take(ctx, r->data >> 20, r->data >> 20);
	default:
		return true;
	}
}

bool places_beyond(const struct archive *a, const struct member_record *r)
{
	uint64_t size = a->volume.backing.size;
	const struct member_extent *x;

	if (r->kind == MEMBER_RANGE)
		return r->size && (r->data > size || r->size > size - r->data);
	if (r->kind != MEMBER_SPARSE)
		return false;
	x = &a->members.extents[r->data];
	for (uint64_t i = 1; i <= x->off; i++)
		if (x[i].pos > size || x[i].len > size - x[i].pos)
			return true;
	return false;
}

/* ---- decoding ------------------------------------------------------------ */

struct checking {
	const struct archive *a;
	const unsigned char *wanted;
	struct source_check *c;
	pthread_mutex_t lock; /* protects *out */
	struct bad_places *out;
};
struct job {
	struct checking *k;
	uint64_t first, end;
};

static void add_bad_place(struct checking *k, uint64_t place, int code,
			  const struct error *err)
{
	struct bad_place bad = {.place = place, .code = code};

	lock_scope(&k->lock);
	if (k->out->at.n < SENTENCES)
		bad.why = strdup(err->text);
	if (code == -ENOMEM || !vec_push(&k->out->at, bad)) {
		free(bad.why);
		k->out->no_memory = true;
	}
}

static int read_plain_piece(const struct archive *a, uint64_t off, uint64_t n,
			    struct error *err)
{
	cleanup_free void *buf = malloc(n);

	if (!buf)
		return error_no_memory(err, "bytes of the archive");
	return backing_read(&a->stored, off, buf, n, err);
}

static int check_place_chunk(const struct archive *a, uint64_t place,
			     struct error *err)
{
	struct chunk_set *set = places_chunk_set(a);
	_Atomic uint64_t gauge = 0;
	struct buf *b = NULL;
	struct chunk c;
	int r = set->ops->locate(set, place, NULL, &c, err);

	if (r < 0 || c.state == CHUNK_ABSENT)
		return r;
	if (c.state == CHUNK_STORED)
		return read_plain_piece(a, c.pos - a->stored.pos, c.stored,
					err);
	r = set->ops->fetch(set, place, &gauge, &b, err);
	if (r == 0)
		buf_unref(b);
	return r;
}

static void check_place(struct checking *k, uint64_t place)
{
	uint64_t size = places_size(k->a, place);
	uint64_t stored = places_stored(k->a, place);
	bool chunk = places_chunk_set(k->a) != NULL;
	struct error err = {0};
	int r;

	if (!size)
		return;
	k->c->enter(k->c, 2 * size + stored);
	r = k->a->zip ? zip_place_check(k->a->zip, place, &err)
	    : chunk   ? check_place_chunk(k->a, place, &err)
		      : read_plain_piece(k->a, place * PIECE, size, &err);
	k->c->leave(k->c, 2 * size + stored);
	if (r < 0)
		add_bad_place(k, place, r, &err);
	k->c->count(k->c, chunk, stored, size);
	k->c->advance(k->c, size);
}

static void check_job(void *arg)
{
	struct job *job = arg;
	struct checking *k = job->k;

	for (uint64_t i = job->first; i < job->end; i++)
		if (!k->wanted || k->wanted[i])
			check_place(k, i);
	free(job);
}

/* Return where the job that begins with place `first` ends. */
static uint64_t job_end(const struct archive *a, uint64_t first, uint64_t all)
{
	uint64_t end = first + 1, n;
	const struct stream_point *p = a->stream ? places_points(a, &n) : NULL;

	while (end < all && ((p && p[end].flags & POINT_LATER) ||
			     (!p && end - first < JOB_PLACES)))
		end++;
	return end;
}

static int compare_places(const void *a, const void *b)
{
	const struct bad_place *x = a, *y = b;

	return (x->place > y->place) - (x->place < y->place);
}

int places_check(const struct archive *a, const unsigned char *wanted,
		 struct source_check *c, struct bad_places *out)
{
	struct checking k = {.a = a, .wanted = wanted, .c = c, .out = out};
	uint64_t n = places_count(a), end;

	*out = (struct bad_places){0};
	pthread_mutex_init(&k.lock, NULL);
	for (uint64_t i = 0; i < n; i = end) {
		struct job *job = malloc(sizeof *job);

		end = job_end(a, i, n);
		if (!job) {
			out->no_memory = true;
			break;
		}
		*job = (struct job){&k, i, end};
		pool_submit(c->pool, check_job, job);
	}
	pool_drain(c->pool);
	pthread_mutex_destroy(&k.lock);
	if (out->at.n)
		qsort(out->at.at, out->at.n, sizeof *out->at.at,
		      compare_places);
	return out->no_memory ? -ENOMEM : 0;
}

struct bad_place *places_bad(const struct bad_places *b, uint64_t first,
			     uint64_t last)
{
	struct bisect s = bisect_in(0, b->at.n);

	while (bisect_next(&s))
		bisect_answer(&s, b->at.at[s.mid].place >= first);
	return s.lo < b->at.n && b->at.at[s.lo].place <= last ? &b->at.at[s.lo]
							      : NULL;
}

void places_free(struct bad_places *b)
{
	for (size_t i = 0; i < b->at.n; i++)
		free(b->at.at[i].why);
	vec_free(&b->at);
}
