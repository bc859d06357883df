/* SPDX-License-Identifier: BSD-2-Clause */
/* Read and write the journal of a merge. */
#include "tensors/merge/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "base/vec.h"

/* ---- values -------------------------------------------------------------- */

struct reader {
	const unsigned char *at;
	size_t left;
	bool bad; /* the record ends before its values do, or memory is short */
};

static const unsigned char *record_take_bytes(struct reader *r, size_t n)
{
	const unsigned char *p = r->at;

	if (r->bad || n > r->left) {
		r->bad = true;
		return NULL;
	}
	r->at += n;
	r->left -= n;
	return p;
}

static uint32_t get32(struct reader *r)
{
	const unsigned char *p = record_take_bytes(r, 4);

	return p ? load_le32(p) : 0;
}

static uint64_t get64(struct reader *r)
{
	const unsigned char *p = record_take_bytes(r, 8);

	return p ? load_le64(p) : 0;
}

/* Return a text in memory that the caller frees.  A text that has a NUL in it is an
 * error. */
static char *get_text(struct reader *r)
{
	uint32_t n = get32(r);
	const unsigned char *p = record_take_bytes(r, n);
	char *text = p && !memchr(p, 0, n) ? malloc((size_t)n + 1) : NULL;

	if (!text) {
		r->bad = true;
		return NULL;
	}
	memcpy(text, p, n);
	text[n] = 0;
	return text;
}

static void get_identity(struct reader *r, struct identity *id)
{
	id->dev = get64(r);
	id->ino = get64(r);
	id->size = get64(r);
	id->mtime = get64(r);
}

/* ---- records ------------------------------------------------------------- */

static int journal_bad_record(struct error *err)
{
	return error_set(err, -EBADMSG, "one of its records is damaged");
}

static void get_pipeline(struct reader *r, uint32_t elem, struct pipeline *p,
			 struct error *err)
{
	uint32_t n = get32(r);

	p->n = 0;
	for (uint32_t i = 0; i < n && !r->bad; i++) {
		uint32_t id = get32(r), n_cd = get32(r), cd[CODEC_CD_MAX];

		if (n_cd > CODEC_CD_MAX) {
			r->bad = true;
			break;
		}
		for (uint32_t k = 0; k < n_cd; k++)
			cd[k] = get32(r);
		if (!r->bad &&
		    pipeline_add(p, id, NULL, cd, n_cd, elem, err) < 0)
			r->bad = true;
	}
}

static bool get_stream(struct reader *r, struct journal_stream *s)
{
	struct error ignored;
	struct grid g;

	s->path = get_text(r);
	s->rank = get32(r);
	s->elem = get32(r);
	if (r->bad || !s->rank || s->rank > RANK_MAX)
		return false;
	for (unsigned i = 0; i < s->rank; i++) {
		s->shape[i] = get64(r);
		s->chunk[i] = get64(r);
	}
	get_pipeline(r, s->elem, &s->pipeline, &ignored);
	if (r->bad || grid_init(&g, s->rank, s->shape, s->chunk, s->elem) < 0 ||
	    g.chunk_bytes > BUILD_CHUNK_MAX || g.count > MERGE_CHUNKS_MAX)
		return false;
	s->count = g.count;
	return true;
}

static int read_plan(struct journal *j, struct reader *r, struct error *err)
{
	uint32_t n;

	get_identity(r, &j->main);
	j->options = get_text(r);
	n = get32(r);
	for (uint32_t i = 0; i < n && !r->bad; i++) {
		struct journal_stream s = {.path = NULL};

		if (!get_stream(r, &s) || !vec_push(&j->streams, s)) {
			free(s.path);
			return journal_bad_record(err);
		}
	}
	n = get32(r);
	for (uint32_t i = 0; i < n && !r->bad; i++) {
		struct journal_file f = {.path = get_text(r)};

		get_identity(r, &f.id);
		f.kept = get32(r) != 0;
		if (r->bad || !vec_push(&j->parts, f)) {
			free(f.path);
			return journal_bad_record(err);
		}
	}
	return 0;
}

static bool get_runs(struct reader *r, struct journal_text *t)
{
	uint32_t n = get32(r);

	for (uint32_t i = 0; i < n && !r->bad; i++) {
		struct journal_run run = {.rows = get64(r)};

		run.value = get_text(r);
		if (r->bad || !vec_push(&t->runs, run)) {
			free(run.value);
			return false;
		}
	}
	return !r->bad;
}

static int read_texts(struct journal *j, struct reader *r, struct error *err)
{
	uint32_t n = get32(r);

	for (uint32_t i = 0; i < n && !r->bad; i++) {
		struct journal_text t = {.path = get_text(r)};
		bool ok = !r->bad && get_runs(r, &t);

		if (!vec_push(&j->texts, t)) {
			journal_text_free(&t);
			return error_no_memory(err, "the journal of the merge");
		}
		if (!ok)
			return journal_bad_record(err);
	}
	return 0;
}

static bool chunk_is_possible(const struct journal *j,
			      const struct journal_chunk *c, uint64_t end)
{
	uint64_t count;

	if (c->stream >= j->streams.n)
		return false;
	count = j->streams.at[c->stream].count;
	if (c->at.number >= count)
		return false;
	if (!c->at.len)
		return c->at.pos && c->at.pos <= count - c->at.number;
	return c->at.pos >= BUILD_FIRST && c->at.pos <= end &&
	       c->at.len <= end - c->at.pos;
}

static int read_chunks(struct journal *j, struct reader *r, struct error *err)
{
	uint64_t end = get64(r), n = get64(r);

	if (end < j->end || end > INT64_MAX / 2)
		return journal_bad_record(err);
	for (uint64_t i = 0; i < n && !r->bad; i++) {
		struct journal_chunk c = {.stream = get32(r)};

		c.at.mask = get32(r);
		c.at.number = get64(r);
		c.at.pos = get64(r);
		c.at.len = get32(r);
		if (r->bad || !chunk_is_possible(j, &c, end))
			return journal_bad_record(err);
		if (!vec_push(&j->chunks, c))
			return error_no_memory(err, "the journal of the merge");
	}
	j->end = end;
	return 0;
}

static int journal_read_record(struct journal *j, uint32_t kind,
			       struct reader *r, struct error *err)
{
	int x = 0;

	if (j->made || (kind == JOURNAL_PLAN) != !j->options)
		return journal_bad_record(err);
	switch (kind) {
	case JOURNAL_PLAN:
		x = read_plan(j, r, err);
		break;
	case JOURNAL_TEXTS:
		x = read_texts(j, r, err);
		break;
	case JOURNAL_CHUNKS:
		x = read_chunks(j, r, err);
		break;
	case JOURNAL_MADE:
		get_identity(r, &j->file);
		j->made = true;
		break;
	default:
		x = error_set(err, -ENOTSUP,
			      "another version of tensorfs wrote it");
	}
	return x == 0 && (r->bad || r->left) ? journal_bad_record(err) : x;
}

/* ---- all of it ----------------------------------------------------------- */

/* Return true, with kind and length, if there is a complete record at `pos`. */
static bool record_at(const unsigned char *data, size_t n, uint64_t pos,
		      uint32_t *kind, uint64_t *len)
{
	uint64_t left = n - pos;
	const unsigned char *p = data + pos;

	if (left < JOURNAL_FRONT + JOURNAL_BACK)
		return false;
	*kind = load_le32(p);
	*len = load_le64(p + 8);
	if (load_le32(p + 4) != 0 || *len > left - JOURNAL_FRONT - JOURNAL_BACK)
		return false;
	return XXH3_64bits_withSeed(p, JOURNAL_FRONT + *len, pos) ==
	       load_le64(p + JOURNAL_FRONT + *len);
}

int journal_parse(struct journal *j, const void *data, size_t n,
		  struct error *err)
{
	const unsigned char *p = data;
	uint64_t len;
	uint32_t kind;
	int r = 0;

	memset(j, 0, sizeof *j);
	j->end = BUILD_FIRST;
	while (r == 0 && record_at(p, n, j->whole, &kind, &len)) {
		struct reader in = {.at = p + j->whole + JOURNAL_FRONT,
				    .left = len};

		r = journal_read_record(j, kind, &in, err);
		j->whole += JOURNAL_FRONT + len + JOURNAL_BACK;
	}
	return r;
}

int journal_read(struct journal *j, int fd, const char *path, struct error *err)
{
	cleanup_free void *data = NULL;
	struct stat st;
	ssize_t got;
	int r;

	memset(j, 0, sizeof *j);
	j->end = BUILD_FIRST;
	if (fstat(fd, &st) < 0)
		return error_errno(err, -errno, "'%s'", file_shown(path));
	if (st.st_size == 0)
		return 0;
	data = malloc((size_t)st.st_size);
	if (!data)
		return error_no_memory(err, "the journal of the merge");
	got = file_read(fd, 0, data, (size_t)st.st_size);
	if (got < 0)
		return error_errno(err, (int)got, "'%s'", file_shown(path));
	r = journal_parse(j, data, (size_t)got, err);
	if (r < 0)
		error_prefix(err, "'%s': ", file_shown(path));
	return r;
}

void journal_text_free(struct journal_text *t)
{
	for (size_t i = 0; i < t->runs.n; i++)
		free(t->runs.at[i].value);
	vec_free(&t->runs);
	free(t->path);
}

void journal_free(struct journal *j)
{
	for (size_t i = 0; i < j->streams.n; i++)
		free(j->streams.at[i].path);
	for (size_t i = 0; i < j->parts.n; i++)
		free(j->parts.at[i].path);
	for (size_t i = 0; i < j->texts.n; i++)
		journal_text_free(&j->texts.at[i]);
	vec_free(&j->streams);
	vec_free(&j->parts);
	vec_free(&j->texts);
	vec_free(&j->chunks);
	free(j->options);
	memset(j, 0, sizeof *j);
}

/* ---- writing ------------------------------------------------------------- */

struct record {
	vec(unsigned char) v;
	bool failed; /* memory is short */
};

static void record_put(struct record *r, const void *data, size_t n)
{
	while (!r->failed && r->v.room - r->v.n < n)
		r->failed =
			!vec_grow((void **)&r->v.at, r->v.room, &r->v.room, 1);
	if (r->failed || !n)
		return;
	memcpy(r->v.at + r->v.n, data, n);
	r->v.n += n;
}

static void record_put32(struct record *r, uint32_t v)
{
	unsigned char b[4];

	store_le32(b, v);
	record_put(r, b, sizeof b);
}

static void record_put64(struct record *r, uint64_t v)
{
	unsigned char b[8];

	store_le64(b, v);
	record_put(r, b, sizeof b);
}

static void record_put_text(struct record *r, const char *text)
{
	size_t n = strlen(text);

	record_put32(r, (uint32_t)n);
	record_put(r, text, n);
}

static void record_put_identity(struct record *r, const struct identity *id)
{
	record_put64(r, id->dev);
	record_put64(r, id->ino);
	record_put64(r, id->size);
	record_put64(r, id->mtime);
}

static void record_begin(struct record *r, enum journal_kind kind)
{
	*r = (struct record){.failed = false};
	record_put32(r, (uint32_t)kind);
	record_put32(r, 0);
	record_put64(r, 0);
}

static int record_write_bytes(int fd, const unsigned char *p, size_t n,
			      uint64_t pos)
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

/* Fill in the length and the checksum, and write and sync the record. */
static int record_write(struct record *r, struct journal *j, int fd,
			struct error *err)
{
	int x = -ENOMEM;

	if (!r->failed) {
		store_le64(r->v.at + 8, r->v.n - JOURNAL_FRONT);
		record_put64(r,
			     XXH3_64bits_withSeed(r->v.at, r->v.n, j->whole));
	}
	if (!r->failed)
		x = record_write_bytes(fd, r->v.at, r->v.n, j->whole);
	if (x == 0)
		j->whole += r->v.n;
	vec_free(&r->v);
	return x < 0 ? error_errno(err, x,
				   "cannot write the journal of the "
				   "merge")
		     : 0;
}

static void record_put_stream(struct record *r, const struct journal_stream *s)
{
	record_put_text(r, s->path);
	record_put32(r, s->rank);
	record_put32(r, s->elem);
	for (unsigned i = 0; i < s->rank; i++) {
		record_put64(r, s->shape[i]);
		record_put64(r, s->chunk[i]);
	}
	record_put32(r, s->pipeline.n);
	for (unsigned i = 0; i < s->pipeline.n; i++) {
		const struct pipeline_filter *f = &s->pipeline.filter[i];

		record_put32(r, f->id);
		record_put32(r, f->params.n);
		for (unsigned k = 0; k < f->params.n; k++)
			record_put32(r, f->params.cd[k]);
	}
}

static int record_write_texts(struct journal *j, int fd, struct error *err)
{
	struct record r;

	record_begin(&r, JOURNAL_TEXTS);
	record_put32(&r, (uint32_t)j->texts.n);
	for (size_t i = 0; i < j->texts.n; i++) {
		const struct journal_text *t = &j->texts.at[i];

		record_put_text(&r, t->path);
		record_put32(&r, (uint32_t)t->runs.n);
		for (size_t k = 0; k < t->runs.n; k++) {
			record_put64(&r, t->runs.at[k].rows);
			record_put_text(&r, t->runs.at[k].value);
		}
	}
	return record_write(&r, j, fd, err);
}

int journal_write_plan(struct journal *j, int fd, struct error *err)
{
	struct record r;
	int x;

	record_begin(&r, JOURNAL_PLAN);
	record_put_identity(&r, &j->main);
	record_put_text(&r, j->options);
	record_put32(&r, (uint32_t)j->streams.n);
	for (size_t i = 0; i < j->streams.n; i++)
		record_put_stream(&r, &j->streams.at[i]);
	record_put32(&r, (uint32_t)j->parts.n);
	for (size_t i = 0; i < j->parts.n; i++) {
		record_put_text(&r, j->parts.at[i].path);
		record_put_identity(&r, &j->parts.at[i].id);
		record_put32(&r, j->parts.at[i].kept);
	}
	x = record_write(&r, j, fd, err);
	return x < 0 ? x : record_write_texts(j, fd, err);
}

int journal_write_chunks(struct journal *j, int fd, size_t from, uint64_t end,
			 struct error *err)
{
	struct record r;

	record_begin(&r, JOURNAL_CHUNKS);
	record_put64(&r, end);
	record_put64(&r, j->chunks.n - from);
	for (size_t i = from; i < j->chunks.n; i++) {
		const struct journal_chunk *c = &j->chunks.at[i];

		record_put32(&r, c->stream);
		record_put32(&r, c->at.mask);
		record_put64(&r, c->at.number);
		record_put64(&r, c->at.pos);
		record_put32(&r, c->at.len);
	}
	return record_write(&r, j, fd, err);
}

int journal_write_made(struct journal *j, int fd, const struct identity *id,
		       struct error *err)
{
	struct record r;

	record_begin(&r, JOURNAL_MADE);
	record_put_identity(&r, id);
	return record_write(&r, j, fd, err);
}
