/* SPDX-License-Identifier: BSD-2-Clause */
/* What is asked of HDF5 workers, and how answers are made into ours again. */
/*
 * A request names things by their address, for a worker is a copy of this
 * process.  What was learnt since then, and every answer, goes by value; an
 * answer comes from a process that a damaged file may have upset, so numbers in
 * it are checked, and filters looked up again.
 *
 * Which file is asked about is decided here: it is pinned during the call, the
 * request carries its identity, the worker compares it with what it has open,
 * and afterwards it is compared once more.  So both speak of the same bytes.
 *
 * A worker that crashed may owe that to a file it was asked about earlier.  The
 * call is therefore made once more with a fresh one, and only what crashes that
 * one, too, is called damaged.  A worker that reported damage is not used again.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "source/hdf5_request.h"

/* ---- one call --------------------------------------------- */

/* What comes back: into `data` where its size is known, else malloc'ed. */
struct result {
	void *data;
	uint64_t size;
	bool fixed;
};

static int result_receive(struct hdf5_worker *w, uint64_t size,
			  struct result *out)
{
	int r;

	if (out->fixed && size != out->size)
		return -EPIPE;
	if (out->fixed)
		return hdf5_worker_receive(w, out->data, size);
	if (size > HDF5_TEXT_MAX)
		return -EPIPE;
	out->data = malloc(size + 1);
	if (!out->data)
		return -ENOMEM;
	out->size = size;
	r = hdf5_worker_receive(w, out->data, size);
	((char *)out->data)[size] = '\0';
	if (r < 0)
		free(steal_pointer(&out->data));
	return r;
}

/* 0: there is an answer, perhaps an error.  -EPIPE, -ETIMEDOUT, -ENOMEM. */
static int exchange(struct hdf5_worker *w, const struct request *q,
		    struct result *out, struct error *said)
{
	struct reply reply;
	int r = hdf5_worker_send(w, q, sizeof *q);

	if (!r)
		r = hdf5_worker_receive(w, &reply, sizeof reply);
	if (r < 0)
		return r;
	*said = reply.err;
	said->text[sizeof said->text - 1] = '\0';
	if (said->code > 0)
		return -EPIPE;
	return said->code ? 0 : result_receive(w, reply.size, out);
}

static int fail_lost(const struct request *q, int r, const char *how,
		     struct error *err)
{
	const char *name = handles_name(q->t->handles, q->file);

	if (r == -ENOMEM)
		return error_set(err, r, "%s: out of memory", name);
	if (r == -ETIMEDOUT)
		return error_set(err, -EIO,
				 "%s: libhdf5 does not come back from it: the "
				 "file is damaged, or its file system does not "
				 "answer",
				 name);
	return error_set(err, -EIO,
			 "%s: libhdf5 crashed on it (%s): the file is damaged",
			 name, how);
}

static int ask(const struct request *q, struct result *out, struct error *err)
{
	struct hdf5_worker *w;
	struct error said = {0};
	char how[64] = "";
	int r = -EPIPE;

	for (int i = 0; i < 2 && r == -EPIPE; i++) {
		r = hdf5_worker_take(&w, err);
		if (r < 0)
			return r;
		r = exchange(w, q, out, &said);
		if (r < 0 || said.code == -EIO || said.code == -EBADMSG)
			hdf5_worker_end(w, how, sizeof how);
		else
			hdf5_worker_give(w);
	}
	if (r < 0)
		return fail_lost(q, r, how, err);
	return said.code ? error_set(err, said.code, "%s", said.text) : 0;
}

/* Ask about a file that stays the same meanwhile. */
static int call(struct request *q, struct result *out, struct error *err)
{
	struct handles *h = q->t->handles;
	struct error stale = {0};
	struct handle pin;
	struct stat st;
	int r = handles_get(h, q->file, &pin, err), same;

	if (r < 0)
		return r;
	if (fstat(pin.fd, &st) < 0) {
		r = error_errno(err, -EIO, "%s", handles_name(h, q->file));
	} else {
		identity_of(&st, &q->id);
		r = ask(q, out, err);
	}
	/* A file that changed explains everything else. */
	same = handles_check(h, &pin, &stale);
	handles_put(h, &pin);
	if (same == 0)
		return r;
	if (r == 0 && !out->fixed)
		free(steal_pointer(&out->data));
	return error_set(err, same, "%s", stale.text);
}

/* ---- the operations of a tensor --------------------------- */

static struct request request_for(struct tensor *t, enum op op, uint32_t p)
{
	struct request q;

	memset(&q, 0, sizeof q); /* holes, too: it is written to a socket */
	q.op = op;
	q.t = t;
	q.p = p;
	q.file = t->parts[p].file;
	return q;
}

static int rebuild_shared(struct hdf5_source *s, const struct learnt *x,
			  struct layout *l, struct error *err)
{
	struct pipeline p;
	struct grid g;
	int r = 0;

	memset(&p, 0, sizeof p);
	memset(&g, 0, sizeof g);
	if (x->grid.rank > RANK_MAX || x->pipeline.n > PIPELINE_MAX ||
	    grid_init(&g, x->grid.rank, x->grid.shape, x->grid.chunk,
		      x->grid.elem) < 0 ||
	    g.count >= TENSOR_CHUNK_MAX)
		return error_set(err, -EIO, "its layout is out of bounds");
	for (unsigned i = 0; i < x->pipeline.n && !r; i++) {
		const struct pipeline_filter *f = &x->pipeline.filter[i];
		char name[sizeof f->name];

		memcpy(name, f->name, sizeof name);
		name[sizeof name - 1] = '\0';
		r = f->params.n > CODEC_CD_MAX
			    ? error_set(err, -EIO, "too many parameters")
			    : pipeline_add(&p, f->id, name, f->params.cd,
					   f->params.n, f->params.elem_size,
					   err);
	}
	if (r < 0)
		return r;
	l->grid = intern_bytes(&s->intern, &g, sizeof g);
	l->pipeline = intern_bytes(&s->intern, &p, sizeof p);
	return l->grid && l->pipeline
		       ? 0
		       : error_set(err, -ENOMEM, "out of memory");
}

/* A layout of ours, with what the worker says of it. */
static int layout_rebuild(struct tensor *t, uint32_t p, const struct learnt *x,
			  struct layout **out, struct error *err)
{
	static const unsigned char zero[8];
	struct layout *l = malloc(sizeof *l);
	int r;

	if (!l)
		return error_set(err, -ENOMEM, "out of memory");
	*l = x->layout;
	l->file = t->parts[p].file;
	l->origin = t->parts[p].origin;
	l->fill.pattern = x->zero ? zero : l->fill_bytes;
	if (x->grid.rank != t->rank || x->grid.elem != t->stored.size ||
	    l->kind > LAYOUT_ABSENT || l->swap > 8 ||
	    l->fill.width != (x->zero ? 1 : t->stored.size) ||
	    l->fill.width > sizeof l->fill_bytes)
		r = error_set(err, -EIO, "its layout is out of bounds");
	else
		r = rebuild_shared(((struct hdf5_tensor *)t)->source, x, l,
				   err);
	if (r < 0) {
		error_prefix(err, "%s: dataset '%s': ",
			     handles_name(t->handles, t->parts[p].file),
			     t->parts[p].dataset);
		free(l);
		return r;
	}
	*out = l;
	return 0;
}

int hdf5_call_learn(struct tensor *t, uint32_t p, struct layout **out,
		    struct error *err)
{
	cleanup_free struct learnt *x = NULL;
	struct request q;
	struct result is;
	int r;

	if (!hdf5_isolated())
		return hdf5_part_learn(t, p, out, err);
	x = malloc(sizeof *x);
	if (!x)
		return error_set(err, -ENOMEM, "out of memory");
	q = request_for(t, LEARN, p);
	is = (struct result){x, sizeof *x, true};
	r = call(&q, &is, err);
	return r < 0 ? r : layout_rebuild(t, p, x, out, err);
}

/* LOCATE and FETCH: with the layout by value, into memory of the caller. */
static int call_fixed(struct request *q, const struct layout *l, void *out,
		      size_t size, struct error *err)
{
	struct result is = {out, size, true};

	q->layout = *l;
	q->grid = *l->grid;
	return call(q, &is, err);
}

int hdf5_call_locate(struct tensor *t, uint32_t p, const struct layout *l,
		     uint64_t first, uint32_t n, struct location *out,
		     struct error *err)
{
	struct request q;

	if (!hdf5_isolated())
		return hdf5_part_locate(t, p, l, first, n, out, err);
	q = request_for(t, LOCATE, p);
	q.first = first;
	q.n = n;
	return call_fixed(&q, l, out, n * sizeof *out, err);
}

int hdf5_call_fetch(struct tensor *t, uint32_t p, const struct layout *l,
		    uint64_t chunk, void *out, size_t size, struct error *err)
{
	struct request q;

	if (!hdf5_isolated())
		return hdf5_part_fetch(t, p, l, chunk, out, size, err);
	q = request_for(t, FETCH, p);
	q.first = chunk;
	q.n = size;
	return call_fixed(&q, l, out, size, err);
}

/* Pass `n` strings on, each a length and bytes; or none, if that is not what
 * there is. */
static bool strings_pass(const struct result *is, uint64_t n,
			 void (*put)(void *ctx, const char *s, size_t len),
			 void *ctx)
{
	const char *begin = is->data;
	uint64_t at, len, i;

	for (int pass = 0; pass < 2; pass++) {
		for (at = i = 0; i < n; i++, at += len) {
			if (is->size - at < sizeof len)
				return false;
			memcpy(&len, begin + at, sizeof len);
			at += sizeof len;
			if (len > is->size - at)
				return false;
			if (pass)
				put(ctx, begin + at, len);
		}
		if (at != is->size)
			return false;
	}
	return true;
}

int hdf5_call_strings(struct tensor *t, uint32_t p, uint64_t first, uint64_t n,
		      void (*put)(void *ctx, const char *s, size_t len),
		      void *ctx, struct error *err)
{
	struct result is = {NULL, 0, false};
	struct request q;
	int r;

	if (!hdf5_isolated())
		return hdf5_part_strings(t, p, first, n, put, ctx, err);
	q = request_for(t, STRINGS, p);
	q.first = first;
	q.n = n;
	r = call(&q, &is, err);
	if (r < 0)
		return r;
	if (!strings_pass(&is, n, put, ctx))
		r = error_set(err, -EIO, "%s: dataset '%s': not %llu strings",
			      handles_name(t->handles, q.file),
			      t->parts[p].dataset, (unsigned long long)n);
	free(is.data);
	return r;
}

char *hdf5_call_attributes(struct tensor *t, struct error *err)
{
	struct result is = {NULL, 0, false};
	struct request q;

	if (!hdf5_isolated())
		return hdf5_tensor_attributes(t, err);
	memset(&q, 0, sizeof q);
	q.op = ATTRIBUTES;
	q.t = t;
	q.file = ((struct hdf5_tensor *)t)->source->file;
	return call(&q, &is, err) < 0 ? NULL : is.data;
}
