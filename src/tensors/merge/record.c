/* SPDX-License-Identifier: BSD-2-Clause */
/* What a merge has done so far: writing it down. */
#include "tensors/merge/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/bytes.h"
#include "base/vec.h"

struct record {
	vec(unsigned char) v;
	bool failed; /* no memory */
};

static void put(struct record *r, const void *data, size_t n)
{
	while (!r->failed && r->v.room - r->v.n < n)
		r->failed =
			!vec_grow((void **)&r->v.at, r->v.room, &r->v.room, 1);
	if (r->failed || !n)
		return;
	memcpy(r->v.at + r->v.n, data, n);
	r->v.n += n;
}

static void put32(struct record *r, uint32_t v)
{
	unsigned char b[4];

	store_le32(b, v);
	put(r, b, sizeof b);
}

static void put64(struct record *r, uint64_t v)
{
	unsigned char b[8];

	store_le64(b, v);
	put(r, b, sizeof b);
}

static void put_text(struct record *r, const char *text)
{
	size_t n = strlen(text);

	put32(r, (uint32_t)n);
	put(r, text, n);
}

static void put_identity(struct record *r, const struct identity *id)
{
	put64(r, id->dev);
	put64(r, id->ino);
	put64(r, id->size);
	put64(r, id->mtime);
}

static void begin(struct record *r, enum journal_kind kind)
{
	*r = (struct record){.failed = false};
	put32(r, (uint32_t)kind);
	put32(r, 0);
	put64(r, 0);
}

static int write_all(int fd, const unsigned char *p, size_t n, uint64_t pos)
{
	while (n > 0) {
		ssize_t done = pwrite(fd, p, n, (off_t)pos);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		p += done;
		pos += (uint64_t)done;
		n -= (size_t)done;
	}
	return fdatasync(fd) < 0 ? -errno : 0;
}

/* Length and checksum are known now: down with it. */
static int finish(struct record *r, struct journal *j, int fd,
		  struct error *err)
{
	int x = -ENOMEM;

	if (!r->failed) {
		store_le64(r->v.at + 8, r->v.n - JOURNAL_FRONT);
		put64(r, XXH3_64bits_withSeed(r->v.at, r->v.n, j->whole));
	}
	if (!r->failed)
		x = write_all(fd, r->v.at, r->v.n, j->whole);
	if (x == 0)
		j->whole += r->v.n;
	vec_free(&r->v);
	return x < 0 ? error_errno(err, x,
				   "cannot write the journal of the "
				   "merge")
		     : 0;
}

static void put_stream(struct record *r, const struct journal_stream *s)
{
	put_text(r, s->path);
	put32(r, s->rank);
	put32(r, s->elem);
	for (unsigned i = 0; i < s->rank; i++) {
		put64(r, s->shape[i]);
		put64(r, s->chunk[i]);
	}
	put32(r, s->pipeline.n);
	for (unsigned i = 0; i < s->pipeline.n; i++) {
		const struct pipeline_filter *f = &s->pipeline.filter[i];

		put32(r, f->id);
		put32(r, f->params.n);
		for (unsigned k = 0; k < f->params.n; k++)
			put32(r, f->params.cd[k]);
	}
}

static int write_texts(struct journal *j, int fd, struct error *err)
{
	struct record r;

	begin(&r, JOURNAL_TEXTS);
	put32(&r, (uint32_t)j->texts.n);
	for (size_t i = 0; i < j->texts.n; i++) {
		const struct journal_text *t = &j->texts.at[i];

		put_text(&r, t->path);
		put32(&r, (uint32_t)t->runs.n);
		for (size_t k = 0; k < t->runs.n; k++) {
			put64(&r, t->runs.at[k].rows);
			put_text(&r, t->runs.at[k].value);
		}
	}
	return finish(&r, j, fd, err);
}

int journal_write_plan(struct journal *j, int fd, struct error *err)
{
	struct record r;
	int x;

	begin(&r, JOURNAL_PLAN);
	put_identity(&r, &j->main);
	put_text(&r, j->options);
	put32(&r, (uint32_t)j->streams.n);
	for (size_t i = 0; i < j->streams.n; i++)
		put_stream(&r, &j->streams.at[i]);
	put32(&r, (uint32_t)j->parts.n);
	for (size_t i = 0; i < j->parts.n; i++) {
		put_text(&r, j->parts.at[i].path);
		put_identity(&r, &j->parts.at[i].id);
		put32(&r, j->parts.at[i].kept);
	}
	x = finish(&r, j, fd, err);
	return x < 0 ? x : write_texts(j, fd, err);
}

int journal_write_chunks(struct journal *j, int fd, size_t from, uint64_t end,
			 struct error *err)
{
	struct record r;

	begin(&r, JOURNAL_CHUNKS);
	put64(&r, end);
	put64(&r, j->chunks.n - from);
	for (size_t i = from; i < j->chunks.n; i++) {
		const struct journal_chunk *c = &j->chunks.at[i];

		put32(&r, c->stream);
		put32(&r, c->at.mask);
		put64(&r, c->at.number);
		put64(&r, c->at.pos);
		put32(&r, c->at.len);
	}
	return finish(&r, j, fd, err);
}

int journal_write_made(struct journal *j, int fd, const struct identity *id,
		       struct error *err)
{
	struct record r;

	begin(&r, JOURNAL_MADE);
	put_identity(&r, id);
	return finish(&r, j, fd, err);
}
