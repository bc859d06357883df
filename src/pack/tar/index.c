/* SPDX-License-Identifier: BSD-2-Clause */
/* The index of a tar, made while the tar is written. */

/*
 * The scanner that reads a tar for a mount reads this one too, on a thread of its own,
 * from a tape that the writer records: headers as they are, members' contents as a number
 * of bytes to skip.  So the index says what a mount would have found, and the file need
 * not be read again.  Seek points are the beginnings of the stream's blocks.
 *
 *	writer   fills one half of the tape     | header | 4096 | header | 512 | ...
 *	scanner  reads the other
 *
 * A failure here is reported at the end and does not stop the writer.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "base/pool.h"
#include "formats/archive/archive.h"
#include "formats/tar/tar.h"
#include "pack/tar/private.h"

#define HALF ((size_t)256 << 10)
#define PIECES 2048

struct piece {
	uint64_t n;
	/* true: the bytes are in half.bytes; false: they are skipped. */
	bool bytes;
};
struct half {
	struct piece piece[PIECES];
	unsigned n;
	size_t used;
	unsigned char bytes[HALF];
};
struct tar_index {
	struct input in; /* first member: the scanner's end of the tape */
	const char *format;
	struct pool *pool;
	struct half *half[2];
	struct half *writing; /* the half that the writer fills */
	/* The half that the scanner reads; NULL: it needs one. */
	struct half *reading;
	/* The scanner's position: number of the piece in `reading`, */
	unsigned at;
	uint64_t at_n;  /* bytes of that piece that were consumed, */
	size_t at_byte; /* and offset of the next byte in half.bytes */
	struct members_builder *builder;
	struct error failure; /* the scanner's failure, once it has ended */
	vec(struct stream_point) points;
	bool no_memory; /* no memory for `points` */

	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t changed;
	struct half *full;  /* the next half for the scanner */
	struct half *empty; /* the next half for the writer */
	bool ended;         /* the writer has ended */
	bool stopped;       /* the scanner has ended */
};

/* ---- the scanner's end --------------------------------------------------- */

/* Return the read half to the writer and wait for the next one.  Return false at the
 * end. */
static bool next_half(struct tar_index *x)
{
	lock_scope(&x->lock);

	if (x->reading) {
		x->empty = steal_pointer(&x->reading);
		pthread_cond_broadcast(&x->changed);
	}
	while (!x->full && !x->ended)
		pthread_cond_wait(&x->changed, &x->lock);
	x->reading = steal_pointer(&x->full);
	x->at = 0;
	x->at_n = 0;
	x->at_byte = 0;
	return x->reading != NULL;
}

/* Wait for the next piece.  Return NULL at the end. */
static const struct piece *next_piece(struct tar_index *x)
{
	while (!x->reading || x->at == x->reading->n)
		if (!next_half(x))
			return NULL;
	return &x->reading->piece[x->at];
}

static void tape_pass(struct tar_index *x, const struct piece *p, uint64_t n)
{
	x->in.at += n;
	x->at_n += n;
	x->at_byte += p->bytes ? (size_t)n : 0;
	if (x->at_n == p->n) {
		x->at++;
		x->at_n = 0;
	}
}

static ssize_t tape_read(struct input *in, void *to, size_t n,
			 struct error *err)
{
	struct tar_index *x = (struct tar_index *)in;
	size_t done = 0;

	while (done < n) {
		const struct piece *p = next_piece(x);
		size_t part;

		if (!p)
			break;
		if (!p->bytes)
			return error_set(err, -EIO,
					 "a header is where a member's "
					 "contents should be: a defect");
		part = (size_t)min_u64(n - done, p->n - x->at_n);
		memcpy((unsigned char *)to + done,
		       x->reading->bytes + x->at_byte, part);
		tape_pass(x, p, part);
		done += part;
	}
	return (ssize_t)done;
}

static int64_t tape_skip(struct input *in, uint64_t n, struct error *err)
{
	struct tar_index *x = (struct tar_index *)in;
	uint64_t done = 0;

	(void)err;
	while (done < n) {
		const struct piece *p = next_piece(x);
		uint64_t part;

		if (!p)
			break;
		part = min_u64(n - done, p->n - x->at_n);
		tape_pass(x, p, part);
		done += part;
	}
	return (int64_t)done;
}

static void tape_free(struct input *in)
{
	(void)in;
}

static const struct input_ops tape_ops = {tape_read, tape_skip, tape_free};

static void run_scan(void *arg)
{
	struct tar_index *x = arg;
	struct tar_scanned scanned;
	struct error err = {0};

	if (tar_scan(&x->in, x->builder, &scanned, NULL, NULL, &err) == 0 &&
	    scanned.damaged)
		error_set(&err, -EIO,
			  "the tar that was written cannot be read back");
	x->failure = err;
	lock_scope(&x->lock);
	x->stopped = true;
	pthread_cond_broadcast(&x->changed);
}

/* ---- the writer's end ---------------------------------------------------- */

static void tape_hand_over(struct tar_index *x)
{
	lock_scope(&x->lock);

	while (!x->empty && !x->stopped)
		pthread_cond_wait(&x->changed, &x->lock);
	if (!x->stopped) {
		x->full = x->writing;
		x->writing = steal_pointer(&x->empty);
		pthread_cond_broadcast(&x->changed);
	}
	x->writing->n = 0;
	x->writing->used = 0;
}

void tar_index_add(struct tar_index *x, const void *bytes, size_t n, bool data)
{
	const unsigned char *from = bytes;

	while (n > 0) {
		struct half *h = x->writing;
		struct piece *last = h->n ? &h->piece[h->n - 1] : NULL;
		size_t part = data ? n : (size_t)min_u64(n, HALF - h->used);
		bool joins = last && last->bytes == !data;

		if (!part || (!joins && h->n == PIECES)) {
			tape_hand_over(x);
			continue;
		}
		if (!joins)
			h->piece[h->n++] = (struct piece){.bytes = !data};
		h->piece[h->n - 1].n += part;
		if (!data) {
			memcpy(h->bytes + h->used, from, part);
			h->used += part;
			from += part;
		}
		n -= part;
	}
}

/* Note a seek point.  Small blocks share one, as a mount would do, because each point is
 * kept in memory. */
void tar_index_block(struct tar_index *x, const struct squeeze_block *b,
		     uint64_t in)
{
	struct stream_point p = {.out = b->at,
				 .in = in,
				 .size = (uint32_t)b->len,
				 .crc = b->crc,
				 .flags = POINT_START};
	struct stream_point *last =
		x->points.n ? &x->points.at[x->points.n - 1] : NULL;

	if (!x->format || !b->len)
		return;
	if (last && (uint64_t)last->size + p.size <= STREAM_WINDOW) {
		last->crc = (uint32_t)crc32_combine(last->crc, p.crc, p.size);
		last->size += p.size;
	} else if (!vec_push(&x->points, p)) {
		x->no_memory = true;
	}
}

/* ---- beginning and end --------------------------------------------------- */

int tar_index_new(struct tar_index **out, const char *format, struct error *err)
{
	static const struct members_options options;
	struct tar_index *x = calloc(1, sizeof *x);
	int r;

	*out = NULL;
	if (!x)
		return error_no_memory(err, "the index of the tar");
	x->in.ops = &tape_ops;
	x->format = format;
	pthread_mutex_init(&x->lock, NULL);
	pthread_cond_init(&x->changed, NULL);
	x->half[0] = x->writing = calloc(1, sizeof *x->writing);
	x->half[1] = x->empty = calloc(1, sizeof *x->empty);
	r = x->writing && x->empty
		    ? members_builder_new(&x->builder, &options, err)
		    : error_no_memory(err, "the index of the tar");
	if (r == 0)
		r = pool_new(&x->pool, "index", 1, 1, err);
	if (r < 0) {
		tar_index_free(x);
		return r;
	}
	pool_submit(x->pool, run_scan, x);
	*out = x;
	return 0;
}

/* Signal the end of the tape and wait for the scanner. */
static void end_scan(struct tar_index *x)
{
	if (!x->pool)
		return;
	tape_hand_over(x);
	pthread_mutex_lock(&x->lock);
	x->ended = true;
	pthread_cond_broadcast(&x->changed);
	pthread_mutex_unlock(&x->lock);
	pool_free(steal_pointer(&x->pool));
}

int tar_index_save(struct tar_index *x, const char *path, char **where,
		   struct error *err)
{
	struct archive_written made = {.path = path, .format = x->format};
	struct members members;
	int r;

	*where = NULL;
	end_scan(x);
	if (x->failure.code)
		return error_set(err, x->failure.code, "%s", x->failure.text);
	if (x->no_memory)
		return error_no_memory(err, "the seek points of the index");
	r = members_finish(steal_pointer(&x->builder), &members, err);
	if (r < 0)
		return r;
	made.points = x->points.at;
	made.n_points = x->points.n;
	made.members = &members;
	return archive_index_written(&made, where, err);
}

void tar_index_free(struct tar_index *x)
{
	if (!x)
		return;
	end_scan(x);
	if (x->builder)
		members_builder_free(x->builder);
	vec_free(&x->points);
	free(x->half[0]);
	free(x->half[1]);
	pthread_cond_destroy(&x->changed);
	pthread_mutex_destroy(&x->lock);
	free(x);
}
