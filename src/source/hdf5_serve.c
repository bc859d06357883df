/* SPDX-License-Identifier: BSD-2-Clause */
/* The work of an HDF5 worker: one request after the other. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "source/hdf5_request.h"

struct output {
	char *data;
	size_t used, room;
	bool failed;
};

static void output_add(struct output *o, const void *data, size_t n)
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

static void put_string(void *ctx, const char *s, size_t len)
{
	uint64_t n = len;

	output_add(ctx, &n, sizeof n);
	output_add(ctx, s, len);
}

static int do_learn(const struct request *q, struct output *o,
		    struct error *err)
{
	cleanup_free struct layout *l = NULL;
	struct learnt *x = calloc(1, sizeof *x);
	int r = x ? hdf5_part_learn(q->t, q->p, &l, err)
		  : error_set(err, -ENOMEM, "out of memory");

	if (!r) {
		x->layout = *l;
		x->zero = l->fill.pattern != l->fill_bytes;
		x->grid = *l->grid;
		x->pipeline = *l->pipeline;
		output_add(o, x, sizeof *x);
	}
	free(x);
	return r;
}

/* The answer is `size` bytes that a call fills in. */
static int do_fixed(const struct request *q, struct output *o,
		    struct error *err)
{
	struct layout l = q->layout;
	size_t size = q->op == LOCATE ? q->n * sizeof(struct location) : q->n;

	l.grid = &q->grid;
	o->data = calloc(1, size ? size : 1);
	if (!o->data)
		return error_set(err, -ENOMEM, "out of memory");
	o->used = o->room = size;
	if (q->op == LOCATE)
		return hdf5_part_locate(q->t, q->p, &l, q->first,
					(uint32_t)q->n, (void *)o->data, err);
	return hdf5_part_fetch(q->t, q->p, &l, q->first, o->data, size, err);
}

static int do_attributes(const struct request *q, struct output *o,
			 struct error *err)
{
	char *text = hdf5_tensor_attributes(q->t, err);

	if (!text)
		return err->code ? err->code
				 : error_set(err, -ENOMEM, "out of memory");
	output_add(o, text, strlen(text));
	free(text);
	return 0;
}

/* Is the file here the one that is asked about? */
static int check_identity(const struct request *q, struct error *err)
{
	struct handles *h = q->t->handles;
	struct identity id;
	struct handle pin;
	struct stat st;
	int r = handles_get(h, q->file, &pin, err);

	if (r < 0)
		return r;
	if (fstat(pin.fd, &st) < 0) {
		r = error_errno(err, -errno, "%s", handles_name(h, q->file));
	} else {
		identity_of(&st, &id);
		if (!identity_equal(&id, &q->id))
			r = file_fail_stale(err, handles_path(h, q->file),
					    &q->id, &id);
	}
	handles_put(h, &pin);
	return r;
}

static int perform(const struct request *q, struct output *o, struct error *err)
{
	int r = check_identity(q, err);

	if (r < 0)
		return r;
	switch (q->op) {
	case LEARN:
		return do_learn(q, o, err);
	case LOCATE:
	case FETCH:
		return do_fixed(q, o, err);
	case STRINGS:
		return hdf5_part_strings(q->t, q->p, q->first, q->n, put_string,
					 o, err);
	case ATTRIBUTES:
		return do_attributes(q, o, err);
	}
	return error_set(err, -EIO, "no such request");
}

void hdf5_worker_serve(int fd)
{
	struct request q;
	bool ok = true;

	while (ok && hdf5_read_all(fd, &q, sizeof q)) {
		struct output o = {NULL, 0, 0, false};
		struct reply reply = {0};
		int r = perform(&q, &o, &reply.err);

		if (!r && o.failed)
			r = error_set(&reply.err, -ENOMEM,
				      "%s: more text than fits in memory",
				      handles_name(q.t->handles, q.file));
		reply.err.code = r;
		reply.size = r ? 0 : o.used;
		ok = hdf5_write_all(fd, &reply, sizeof reply) &&
		     hdf5_write_all(fd, o.data, reply.size);
		free(o.data);
	}
}
