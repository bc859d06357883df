/* SPDX-License-Identifier: BSD-2-Clause */
/* A .npy that is a member of something as a tensor. */
/*
 * A stored member's array is shown where it is.  A compressed one is cut into chunks of
 * about a MiB, runs of its bytes, which are read from the windows of the archive's stream.
 */
#include "source/npy_member.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "source/npy.h"

#define MADE_BYTES (UINT64_C(1) << 20)
/* Of most files this has the header. */
#define HEAD_BYTES 4096
#define INFLATED "tensorfs: from a deflated member"

/* ---- arrays that are compressed ------------------------------------------ */

struct inflated {
	struct backing from; /* the whole member */
	uint64_t pos;        /* of the first element */
	struct recode recode;
	bool turned;
};

/* Runs of elements as they lie: whole inner axes, a piece of the next one. */
static void run_chunk(const struct npy_file *f, uint64_t *chunk)
{
	uint64_t left = max_u64(MADE_BYTES / f->dtype.size, 1);

	for (unsigned i = f->rank; i-- > 0;) {
		chunk[i] = max_u64(min_u64(f->shape[i], left), 1);
		left = chunk[i] == f->shape[i] ? left / chunk[i] : 1;
		left = max_u64(left, 1);
	}
}

static int make_run(const struct inflated *x, const struct grid *g,
		    uint64_t chunk, unsigned char *out, size_t size,
		    struct error *err)
{
	uint64_t start[RANK_MAX], at = 0, n = 1;
	int r;

	grid_origin(g, chunk, start);
	for (unsigned i = 0; i < g->rank; i++) {
		at = at * g->shape[i] + start[i];
		n *= min_u64(g->chunk[i], g->shape[i] - start[i]);
	}
	r = backing_read(&x->from, x->pos + at * g->elem, out, n * g->elem,
			 err);
	if (r < 0)
		return r;
	memset(out + n * g->elem, 0, size - n * g->elem);
	recode_run(&x->recode, out, out, n);
	return 0;
}

static int make(struct array *a, uint32_t part, const struct grid *g,
		uint64_t chunk, void *out, size_t size, struct error *err)
{
	const struct inflated *x = a->own;
	const struct npy_turned t = {.file = x->from.file,
				     .pos = x->pos,
				     .recode = &x->recode,
				     .from = &x->from};

	(void)part;
	return x->turned ? npy_turn(a->t.handles, &t, g, chunk, out, size, err)
			 : make_run(x, g, chunk, out, size, err);
}

/* Its file may be the archive of an archive, with many members of this name. */
static bool origin(const struct array *a, uint32_t part, FILE *out)
{
	const struct inflated *x = a->own;
	char text[1024];

	(void)part;
	return backing_origin(&x->from, text, sizeof text) &&
	       fprintf(out, "%s from byte %llu of %s",
		       x->turned ? "turned" : "in order",
		       (unsigned long long)x->pos, text) > 0;
}

static void free_inflated(struct array *a)
{
	free(a->own);
}

static const struct array_ops inflated_ops = {
	.make = make,
	.origin = origin,
	.free = free_inflated,
};

static int inflated_array(struct arrays *s, const struct backing *b,
			  const struct npy_file *f, const char *name,
			  struct array **out, struct error *err)
{
	struct inflated *own = calloc(1, sizeof *own);
	struct array_layout l = {.kind = ARRAY_MADE,
				 .file = b->file,
				 .stored = f->dtype,
				 .maker = INFLATED};
	struct array_spec spec = {.name = name,
				  .stored = f->dtype,
				  .rank = f->rank,
				  .layout = &l,
				  .ops = &inflated_ops,
				  .own = own};
	struct dtype served;

	if (!own || !arrays_served(s, &f->dtype, &served)) {
		free(own);
		return error_set(err, -ENOMEM, "out of memory");
	}
	if (f->data > b->size || f->bytes > b->size - f->data ||
	    !dtype_recode(&f->dtype, &served, NULL, &own->recode)) {
		free(own);
		return f->data > b->size || f->bytes > b->size - f->data
			       ? error_set(err, -EBADMSG,
					   "its header promises more bytes of "
					   "data than it has: truncated?")
			       : error_set(err, -ENOTSUP,
					   "its type is too complicated");
	}
	own->from = *b;
	own->pos = f->data;
	own->turned = npy_is_turned(f);
	memcpy(l.shape, f->shape, sizeof l.shape);
	memcpy(spec.shape, f->shape, sizeof spec.shape);
	if (own->turned)
		npy_fortran_chunk(f, l.chunk);
	else
		run_chunk(f, l.chunk);
	return array_new(s, &spec, out, err);
}

/* ---- one member ---------------------------------------------------------- */

static size_t header_bytes(const unsigned char *head, size_t n)
{
	if (n < 12)
		return n;
	return head[6] == 1 ? 10 + (size_t)load_le16(head + 8)
			    : 12 + (size_t)load_le32(head + 8);
}

static int read_header(struct arrays *s, const struct backing *b,
		       struct npy_file *f, struct error *err)
{
	size_t n = (size_t)min_u64(b->size, HEAD_BYTES);
	cleanup_free unsigned char *head = malloc(NPY_HEADER_MOST);
	int r;

	if (!head)
		return error_set(err, -ENOMEM, "out of memory");
	r = backing_read(b, 0, head, n, err);
	if (r == 0 && header_bytes(head, n) > n) {
		n = (size_t)min_u64(b->size, NPY_HEADER_MOST);
		r = backing_read(b, 0, head, n, err);
	}
	return r < 0 ? r : npy_read(head, n, &s->intern, f, err);
}

int npy_member(struct arrays *s, const struct backing *b, const char *name,
	       struct array **out, struct error *err)
{
	struct npy_file f;
	int r = read_header(s, b, &f, err);

	if (r < 0)
		return r;
	return backing_is_plain(b) ? npy_array(s, b->file, b->pos, b->size, &f,
					       name, out, err)
				   : inflated_array(s, b, &f, name, out, err);
}
