/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests to HDF5 workers, and how their answers are checked and decoded. */
/*
 * A request goes by value: files and objects are named by their paths, for a
 * worker is a copy of this process as it was when the tree was built, and knows
 * nothing that was learnt since.  Answers come from a process that a damaged file
 * may have upset, so numbers in them are checked.
 *
 * The daemon decides which file is meant: it pins the file during the call and sends
 * the file's identity, the worker compares that with the file it has open, and the
 * daemon compares once more afterwards.  So both read the same bytes.
 *
 * A worker may have crashed because of a file that it read earlier, or another process
 * may have killed it.  The call is therefore repeated until a fresh worker was asked;
 * a file counts as damaged only if that worker crashes, too.  A worker that reported
 * damage is not used again.
 */
#include "formats/hdf5/worker/call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "formats/hdf5/chunk/chunk.h"
#include "formats/hdf5/export/monolith.h"
#include "formats/hdf5/value/value.h"
#include "formats/hdf5/worker/request.h"

/* ---- one call --------------------------------------------- */

struct question {
	struct request q;
	uint32_t file;
	const char *path, *object, *member;
	const void *text;
};

/* Make a question. Padding is cleared too, because it is written to a socket. */
static struct question question_about(enum op op, const struct hdf5_place *at,
				      const char *member)
{
	struct question x;

	memset(&x, 0, sizeof x);
	x.q.op = op;
	x.q.s = at->s;
	x.file = at->file;
	x.path = handles_path(at->s->handles, at->file);
	x.object = at->object;
	x.member = member ? member : "";
	x.q.path_len = (uint32_t)strlen(x.path);
	x.q.object_len = (uint32_t)strlen(x.object);
	x.q.member_len = (uint32_t)strlen(x.member);
	return x;
}

/* The answer: `data` is the caller's if its size is known (`fixed`), else malloc'ed. */
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

/* Send a question and receive its answer. Return 0 if there is one (perhaps an
 * error, in *said), else -EPIPE, -ETIMEDOUT or -ENOMEM. */
static int exchange_with_worker(struct hdf5_worker *w, const struct question *x,
				struct result *out, struct error *said)
{
	struct reply reply;
	int r = hdf5_worker_send(w, &x->q, sizeof x->q);

	if (!r)
		r = hdf5_worker_send(w, x->path, x->q.path_len);
	if (!r)
		r = hdf5_worker_send(w, x->object, x->q.object_len);
	if (!r)
		r = hdf5_worker_send(w, x->member, x->q.member_len);
	if (!r)
		r = hdf5_worker_send(w, x->text, x->q.text_len);
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

static int fail_lost_worker(const struct question *x, int r, const char *how,
			    struct error *err)
{
	const char *name = handles_name(x->q.s->handles, x->file);

	if (r == -ENOMEM) {
		error_no_memory(err, "the answer of an HDF5 worker");
		error_prefix(err, "%s: ", name);
		return -ENOMEM;
	}
	if (r == -ETIMEDOUT)
		return error_set(
			err, -EIO,
			"%s: libhdf5 does not return from reading it: the file "
			"is damaged, or its file system does not answer",
			name);
	return error_set(err, -EIO,
			 "%s: libhdf5 crashed on it (%s): the file is damaged",
			 name, how);
}

static int ask_worker(const struct question *x, struct result *out,
		      struct error *err)
{
	struct hdf5_worker *w;
	struct error said = {0};
	char how[64] = "";
	int r = -EPIPE;

	/* Other processes may have killed all workers since they were used last. */
	for (int i = 0; i <= HDF5_WORKERS_MAX && r == -EPIPE; i++) {
		r = hdf5_worker_take(&w, err);
		if (r < 0)
			return r;
		r = exchange_with_worker(w, x, out, &said);
		if (r < 0 || said.code == -EIO || said.code == -EBADMSG)
			hdf5_worker_end(w, how, sizeof how);
		else
			hdf5_worker_give(w);
	}
	if (r < 0)
		return fail_lost_worker(x, r, how, err);
	return said.code ? error_set(err, said.code, "%s", said.text) : 0;
}

/* Ask a worker while the file is pinned, then check that the file did not change. */
static int call_worker(struct question *x, struct result *out,
		       struct error *err)
{
	struct handles *h = x->q.s->handles;
	struct error stale = {0};
	struct handle pin;
	struct stat st;
	int r = handles_get(h, x->file, &pin, err), same;

	if (r < 0)
		return r;
	if (fstat(pin.fd, &st) < 0) {
		r = error_errno(err, -EIO, "%s", handles_name(h, x->file));
	} else {
		identity_of(&st, &x->q.id);
		r = ask_worker(x, out, err);
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

/* ---- the questions ---------------------------------------- */

int hdf5_call_describe(const struct hdf5_place *at,
		       const struct hdf5_type *wanted,
		       struct hdf5_description *out, struct error *err)
{
	struct result is = {NULL, 0, false};
	unsigned flags;
	struct question x;
	int r;

	if (!hdf5_isolated())
		return hdf5_describe_here(at, wanted, out, err);
	/* The worker opens the file, but the daemon reads its bytes, so it needs the
	 * superblock. */
	(void)hdf5_superblock_find(at->s->handles, at->file, &flags, NULL);
	x = question_about(DESCRIBE, at, NULL);
	x.q.typed = wanted != NULL;
	if (wanted)
		x.q.type = *wanted;
	r = call_worker(&x, &is, err);
	if (r < 0)
		return r;
	r = hdf5_description_unpack(is.data, is.size, out, err);
	if (r < 0)
		hdf5_place_prefix(at, err);
	free(is.data);
	return r;
}

int hdf5_call_locate(const struct hdf5_place *at, const struct grid *g,
		     uint64_t first, uint32_t n, uint64_t *written,
		     struct location *out, struct error *err)
{
	cleanup_free uint64_t *answer = NULL;
	size_t size = n * sizeof *out;
	struct result is;
	struct question x;
	int r;

	if (!hdf5_isolated())
		return hdf5_locate_here(at, g, first, n, written, out, err);
	answer = malloc(sizeof *written + size);
	if (!answer)
		return error_no_memory(err, "the places of chunks");
	x = question_about(LOCATE, at, NULL);
	x.q.u.grid = *g;
	x.q.first = first;
	x.q.n = n;
	x.q.written = *written;
	is = (struct result){answer, sizeof *written + size, true};
	r = call_worker(&x, &is, err);
	if (r < 0)
		return r;
	*written = answer[0];
	memcpy(out, answer + 1, size);
	return 0;
}

/* Check that a list has chunks of the grid in ascending order and says where to go
 * on. */
static bool list_is_sane(const struct result *is, const struct hdf5_listed *l,
			 const struct grid *g, uint64_t first, uint32_t room)
{
	const struct written *at = (void *)((char *)is->data + sizeof *l);

	if (l->n > room || is->size != sizeof *l + l->n * sizeof *at ||
	    (l->code != 0 && l->code != 1 && l->code != -ENOTSUP) ||
	    (l->code == 1 && l->n != 1) || (l->code == 0 && l->from <= first))
		return false;
	for (uint64_t i = 0; i < l->n; i++)
		if (at[i].chunk >= g->count ||
		    at[i].chunk < (i ? at[i - 1].chunk + 1 : 0))
			return false;
	return true;
}

int hdf5_call_list(const struct hdf5_place *at, const struct grid *g,
		   uint64_t *from, struct written *out, uint32_t room,
		   uint32_t *n, uint64_t *count, struct error *err)
{
	struct result is = {NULL, 0, false};
	struct hdf5_listed l;
	struct question x;
	int r;

	if (!hdf5_isolated())
		return hdf5_list_here(at, g, from, out, room, n, count, err);
	*count = UINT64_MAX;
	x = question_about(LIST, at, NULL);
	x.q.u.grid = *g;
	x.q.first = *from;
	x.q.n = room;
	r = call_worker(&x, &is, err);
	if (r < 0)
		return r;
	if (is.size >= sizeof l)
		memcpy(&l, is.data, sizeof l);
	if (is.size < sizeof l || !list_is_sane(&is, &l, g, *from, room)) {
		r = error_set(err, -EBADMSG,
			      "the list of its chunks is inconsistent: the "
			      "file is damaged");
		hdf5_place_prefix(at, err);
	} else {
		memcpy(out, (char *)is.data + sizeof l, l.n * sizeof *out);
		*n = (uint32_t)l.n;
		*from = l.from;
		*count = l.count;
		r = (int)l.code;
	}
	free(is.data);
	return r;
}

int hdf5_call_fetch(const struct hdf5_place *at, const struct grid *g,
		    uint64_t chunk, const struct dtype *as, const char *member,
		    void *out, size_t size, struct error *err)
{
	struct result is = {out, size, true};
	struct question x;

	if (!hdf5_isolated())
		return hdf5_fetch_here(at, g, chunk, as, member, out, size,
				       err);
	x = question_about(FETCH, at, member);
	x.q.u.grid = *g;
	x.q.first = chunk;
	x.q.n = size;
	x.q.converted = as != NULL;
	if (as)
		x.q.type.served = *as;
	return call_worker(&x, &is, err);
}

/* Pass `n` values on, each a length and bytes. If the answer is malformed, return
 * false and pass none. */
static bool values_pass(const struct result *is, uint64_t n, hdf5_put *put,
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

int hdf5_call_values(const struct hdf5_place *at, const struct box *b,
		     unsigned rank, const struct dtype *as, const char *member,
		     hdf5_put *put, void *ctx, struct error *err)
{
	struct result is = {NULL, 0, false};
	struct question x;
	int r;

	if (!hdf5_isolated())
		return hdf5_values_here(at, b, rank, as, member, put, ctx, err);
	x = question_about(VALUES, at, member);
	x.q.rank = rank;
	for (unsigned i = 0; i < rank; i++) {
		x.q.u.box.start[i] = b->start[i];
		x.q.u.box.count[i] = b->count[i];
	}
	x.q.type.served = *as;
	r = call_worker(&x, &is, err);
	if (r < 0)
		return r;
	if (!values_pass(&is, box_elements(b, rank), put, ctx)) {
		r = error_set(err, -EIO,
			      "libhdf5 returned another number of values than "
			      "was asked for");
		hdf5_place_prefix(at, err);
	}
	free(is.data);
	return r;
}

static char *call_text(enum op op, const struct hdf5_place *at,
		       struct error *err)
{
	struct result is = {NULL, 0, false};
	struct question x = question_about(op, at, NULL);

	return call_worker(&x, &is, err) < 0 ? NULL : is.data;
}

char *hdf5_call_attributes(const struct hdf5_place *at, struct error *err)
{
	return hdf5_isolated() ? call_text(ATTRIBUTES, at, err)
			       : hdf5_attributes_here(at, err);
}

char *hdf5_call_about(const struct hdf5_place *at, struct error *err)
{
	return hdf5_isolated() ? call_text(ABOUT, at, err)
			       : hdf5_about_here(at, err);
}

static char *ask_for_monolith(const struct hdf5_place *at,
			      const struct hdf5_tensor *of, const void *text,
			      size_t text_len, size_t *len, struct error *err)
{
	struct result is = {NULL, 0, false};
	struct question x;

	if (!hdf5_isolated())
		return hdf5_monolith_here(at, of, text, text_len, len, err);
	x = question_about(MONOLITH, at, NULL);
	x.q.tensor = of;
	x.q.text_len = text_len;
	x.text = text;
	if (call_worker(&x, &is, err) < 0)
		return NULL;
	*len = is.size;
	return is.data;
}

char *hdf5_monolith_new(struct hdf5_source *s, const struct hdf5_tensor *of,
			size_t *len, struct error *err)
{
	struct hdf5_place at = {s, of ? of->file : s->file, "/"};
	cleanup_free char *text = NULL;
	size_t text_len;

	if (hdf5_texts_read(s, of, &text, &text_len, err) < 0)
		return NULL;
	return ask_for_monolith(&at, of, text, text_len, len, err);
}
