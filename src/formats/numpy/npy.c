/* SPDX-License-Identifier: BSD-2-Clause */
/* Source: a .npy file is a tensor. */
/*
 * An array in C order is shown in place.  In Fortran order the first axis is the
 * innermost one in the file: chunks of about 1 MiB are read in runs along it, which
 * are at least a page long if the axis is, and transposed.
 */
#include "formats/numpy/npy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/copies.h"
#include "base/number.h"
#include "stream/backing.h"
#include "tensor/npy_read.h"

#define MADE_BYTES (UINT64_C(1) << 20)
#define RUN_BYTES (UINT64_C(4) << 10)

/* ---- Fortran order ------------------------------------------------------- */

/* Return how many elements are read at once if they are recoded to another size. */
static uint64_t npy_piece(uint32_t stored)
{
	return max_u64(MADE_BYTES / stored, 1);
}

void npy_fortran_chunk(const struct npy_file *f, uint64_t *chunk)
{
	uint64_t left = max_u64(MADE_BYTES / f->dtype.size, 1);

	for (unsigned i = 0; i < f->rank; i++) {
		uint64_t n = i ? left : max_u64(RUN_BYTES / f->dtype.size, 1);

		chunk[i] = max_u64(min_u64(f->shape[i], n), 1);
		left = max_u64(left / chunk[i], 1);
	}
}

/* Read elements [at, at + n) of the file, as they are served.  `raw` has room for a
 * piece of stored elements if these are of another size, else it is NULL. */
static int read_fortran_run(struct handles *h, const struct npy_transposed *t,
			    uint64_t at, uint64_t n, unsigned char *raw,
			    unsigned char *out, struct error *err)
{
	uint32_t from = t->recode->from, to = t->recode->to;
	uint64_t piece = raw ? npy_piece(from) : n;

	while (n) {
		uint64_t now = min_u64(n, piece), pos = t->pos + at * from;
		unsigned char *into = raw ? raw : out;
		int r = t->from ? backing_read(t->from, pos, into, now * from,
					       err)
				: handles_read(h, t->file, pos, into,
					       now * from, err);

		if (r < 0)
			return r;
		recode_run(t->recode, into, out, now);
		at += now;
		out += now * to;
		n -= now;
	}
	return 0;
}

/* Set *b to the part of a chunk that is in the array; the rest of the chunk is
 * zeros. */
static void clip_chunk(const struct grid *g, unsigned rank, uint64_t chunk,
		       struct box *b)
{
	grid_origin(g, chunk, b->start);
	for (unsigned i = 0; i < rank; i++)
		b->count[i] = min_u64(g->chunk[i], g->shape[i] - b->start[i]);
}

/* Return the number of elements in the leading run of *b that is contiguous in the
 * file: whole axes and one partial axis.  The counts of these axes become 1. */
static uint64_t take_leading_run(const struct grid *g, unsigned rank,
				 struct box *b)
{
	uint64_t run = 1;

	for (unsigned i = 0; i < rank; i++) {
		bool whole = b->count[i] == g->shape[i];

		run *= b->count[i];
		b->count[i] = 1;
		if (!whole)
			break;
	}
	return run;
}

/* Read the elements of a box in the order of the file, side by side. */
static int read_fortran_box(struct handles *h, const struct npy_transposed *t,
			    const struct grid *g, struct box b,
			    unsigned char *out, struct error *err)
{
	uint64_t at[RANK_MAX] = {0}, run = take_leading_run(g, t->rank, &b);
	cleanup_free unsigned char *raw = NULL;
	uint32_t elem = t->recode->to;
	unsigned i;

	if (t->recode->from != elem) {
		raw = malloc(npy_piece(t->recode->from) * t->recode->from);
		if (!raw)
			return error_no_memory(err,
					       "elements in Fortran order");
	}
	do {
		uint64_t from = 0;
		int r;

		for (i = t->rank; i-- > 0;)
			from = from * g->shape[i] + b.start[i] + at[i];
		r = read_fortran_run(h, t, from, run, raw, out, err);
		if (r < 0)
			return r;
		out += run * elem;
		/* The first axis is the innermost. */
		for (i = 0; i < t->rank && ++at[i] == b.count[i]; i++)
			at[i] = 0;
	} while (i < t->rank);
	return 0;
}

int npy_transpose(struct handles *h, const struct npy_transposed *t,
		  const struct grid *g, uint64_t chunk, void *out, size_t size,
		  struct error *err)
{
	cleanup_free unsigned char *read = NULL;
	size_t elem = t->recode->to, in_step = elem, out_step = elem;
	struct copy_axis a[RANK_MAX];
	struct box b;
	int r;

	clip_chunk(g, t->rank, chunk, &b);
	for (unsigned i = 0; i < t->rank; i++) {
		a[i].n = b.count[i];
		a[i].in = in_step;
		in_step *= b.count[i];
	}
	for (unsigned i = t->rank; i-- > 0; out_step *= g->chunk[i])
		a[i].out = out_step;
	read = malloc(in_step ? in_step : 1);
	if (!read)
		return error_no_memory(err, "a chunk in Fortran order");
	r = read_fortran_box(h, t, g, b, read, err);
	if (r < 0)
		return r;
	if (in_step < size)
		memset(out, 0, size);
	copy_box(out, read, a, t->rank, elem);
	return 0;
}

/* ---- one array ----------------------------------------------------------- */

struct fortran {
	uint64_t pos;  /* of the first element, in bytes */
	unsigned rank; /* axes of the file */
	struct recode recode;
};

static int make_fortran(struct array *a, uint32_t part, const struct grid *g,
			uint64_t chunk, void *out, size_t size,
			struct error *err)
{
	const struct fortran *f = a->own;
	const struct npy_transposed t = {.file = a->t.parts[part].file,
					 .pos = f->pos,
					 .rank = f->rank,
					 .recode = &f->recode};

	return npy_transpose(a->t.handles, &t, g, chunk, out, size, err);
}

static bool origin_of_fortran(const struct array *a, uint32_t part, FILE *out)
{
	const struct fortran *f = a->own;

	(void)part;
	return fprintf(out, "from byte %llu", (unsigned long long)f->pos) > 0;
}

static void free_fortran(struct array *a)
{
	free(a->own);
}

static const struct array_ops fortran_ops = {
	.make = make_fortran,
	.origin = origin_of_fortran,
	.free = free_fortran,
};

static int set_fortran(struct arrays *s, const struct npy_file *f,
		       struct array_layout *l, struct array_spec *spec,
		       struct error *err)
{
	struct fortran *own = calloc(1, sizeof *own);
	int r;

	spec->ops = &fortran_ops;
	spec->own = own;
	if (!own)
		return error_no_memory(
			err, "the chunks of an array in Fortran order");
	own->pos = l->pos;
	own->rank = f->rank;
	r = npy_recode(s, &f->dtype, spec->field, &own->recode, err);
	if (r < 0)
		return r;
	npy_fortran_chunk(f, l->chunk);
	npy_field_axes(spec->field, f->rank, l->chunk);
	l->kind = ARRAY_MADE;
	l->maker = NPY_TRANSPOSED;
	return 0;
}

/* Nothing must be transposed if at most one axis has more than one index. */
bool npy_is_transposed(const struct npy_file *f)
{
	unsigned n = 0;

	for (unsigned i = 0; i < f->rank; i++)
		n += f->shape[i] > 1;
	return f->fortran && n > 1 && f->elements;
}

int npy_array(struct arrays *s, uint32_t file, uint64_t pos, uint64_t size,
	      const struct npy_file *f, const struct dtype_field *field,
	      const char *name, struct array **out, struct error *err)
{
	struct array_layout l = {.kind = ARRAY_LINEAR, .file = file};
	struct array_spec spec = {.name = name, .layout = &l};
	int r = 0;

	l.pos = pos + f->data;
	l.stored = f->dtype;
	if (!npy_shape(f, field, &spec))
		return error_set(err, -ENOTSUP, "it has more than %d axes",
				 RANK_MAX);
	memcpy(l.shape, spec.shape, sizeof l.shape);
	if (f->data > size || f->bytes > size - f->data)
		r = error_set(
			err, -EBADMSG,
			"its header promises %llu bytes of data, but there are "
			"%llu: truncated?",
			(unsigned long long)f->bytes,
			(unsigned long long)(size - min_u64(f->data, size)));
	else if (npy_is_transposed(f))
		r = set_fortran(s, f, &l, &spec, err);
	if (r < 0) {
		free(spec.own);
		return r;
	}
	return array_new(s, &spec, out, err);
}

/* ---- the source ---------------------------------------------------------- */

static int npy_probe(const unsigned char *head, size_t n, const char *path)
{
	(void)path;
	return n >= 6 && !memcmp(head, "\x93NUMPY", 6) ? 100 : 0;
}

static void npy_close(struct source *source)
{
	arrays_end((struct arrays *)source);
	free(source);
}

struct of_file {
	struct arrays *s;
	const struct npy_file *f;
};

static int make_npy_field(void *ctx, const struct dtype_field *field,
			  const char *name, struct array **out,
			  struct error *err)
{
	const struct of_file *x = ctx;

	return npy_array(x->s, x->s->file, 0, x->s->size, x->f, field, name,
			 out, err);
}

static int publish_npy(struct arrays *s, const struct source_args *a,
		       struct error *err)
{
	size_t n = (size_t)min_u64(s->size, NPY_HEADER_MOST);
	cleanup_free unsigned char *head = malloc(n ? n : 1);
	struct npy_file f;
	struct array *array;
	uint32_t dir;
	int r;

	if (!head)
		return error_no_memory(err, "the header of the .npy file");
	r = arrays_read(s, 0, head, n, err);
	if (r == 0)
		r = npy_read(head, n, &s->intern, &f, err);
	if (r == 0)
		r = npy_array(s, s->file, 0, s->size, &f, NULL, "/data", &array,
			      err);
	if (r == 0)
		r = array_publish(a->tree, a->dir, "data", array, &dir, err);
	return r < 0 ? r
		     : npy_fields(s, a->tree, dir, "/data", &f.dtype,
				  make_npy_field, &(struct of_file){s, &f},
				  err);
}

static int npy_open(const struct source_args *a, struct source **out,
		    struct error *err)
{
	return arrays_open(&source_npy, sizeof(struct arrays), publish_npy, a,
			   out, err);
}

const struct source_ops source_npy = {
	.name = "npy",
	.summary = "NumPy arrays (.npy)",
	.probe = npy_probe,
	.open = npy_open,
	.usage = arrays_usage,
	.close = npy_close,
};
