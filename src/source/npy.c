/* SPDX-License-Identifier: BSD-2-Clause */
/* Source: a .npy file is a tensor. */
/*
 * In C order its bytes are shown where they are.  In Fortran order the first axis is the
 * innermost one in the file: chunks of about a MiB are read in runs along it, which are
 * at least a page long where the axis is, and turned.  Fields of structures are arrays
 * of their own, too, in C order.
 */
#include "source/npy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/backing.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "tensor/npy_read.h"

#define MADE_BYTES (UINT64_C(1) << 20)
#define RUN_BYTES (UINT64_C(4) << 10)
/* Structures of more have no directories of their fields, as those of HDF5. */
#define FIELDS_MAX 4096

/* ---- Fortran order ------------------------------------------------------- */

void npy_fortran_chunk(const struct npy_file *f, uint64_t *chunk)
{
	uint64_t left = max_u64(MADE_BYTES / f->dtype.size, 1);

	for (unsigned i = 0; i < f->rank; i++) {
		uint64_t n = i ? left : max_u64(RUN_BYTES / f->dtype.size, 1);

		chunk[i] = max_u64(min_u64(f->shape[i], n), 1);
		left = max_u64(left / chunk[i], 1);
	}
}

/* Elements of the file [at, at + n) to every `step`th place of `out`. */
static int read_run(struct handles *h, const struct npy_turned *t, uint64_t at,
		    uint64_t n, unsigned char *raw, unsigned char *out,
		    uint64_t step, struct error *err)
{
	uint32_t elem = t->recode->to;
	uint64_t pos = t->pos + at * elem;
	int r = t->from ? backing_read(t->from, pos, raw, n * elem, err)
			: handles_read(h, t->file, pos, raw, n * elem, err);

	if (r < 0)
		return r;
	recode_run(t->recode, raw, raw, n);
	for (uint64_t i = 0; i < n; i++)
		memcpy(out + i * step * elem, raw + i * elem, elem);
	return 0;
}

/* The part of a chunk that is in the array; what overhangs is zeros. */
static void clip(const struct grid *g, uint64_t chunk, struct box *b)
{
	grid_origin(g, chunk, b->start);
	for (unsigned i = 0; i < g->rank; i++)
		b->count[i] = min_u64(g->chunk[i], g->shape[i] - b->start[i]);
}

int npy_turn(struct handles *h, const struct npy_turned *t,
	     const struct grid *g, uint64_t chunk, void *out, size_t size,
	     struct error *err)
{
	uint64_t at[RANK_MAX] = {0}, step = 1, row;
	cleanup_free unsigned char *raw = NULL;
	struct box b;

	clip(g, chunk, &b);
	memset(out, 0, size);
	row = b.count[0];
	raw = malloc(row * g->elem);
	if (!raw)
		return error_set(err, -ENOMEM, "out of memory");
	for (unsigned i = 1; i < g->rank; i++)
		step *= g->chunk[i];
	b.count[0] = 1; /* the others one by one */
	do {
		uint64_t from = 0, to = 0;
		int r;

		for (unsigned i = g->rank; i-- > 0;)
			from = from * g->shape[i] + b.start[i] + at[i];
		for (unsigned i = 1; i < g->rank; i++)
			to = to * g->chunk[i] + at[i];
		r = read_run(h, t, from, row, raw,
			     (unsigned char *)out + to * g->elem, step, err);
		if (r < 0)
			return r;
	} while (grid_step(g->rank, at, b.count));
	return 0;
}

/* ---- one array ----------------------------------------------------------- */

struct fortran {
	uint64_t pos; /* of the first element */
	struct recode recode;
};

static int make_fortran(struct array *a, uint32_t part, const struct grid *g,
			uint64_t chunk, void *out, size_t size,
			struct error *err)
{
	const struct fortran *f = a->own;
	const struct npy_turned t = {.file = a->t.parts[part].file,
				     .pos = f->pos,
				     .recode = &f->recode};

	return npy_turn(a->t.handles, &t, g, chunk, out, size, err);
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
	struct dtype served;

	spec->ops = &fortran_ops;
	spec->own = own;
	if (!own || !arrays_served(s, &f->dtype, &served))
		return error_set(err, -ENOMEM, "out of memory");
	own->pos = l->pos;
	if (!dtype_recode(&f->dtype, &served, NULL, &own->recode))
		return error_set(err, -ENOTSUP, "its type is too complicated");
	npy_fortran_chunk(f, l->chunk);
	l->kind = ARRAY_MADE;
	l->maker = NPY_TURNED;
	return 0;
}

/* Nothing is turned where at most one axis has more than one index. */
bool npy_is_turned(const struct npy_file *f)
{
	unsigned n = 0;

	for (unsigned i = 0; i < f->rank; i++)
		n += f->shape[i] > 1;
	return f->fortran && n > 1 && f->elements;
}

int npy_array(struct arrays *s, uint32_t file, uint64_t pos, uint64_t size,
	      const struct npy_file *f, const char *name, struct array **out,
	      struct error *err)
{
	struct array_layout l = {.kind = ARRAY_LINEAR, .file = file};
	struct array_spec spec = {.name = name, .layout = &l, .rank = f->rank};
	int r = 0;

	l.pos = pos + f->data;
	l.stored = spec.stored = f->dtype;
	memcpy(l.shape, f->shape, sizeof l.shape);
	memcpy(spec.shape, f->shape, sizeof spec.shape);
	if (f->data > size || f->bytes > size - f->data)
		r = error_set(
			err, -EBADMSG,
			"its header promises %llu bytes of data, and "
			"there are %llu: truncated?",
			(unsigned long long)f->bytes,
			(unsigned long long)(size - min_u64(f->data, size)));
	else if (npy_is_turned(f))
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

/* One field of each element, where it is. */
static int publish_field(struct arrays *s, const struct source_args *a,
			 const struct npy_file *f, const struct dtype_field *x,
			 uint32_t dir, struct error *err)
{
	struct array_layout l = {.kind = ARRAY_LINEAR,
				 .file = s->file,
				 .pos = f->data,
				 .stored = f->dtype};
	struct array_spec spec = {.stored = f->dtype,
				  .field = x,
				  .rank = f->rank + x->rank,
				  .layout = &l};
	cleanup_free char *name = NULL;
	struct error why = {0};
	struct array *array;
	int r;

	if (asprintf(&name, "/data/fields/%s", x->name) < 0) {
		name = NULL;
		return error_set(err, -ENOMEM, "out of memory");
	}
	spec.name = name;
	memcpy(l.shape, f->shape, f->rank * sizeof *l.shape);
	for (uint32_t i = 0; i < x->rank && spec.rank <= RANK_MAX; i++)
		l.shape[f->rank + i] = x->dims[i];
	memcpy(spec.shape, l.shape, sizeof spec.shape);
	r = array_new(s, &spec, &array, &why);
	if (r == 0)
		return array_publish(a->tree, dir, x->name, array, NULL, err);
	if (r == -ENOTSUP)
		return array_publish_not(s, a->tree, dir, x->name, &why, err);
	*err = why;
	return r;
}

static int publish_fields(struct arrays *s, const struct source_args *a,
			  const struct npy_file *f, uint32_t dir,
			  struct error *err)
{
	const struct dtype *d = &f->dtype;
	uint32_t fields;
	int r = 0;

	if (d->kind != DTYPE_STRUCT || d->nfields > FIELDS_MAX ||
	    npy_is_turned(f))
		return 0;
	fields = tree_add_dir(a->tree, dir, "fields", s->mtime);
	if (fields == UINT32_MAX)
		return error_set(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < d->nfields && r == 0; i++)
		r = publish_field(s, a, f, &d->fields[i], fields, err);
	return r;
}

static int publish(struct arrays *s, const struct source_args *a,
		   struct error *err)
{
	size_t n = (size_t)min_u64(s->size, NPY_HEADER_MOST);
	cleanup_free unsigned char *head = malloc(n ? n : 1);
	struct npy_file f;
	struct array *array;
	uint32_t dir;
	int r;

	if (!head)
		return error_set(err, -ENOMEM, "out of memory");
	r = arrays_read(s, 0, head, n, err);
	if (r == 0)
		r = npy_read(head, n, &s->intern, &f, err);
	if (r == 0)
		r = npy_array(s, s->file, 0, s->size, &f, "/data", &array, err);
	if (r == 0)
		r = array_publish(a->tree, a->dir, "data", array, &dir, err);
	return r < 0 ? r : publish_fields(s, a, &f, dir, err);
}

static int npy_open(const struct source_args *a, struct source **out,
		    struct error *err)
{
	return arrays_open(&source_npy, sizeof(struct arrays), publish, a, out,
			   err);
}

const struct source_ops source_npy = {
	.name = "npy",
	.summary = "NumPy arrays (.npy)",
	.probe = npy_probe,
	.open = npy_open,
	.usage = arrays_usage,
	.close = npy_close,
};
