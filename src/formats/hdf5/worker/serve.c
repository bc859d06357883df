/* SPDX-License-Identifier: BSD-2-Clause */
/* An HDF5 worker: answer one request after the other. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "formats/hdf5/chunk/chunk.h"
#include "formats/hdf5/export/export.h"
#include "formats/hdf5/value/value.h"
#include "formats/hdf5/worker/request.h"

struct output {
	char *data;
	size_t used, room;
	bool failed;
};

static void answer_add(struct output *o, const void *data, size_t n)
{
	if (o->failed || n > HDF5_TEXT_MAX - o->used) {
		o->failed = true;
		return;
	}
	if (n > o->room - o->used) {
		size_t room = 2 * (o->used + n);
		char *more = realloc(o->data, room);

		o->failed = !more;
		if (!more)
			return;
		o->data = more;
		o->room = room;
	}
	if (n)
		memcpy(o->data + o->used, data, n);
	o->used += n;
}

static void answer_put_string(void *ctx, const char *s, size_t len)
{
	uint64_t n = len;

	answer_add(ctx, &n, sizeof n);
	answer_add(ctx, s, len);
}

static void answer_put_bytes(void *ctx, const void *data, size_t n)
{
	answer_add(ctx, data, n);
}

/* A received request with its names. */
struct asked {
	struct request q;
	char *names; /* path, object, member, each with its NUL */
	char *text;
	struct hdf5_place at;
	const char *member;
};

static int answer_describe(const struct asked *a, struct output *o,
			   struct error *err)
{
	struct hdf5_description d;
	int r = hdf5_describe_here(&a->at, a->q.typed ? &a->q.type : NULL, &d,
				   err);

	if (r < 0)
		return r;
	hdf5_description_pack(&d, answer_put_bytes, o);
	hdf5_description_free(&d);
	return 0;
}

/* Reserve an answer of `size` bytes that a call fills in. */
static int answer_reserve(struct output *o, size_t size, struct error *err)
{
	o->data = calloc(1, size ? size : 1);
	if (!o->data)
		return error_no_memory(err, "the answer");
	o->used = o->room = size;
	return 0;
}

static int answer_locate(const struct asked *a, struct output *o,
			 struct error *err)
{
	uint64_t written = a->q.written;
	int r = answer_reserve(
		o, sizeof written + a->q.n * sizeof(struct location), err);

	if (!r)
		r = hdf5_locate_here(&a->at, &a->q.u.grid, a->q.first,
				     (uint32_t)a->q.n, &written,
				     (void *)(o->data + sizeof written), err);
	if (!r)
		memcpy(o->data, &written, sizeof written);
	return r;
}

/* -ENOTSUP (the list is not known) is an answer too. */
static int answer_list(const struct asked *a, struct output *o,
		       struct error *err)
{
	struct hdf5_listed is = {.from = a->q.first};
	size_t head = sizeof is, most = a->q.n * sizeof(struct written);
	uint32_t n = 0;
	int r = answer_reserve(o, head + most, err);

	if (r < 0)
		return r;
	r = hdf5_list_here(&a->at, &a->q.u.grid, &is.from,
			   (void *)(o->data + head), (uint32_t)a->q.n, &n,
			   &is.count, err);
	if (r < 0 && r != -ENOTSUP)
		return r;
	is.code = r;
	is.n = r == 1 ? 1 : r < 0 ? 0 : n;
	memcpy(o->data, &is, head);
	o->used = head + is.n * sizeof(struct written);
	return 0;
}

static int answer_fetch(const struct asked *a, struct output *o,
			struct error *err)
{
	int r = answer_reserve(o, a->q.n, err);

	return r < 0 ? r
		     : hdf5_fetch_here(&a->at, &a->q.u.grid, a->q.first,
				       a->q.converted ? &a->q.type.served
						      : NULL,
				       a->member, o->data, a->q.n, err);
}

static int
answer_text(char *(*here)(const struct hdf5_place *at, struct error *err),
	    const struct asked *a, struct output *o, struct error *err)
{
	char *text = here(&a->at, err);

	if (!text)
		return err->code ? err->code
				 : error_no_memory(err, "the answer");
	answer_add(o, text, strlen(text));
	free(text);
	return 0;
}

static int answer_monolith(const struct asked *a, struct output *o,
			   struct error *err)
{
	o->data = hdf5_monolith_here(&a->at, a->q.tensor, a->text,
				     a->q.text_len, &o->used, err);
	o->room = o->used;
	if (o->data && o->used > HDF5_TEXT_MAX)
		return error_set(err, -ENOTSUP,
				 "%s: groups, attributes and text are too "
				 "large for an HDF5 file made here",
				 handles_name(a->at.s->handles, a->at.file));
	return o->data ? 0 : err->code;
}

/* Check that this process has the same file open as the request means. */
static int check_identity(const struct asked *a, struct error *err)
{
	struct handles *h = a->q.s->handles;
	struct identity id;
	struct handle pin;
	struct stat st;
	int r = handles_get(h, a->at.file, &pin, err);

	if (r < 0)
		return r;
	if (fstat(pin.fd, &st) < 0) {
		r = error_errno(err, -errno, "%s", handles_name(h, a->at.file));
	} else {
		identity_of(&st, &id);
		if (!handles_is_same(h, a->at.file, pin.fd, &id, &a->q.id))
			r = file_fail_stale(err, handles_path(h, a->at.file),
					    &a->q.id, &id);
	}
	handles_put(h, &pin);
	return r;
}

static int perform_request(const struct asked *a, struct output *o,
			   struct error *err)
{
	int r = check_identity(a, err);

	if (r < 0)
		return r;
	switch (a->q.op) {
	case DESCRIBE:
		return answer_describe(a, o, err);
	case LOCATE:
		return answer_locate(a, o, err);
	case LIST:
		return answer_list(a, o, err);
	case FETCH:
		return answer_fetch(a, o, err);
	case VALUES:
		return hdf5_values_here(&a->at, &a->q.u.box, a->q.rank,
					&a->q.type.served, a->member,
					answer_put_string, o, err);
	case ATTRIBUTES:
		return answer_text(hdf5_attributes_here, a, o, err);
	case ABOUT:
		return answer_text(hdf5_about_here, a, o, err);
	case MONOLITH:
		return answer_monolith(a, o, err);
	}
	return error_set(err, -EIO, "unknown request to an HDF5 worker");
}

/* Receive a request. Return false at the end of file and on errors. */
static bool receive_request(int fd, struct asked *a)
{
	size_t path, object, member;

	if (!hdf5_read_all(fd, &a->q, sizeof a->q))
		return false;
	path = a->q.path_len;
	object = a->q.object_len;
	member = a->q.member_len;
	a->names = calloc(1, path + object + member + 3);
	if (!a->names || !hdf5_read_all(fd, a->names, path) ||
	    !hdf5_read_all(fd, a->names + path + 1, object) ||
	    !hdf5_read_all(fd, a->names + path + object + 2, member))
		return false;
	a->text = a->q.text_len ? malloc(a->q.text_len) : NULL;
	if (a->q.text_len &&
	    (!a->text || !hdf5_read_all(fd, a->text, a->q.text_len)))
		return false;
	a->at.s = a->q.s;
	a->at.object = a->names + path + 1;
	a->member = member ? a->names + path + object + 2 : NULL;
	a->at.file = handles_add(a->q.s->handles, a->names);
	return a->at.file != UINT32_MAX;
}

void hdf5_worker_serve(int fd)
{
	struct asked a = {.names = NULL, .text = NULL};
	bool ok = true;

	while (ok && receive_request(fd, &a)) {
		struct output o = {NULL, 0, 0, false};
		struct reply reply = {0};
		int r = perform_request(&a, &o, &reply.err);

		if (!r && o.failed)
			r = error_set(&reply.err, -ENOMEM,
				      "%s: the text does not fit in memory",
				      handles_name(a.at.s->handles, a.at.file));
		reply.err.code = r;
		reply.size = r ? 0 : o.used;
		ok = hdf5_write_all(fd, &reply, sizeof reply) &&
		     hdf5_write_all(fd, o.data, reply.size);
		free(o.data);
		free(steal_pointer(&a.names));
		free(steal_pointer(&a.text));
	}
	free(a.names);
	free(a.text);
}
