/* SPDX-License-Identifier: BSD-2-Clause */
/* Deflated members of an archive, one after the other, as one stream. */
/*
 * A zip's directory says for each member where its data are, how many bytes they decode
 * to, and the CRC-32 of these: that is a seek point.  So a member is a window, and
 * nothing is decoded to find that out.  A large member is many windows; their points
 * are learnt by decoding it once, as the gzip file that its data would be with ten
 * bytes before and eight after them:
 *
 *	backing    |  ...  | deflate data |  ...
 *	decoded            1f 8b 08 ...   | deflate data | CRC-32, size
 *
 * so that its checksum is verified then.  Members that were announced are decoded by
 * threads and wait for their turn: points come in order, whichever thread decoded a
 * member.  Positions in the points of that pass, and those of blocks' headers in its
 * states, are moved to where the data are.
 */
#include "stream/deflate.h"

#include <errno.h>
#include <libdeflate.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "base/pool.h"
#include "base/vec.h"
#include "stream/gzip.h"
#include "tree/files.h"

#define GZIP_HEADER 10
#define GZIP_TRAILER 8
/* Bytes of states that stay in memory; the rest goes to a file. */
#define STATES_MEMORY ((size_t)4 << 20)

/* An announced member, which is decoded before its turn. */
struct expected {
	struct deflate_ahead *of;
	struct deflate_member m;
	struct stream *stream;
	struct error damage;
	int r;
	bool done;
};
struct deflate_ahead {
	struct backing from;
	struct pool *pool;
	pthread_mutex_t lock; /* protects `done` of members */
	pthread_cond_t ready;
	/* `most`: limit of members that are begun and not taken. */
	size_t n, begun, taken, most;
	struct expected at[];
};
struct deflate_builder {
	struct backing from;
	struct deflate_ahead *ahead; /* NULL: no member was announced */
	vec(struct stream_point) points;
	struct blob *states;
	/* Offset in `states` of the state of a decoder that begins. */
	uint64_t start;
	uint32_t start_size;
	uint64_t out; /* decoded bytes so far */
	struct libdeflate_compressor *deflater;
};

int deflate_decode(const void *data, size_t n, void *to, size_t size,
		   uint32_t crc, struct error *err)
{
	struct libdeflate_decompressor *d = stream_inflater();
	size_t used, made;

	if (!d)
		return error_no_memory(err,
				       "the seek points of deflated members");
	if (libdeflate_deflate_decompress_ex(d, data, n, to, size, &used,
					     &made) != LIBDEFLATE_SUCCESS ||
	    made != size || used != n)
		return error_set(err, -EBADMSG,
				 "its deflate data are damaged, or decode to "
				 "another length than %zu",
				 size);
	if (libdeflate_crc32(0, to, size) != crc)
		return error_set(err, -EBADMSG,
				 "its CRC-32 is not what the archive says "
				 "(%08x)",
				 (unsigned)crc);
	return 0;
}

/* ---- the format ---------------------------------------------------------- */

/* Set the error for damaged data: the sentences of gzip's functions speak of gzip
 * files. */
static int deflate_damaged(struct error *err)
{
	return error_set(err, -EBADMSG,
			 "its deflate data are damaged, or decode to other "
			 "bytes than the archive says (length, CRC-32)");
}

static int deflate_window(struct stream *s, uint64_t i, unsigned char *out,
			  struct error *err)
{
	int r = gzip_window(s, i, out, err);

	return r == -EBADMSG ? deflate_damaged(err) : r;
}

static const struct stream_format stream_deflate = {
	.name = "deflate",
	.window = deflate_window,
};

int deflate_of_points(struct stream **out, const struct backing *from,
		      const struct stream_point *points, uint64_t n,
		      struct blob *states, struct error *err)
{
	return stream_of_points(out, &stream_deflate, from, points, n, states,
				err);
}

/* ---- one member as a gzip file ------------------------------------------- */

struct gzip_file {
	struct files files; /* first member */
	struct backing data;
	unsigned char trailer[GZIP_TRAILER];
};

static int deflate_gzip_map(const struct files *f, uint64_t node, uint64_t off,
			    struct plan *p, struct error *err)
{
	static const unsigned char header[GZIP_HEADER] = {
		0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff};
	const struct gzip_file *g = (const struct gzip_file *)f;
	uint64_t end = GZIP_HEADER + g->data.size, took;

	(void)node;
	(void)err;
	while (plan_open(p) && off < end + GZIP_TRAILER) {
		if (off < GZIP_HEADER)
			took = plan_mem(p, header + off, GZIP_HEADER - off);
		else if (off < end)
			took = backing_map(&g->data, off - GZIP_HEADER,
					   end - off, p);
		else
			took = plan_mem(p, g->trailer + (off - end),
					end + GZIP_TRAILER - off);
		if (!took)
			break;
		off += took;
	}
	return 0;
}

static const struct files_ops gzip_ops = {.map = deflate_gzip_map};

static int deflate_scan_member(const struct backing *in,
			       const struct deflate_member *m,
			       struct stream **out, struct error *damage)
{
	struct gzip_file g = {.files = {&gzip_ops},
			      .data = backing_part(in, m->pos, m->stored)};
	struct backing from = *in;
	struct stream_scan *scan;
	int r;

	store_le32(g.trailer, m->crc);
	store_le32(g.trailer + 4, (uint32_t)m->size);
	from.stream = NULL;
	from.files = &g.files;
	from.node = 0;
	from.pos = 0;
	from.size = GZIP_HEADER + m->stored + GZIP_TRAILER;
	r = stream_scan_new(&scan, stream_find("gzip"), &from, 1, damage);
	return r < 0 ? r : stream_scan_finish(scan, out, damage);
}

/* ---- before their turn --------------------------------------------------- */

static void deflate_run_expected(void *arg)
{
	struct expected *e = arg;

	e->r = deflate_scan_member(&e->of->from, &e->m, &e->stream, &e->damage);
	lock_scope(&e->of->lock);
	e->done = true;
	pthread_cond_broadcast(&e->of->ready);
}

static void deflate_begin_expected(struct deflate_ahead *a)
{
	while (a->begun < a->n && a->begun - a->taken < a->most)
		pool_submit(a->pool, deflate_run_expected, &a->at[a->begun++]);
}

void deflate_builder_expect(struct deflate_builder *b,
			    const struct deflate_member *m, size_t n,
			    unsigned threads)
{
	struct deflate_ahead *a;

	threads = (unsigned)min_u64(threads, n);
	if (threads < 2 || b->ahead)
		return;
	a = calloc(1, sizeof *a + n * sizeof a->at[0]);
	if (!a)
		return;
	/* Twice as many as threads, so that threads need not wait for a member to be
	 * taken. */
	a->most = 2 * (size_t)threads;
	if (pool_new(&a->pool, "inflate", threads, (unsigned)a->most, NULL) <
	    0) {
		free(a);
		return;
	}
	a->from = b->from;
	a->n = n;
	for (size_t i = 0; i < n; i++)
		a->at[i] = (struct expected){.of = a, .m = m[i]};
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->ready, NULL);
	b->ahead = a;
	deflate_begin_expected(a);
}

static void deflate_ahead_free(struct deflate_ahead *a)
{
	if (!a)
		return;
	pool_free(a->pool);
	for (size_t i = a->taken; i < a->begun; i++)
		stream_free(a->at[i].stream);
	pthread_mutex_destroy(&a->lock);
	pthread_cond_destroy(&a->ready);
	free(a);
}

/* As deflate_scan_member, for the next member in order. */
static int deflate_take_member(struct deflate_builder *b,
			       const struct deflate_member *m,
			       struct stream **out, struct error *damage)
{
	struct deflate_ahead *a = b->ahead;
	struct expected *e = a && a->taken < a->n ? &a->at[a->taken] : NULL;

	if (!e || e->m.pos != m->pos || e->m.size != m->size)
		return deflate_scan_member(&b->from, m, out, damage);
	pthread_mutex_lock(&a->lock);
	while (!e->done)
		pthread_cond_wait(&a->ready, &a->lock);
	pthread_mutex_unlock(&a->lock);
	a->taken++;
	deflate_begin_expected(a);
	*out = e->stream;
	*damage = e->damage;
	return e->r;
}

/* ---- points -------------------------------------------------------------- */

/* Store a state in the form that stream_state reads. */
static int deflate_put_state(struct deflate_builder *b,
			     const unsigned char *state, size_t n,
			     struct stream_point *p, struct error *err)
{
	unsigned char stored[4 + GZIP_STATE_HEAD + INFLATE_HISTORY];
	size_t size = 0;

	store_le32(stored, (uint32_t)n);
	if (n > 64)
		size = libdeflate_deflate_compress(b->deflater, state, n,
						   stored + 4, n - 1);
	if (!size) {
		memcpy(stored + 4, state, n);
		size = n;
	}
	p->state_size = (uint32_t)(4 + size);
	return blob_append(b->states, stored, 4 + size, &p->state, err);
}

/* Append point `i` of the gzip file `s`, moved to the member's place in the archive. */
static int deflate_move_point(struct deflate_builder *b,
			      const struct deflate_member *m,
			      const struct stream *s, uint64_t i,
			      struct error *err)
{
	unsigned char state[GZIP_STATE_HEAD + INFLATE_HISTORY];
	struct stream_point p = s->point[i];
	uint64_t header;
	ssize_t n;
	int r = 0;

	p.out += b->out;
	if (p.flags & POINT_START) {
		p.flags &= (uint8_t)~POINT_START;
		p.in = m->pos;
		p.state = b->start;
		p.state_size = b->start_size;
	} else {
		n = stream_state(s, i, state, sizeof state, err);
		if (n < GZIP_STATE_HEAD)
			return n < 0 ? (int)n
				     : error_set(err, -EIO,
						 "the state of a seek point is "
						 "too short");
		p.in = p.in - GZIP_HEADER + m->pos;
		header = load_le64(state);
		if (header != GZIP_NO_HEADER)
			store_le64(state, header + 8 * m->pos -
						  8 * (uint64_t)GZIP_HEADER);
		r = deflate_put_state(b, state, (size_t)n, &p, err);
	}
	if (r == 0 && !vec_push(&b->points, p))
		r = error_no_memory(err, "the seek points of deflated members");
	return r;
}

static int deflate_add_large(struct deflate_builder *b,
			     const struct deflate_member *m, struct error *err)
{
	struct stream *s = NULL;
	struct error damage = {0};
	size_t before = b->points.n;
	int r = deflate_take_member(b, m, &s, &damage);

	/* Without a stream the failure is not due to the data. */
	if (r < 0 || stream_size(s) != m->size) {
		if (r == 0 || s)
			r = deflate_damaged(&damage);
		stream_free(s);
		if (err)
			*err = damage;
		return r;
	}
	for (uint64_t i = 0; i < s->n && r == 0; i++)
		r = deflate_move_point(b, m, s, i, err);
	stream_free(s);
	if (r < 0)
		b->points.n = before;
	return r;
}

static int deflate_add_whole(struct deflate_builder *b,
			     const struct deflate_member *m, struct error *err)
{
	const struct stream_point p = {.out = b->out,
				       .in = m->pos,
				       .state = b->start,
				       .state_size = b->start_size,
				       .size = (uint32_t)m->size,
				       .crc = m->crc};

	return vec_push(&b->points, p)
		       ? 0
		       : error_no_memory(err,
					 "the seek points of deflated members");
}

int deflate_builder_add(struct deflate_builder *b,
			const struct deflate_member *m, uint64_t *at,
			struct error *err)
{
	int r = 0;

	*at = b->out;
	if (m->size > INT64_MAX / 2 - b->out)
		return error_set(err, -EBADMSG, "its size is impossible");
	if (m->size > DEFLATE_WHOLE)
		r = deflate_add_large(b, m, err);
	else if (m->size)
		r = deflate_add_whole(b, m, err);
	if (r == 0)
		b->out += m->size;
	return r;
}

/* ---- beginning and end --------------------------------------------------- */

int deflate_builder_new(struct deflate_builder **out,
			const struct backing *from, struct error *err)
{
	struct deflate_builder *b = calloc(1, sizeof *b);
	unsigned char begin[GZIP_STATE_HEAD];
	struct stream_point p;
	int r;

	*out = NULL;
	if (!b)
		return error_no_memory(err,
				       "the seek points of deflated members");
	b->from = *from;
	b->deflater = libdeflate_alloc_compressor(1);
	r = b->deflater ? blob_new(&b->states, STATES_MEMORY, NULL, err)
			: error_no_memory(
				  err, "the seek points of deflated members");
	store_le64(begin, GZIP_NO_HEADER);
	if (r == 0)
		r = deflate_put_state(b, begin, sizeof begin, &p, err);
	if (r < 0) {
		deflate_builder_free(b);
		return r;
	}
	b->start = p.state;
	b->start_size = p.state_size;
	*out = b;
	return 0;
}

int deflate_builder_finish(struct deflate_builder *b, struct stream **out,
			   struct error *err)
{
	struct blob *states = b->states;
	int r;

	b->states = NULL;
	r = deflate_of_points(out, &b->from, b->points.at, b->points.n, states,
			      err);
	deflate_builder_free(b);
	return r;
}

void deflate_builder_free(struct deflate_builder *b)
{
	if (!b)
		return;
	deflate_ahead_free(b->ahead);
	if (b->deflater)
		libdeflate_free_compressor(b->deflater);
	blob_free(b->states);
	vec_free(&b->points);
	free(b);
}
