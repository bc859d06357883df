/* SPDX-License-Identifier: BSD-2-Clause */
/* A .npy that is a member of an archive, as a tensor. */
/*
 * The array of a stored member is shown in place.  The array of a compressed member
 * is cut into chunks of about 1 MiB, runs of its bytes, which are read from the
 * windows of the archive's stream.
 */
#include "formats/numpy/npy_member.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "formats/numpy/npy.h"

#define MADE_BYTES (UINT64_C(1) << 20)
/* Bytes that hold the header of most files. */
#define HEAD_BYTES 4096
#define INFLATED "tensorfs: from a deflated member"

/* ---- compressed arrays --------------------------------------------------- */

struct inflated {
	struct backing from; /* the whole member */
	uint64_t pos;        /* of the first element, in bytes */
	unsigned rank;       /* axes of the file */
	struct recode recode;
	bool turned;
};

/* Set `chunk` to a run of elements as they are stored: whole inner axes, and a
 * piece of the next one. */
static void inflated_chunk(const struct npy_file *f, uint64_t *chunk)
{
	uint64_t left = max_u64(MADE_BYTES / f->dtype.size, 1);

	for (unsigned i = f->rank; i-- > 0;) {
		chunk[i] = max_u64(min_u64(f->shape[i], left), 1);
		left = chunk[i] == f->shape[i] ? left / chunk[i] : 1;
		left = max_u64(left, 1);
	}
}

static int make_inflated_run(const struct inflated *x, const struct grid *g,
			     uint64_t chunk, unsigned char *out, size_t size,
			     struct error *err)
{
	uint32_t from = x->recode.from, to = x->recode.to;
	cleanup_free unsigned char *room = NULL;
	uint64_t start[RANK_MAX], at = 0, n = 1;
	unsigned char *raw = out;
	int r;

	grid_origin(g, chunk, start);
	for (unsigned i = 0; i < x->rank; i++) {
		at = at * g->shape[i] + start[i];
		n *= min_u64(g->chunk[i], g->shape[i] - start[i]);
	}
	if (from != to)
		raw = room = malloc(n * from);
	if (!raw)
		return error_no_memory(err, "elements of a deflated member");
	r = backing_read(&x->from, x->pos + at * from, raw, n * from, err);
	if (r < 0)
		return r;
	recode_run(&x->recode, raw, out, n);
	memset(out + n * to, 0, size - n * to);
	return 0;
}

static int make_inflated(struct array *a, uint32_t part, const struct grid *g,
			 uint64_t chunk, void *out, size_t size,
			 struct error *err)
{
	const struct inflated *x = a->own;
	const struct npy_transposed t = {.file = x->from.file,
					 .pos = x->pos,
					 .rank = x->rank,
					 .recode = &x->recode,
					 .from = &x->from};

	(void)part;
	return x->turned ? npy_transpose(a->t.handles, &t, g, chunk, out, size,
					 err)
			 : make_inflated_run(x, g, chunk, out, size, err);
}

/* The position is written with the whole origin of the member: a file may hold many
 * members of this name. */
static bool origin_of_inflated(const struct array *a, uint32_t part, FILE *out)
{
	const struct inflated *x = a->own;
	char text[1024];

	(void)part;
	return backing_origin(&x->from, text, sizeof text) &&
	       fprintf(out, "%s from byte %llu of %s",
		       x->turned ? "turned" : "in order",
		       (unsigned long long)x->pos, text) > 0;
}

/* Windows of a zip's stream are compared with the CRC-32 of the member. */
static bool inflated_has_checksum(struct array *a, uint32_t part)
{
	(void)a;
	(void)part;
	return true;
}

static void free_inflated(struct array *a)
{
	free(a->own);
}

static const struct array_ops inflated_ops = {
	.make = make_inflated,
	.origin = origin_of_inflated,
	.has_checksum = inflated_has_checksum,
	.free = free_inflated,
};

static int check_npy_end(const struct backing *b, const struct npy_file *f,
			 struct error *err)
{
	return f->data > b->size || f->bytes > b->size - f->data
		       ? error_set(err, -EBADMSG,
				   "its header promises more bytes of data "
				   "than it has: truncated?")
		       : 0;
}

static int inflated_array(struct arrays *s, const struct npy_member *m,
			  const struct dtype_field *field, const char *name,
			  struct array **out, struct error *err)
{
	const struct npy_file *f = &m->file;
	struct inflated *own = calloc(1, sizeof *own);
	struct array_layout l = {.kind = ARRAY_MADE,
				 .file = m->bytes.file,
				 .stored = f->dtype,
				 .maker = INFLATED};
	struct array_spec spec = {
		.name = name, .layout = &l, .ops = &inflated_ops, .own = own};
	int r = own ? check_npy_end(&m->bytes, f, err)
		    : error_no_memory(err, "the chunks of a deflated member");

	if (r == 0 && !npy_shape(f, field, &spec))
		r = error_set(err, -ENOTSUP, "it has more than %d axes",
			      RANK_MAX);
	if (r == 0)
		r = npy_recode(s, &f->dtype, field, &own->recode, err);
	if (r < 0) {
		free(own);
		return r;
	}
	own->from = m->bytes;
	own->pos = f->data;
	own->rank = f->rank;
	own->turned = npy_is_transposed(f);
	memcpy(l.shape, spec.shape, sizeof l.shape);
	if (own->turned)
		npy_fortran_chunk(f, l.chunk);
	else
		inflated_chunk(f, l.chunk);
	npy_field_axes(field, f->rank, l.chunk);
	return array_new(s, &spec, out, err);
}

/* ---- one member ---------------------------------------------------------- */

static size_t npy_header_bytes(const unsigned char *head, size_t n)
{
	if (n < 12)
		return n;
	return head[6] == 1 ? 10 + (size_t)load_le16(head + 8)
			    : 12 + (size_t)load_le32(head + 8);
}

static int read_npy_header(struct arrays *s, const struct backing *b,
			   struct npy_file *f, struct error *err)
{
	size_t n = (size_t)min_u64(b->size, HEAD_BYTES);
	cleanup_free unsigned char *head = malloc(NPY_HEADER_MOST);
	int r;

	if (!head)
		return error_no_memory(err, "the header of the .npy file");
	r = backing_read(b, 0, head, n, err);
	if (r == 0 && npy_header_bytes(head, n) > n) {
		n = (size_t)min_u64(b->size, NPY_HEADER_MOST);
		r = backing_read(b, 0, head, n, err);
	}
	return r < 0 ? r : npy_read(head, n, &s->intern, f, err);
}

int npy_member_read(struct arrays *s, const struct backing *b,
		    struct npy_member *out, struct error *err)
{
	out->bytes = *b;
	return read_npy_header(s, b, &out->file, err);
}

int npy_member_array(struct arrays *s, const struct npy_member *m,
		     const struct dtype_field *field, const char *name,
		     struct array **out, struct error *err)
{
	const struct backing *b = &m->bytes;

	return backing_is_plain(b)
		       ? npy_array(s, b->file, b->pos, b->size, &m->file, field,
				   name, out, err)
		       : inflated_array(s, m, field, name, out, err);
}
