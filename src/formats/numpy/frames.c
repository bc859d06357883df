/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames at equal distances in files, as one tensor in which a frame is a chunk. */
/*
 * If nothing is between them, the frames of a file are one range.  Otherwise each
 * is a chunk that is not compressed, which is also a range of the file.  In Fortran
 * order each frame is transposed in memory.
 */
#include "formats/numpy/frames.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "formats/numpy/npy.h"

/* Largest frame in bytes that is transposed: it is in memory twice. */
#define TURNED_MAX (UINT64_C(1) << 30)

struct own {
	unsigned rank, lead;
	bool fortran;
	uint64_t bytes; /* bytes of a frame */
	uint64_t shape[RANK_MAX];
	struct dtype stored;
	struct recode recode;
	struct frames_part at[];
};

bool frames_bytes(const struct frames *f, uint64_t *out)
{
	uint64_t n = f->dtype.size;

	for (unsigned i = f->lead; i < f->rank; i++)
		if (mul_overflows(n, f->shape[i], &n))
			return false;
	*out = n;
	return n > 0 && n <= INT64_MAX;
}

int frames_count(uint64_t size, uint64_t at, uint64_t record, bool cut,
		 uint64_t *n, struct error *err)
{
	uint64_t left = size - min_u64(at, size);

	*n = left / record;
	if (!*n)
		return error_set(err, -EBADMSG,
				 "it has %" PRIu64 " bytes, and the first "
				 "record of %" PRIu64 " bytes would begin at "
				 "%" PRIu64 ": truncated?",
				 size, record, at);
	if (left % record && !cut)
		return error_set(err, -EBADMSG,
				 "%" PRIu64 " bytes are left over behind "
				 "%" PRIu64 " records of %" PRIu64
				 " bytes: truncated, or not of this shape",
				 left % record, *n, record);
	return 0;
}

static void frames_layout(const struct own *o, uint32_t part,
			  struct array_layout *l)
{
	const struct frames_part *p = &o->at[part];

	l->file = p->file;
	l->pos = p->pos;
	l->stored = o->stored;
	memcpy(l->shape, o->shape, sizeof l->shape);
	for (unsigned i = 0; i < o->rank; i++)
		l->chunk[i] = i < o->lead ? 1 : o->shape[i];
	l->kind = o->fortran              ? ARRAY_MADE
		  : p->stride == o->bytes ? ARRAY_LINEAR
					  : ARRAY_CHUNKED;
	if (o->fortran)
		l->maker = NPY_TRANSPOSED;
}

static int frames_learn(struct array *a, uint32_t part,
			struct array_layout *out, struct error *err)
{
	const struct own *o = a->own;

	(void)err;
	frames_layout(o, part, out);
	out->shape[0] = o->at[part].n;
	return 0;
}

static int frames_locate(struct array *a, uint32_t part, const struct grid *g,
			 uint64_t first, uint32_t n, struct location *out,
			 struct error *err)
{
	const struct own *o = a->own;
	const struct frames_part *p = &o->at[part];

	(void)g;
	(void)err;
	for (uint32_t i = 0; i < n; i++)
		out[i] = (struct location){.pos = p->pos +
						  (first + i) * p->stride,
					   .stored = o->bytes};
	return 0;
}

static int frames_make(struct array *a, uint32_t part, const struct grid *g,
		       uint64_t chunk, void *out, size_t size,
		       struct error *err)
{
	const struct own *o = a->own;
	const struct frames_part *p = &o->at[part];
	const struct npy_transposed t = {.file = p->file,
					 .pos = p->pos + chunk * p->stride,
					 .rank = o->rank - o->lead,
					 .recode = &o->recode};
	struct grid frame;

	memset(&frame, 0, sizeof frame);
	if (grid_init(&frame, o->rank - o->lead, o->shape + o->lead,
		      o->shape + o->lead, g->elem) < 0)
		return error_set(err, -ENOTSUP, "its frames are too large");
	return npy_transpose(a->t.handles, &t, &frame, 0, out, size, err);
}

static bool frames_origin(const struct array *a, uint32_t part, FILE *out)
{
	const struct own *o = a->own;
	const struct frames_part *p = &o->at[part];

	return fprintf(out,
		       "the first %u axes are frames, %" PRIu64
		       " bytes apart, from byte %" PRIu64,
		       o->lead, p->stride, p->pos) > 0;
}

static void frames_free(struct array *a)
{
	free(a->own);
}

static const struct array_ops ops = {
	.learn = frames_learn,
	.locate = frames_locate,
	.make = frames_make,
	.origin = frames_origin,
	.free = frames_free,
};

static int frames_own_new(struct arrays *s, const struct frames *f,
			  struct own **out, struct error *err)
{
	struct own *o = calloc(1, sizeof *o + f->nparts * sizeof *o->at);
	struct dtype served;

	*out = o;
	if (!o || !arrays_served(s, &f->dtype, &served))
		return error_no_memory(err, "the layout of the frames");
	if (!frames_bytes(f, &o->bytes) ||
	    (f->fortran && o->bytes > TURNED_MAX))
		return error_set(err, -ENOTSUP, "its frames are too large");
	if (!dtype_recode(&f->dtype, &served, NULL, &o->recode))
		return error_set(err, -ENOTSUP, "its type is too complicated");
	o->rank = f->rank;
	o->lead = f->lead;
	o->stored = f->dtype;
	o->fortran = f->fortran && f->rank - f->lead > 1;
	memcpy(o->shape, f->shape, f->rank * sizeof *o->shape);
	memcpy(o->at, f->parts, f->nparts * sizeof *o->at);
	return 0;
}

int frames_array(struct arrays *s, const struct frames *f, struct array **out,
		 struct error *err)
{
	struct array_layout l = {.kind = ARRAY_LINEAR};
	struct array_spec spec = {.name = f->name,
				  .stored = f->dtype,
				  .rank = f->rank,
				  .sample_axes = f->lead,
				  .note = f->note,
				  .ops = &ops};
	struct array_part *parts = NULL;
	struct own *own;
	int r = frames_own_new(s, f, &own, err);

	if (r == 0 && f->nparts > 1 &&
	    !(parts = calloc(f->nparts, sizeof *parts)))
		r = error_no_memory(err, "the files of the frames");
	if (r < 0) {
		free(own);
		return r;
	}
	memcpy(spec.shape, f->shape, f->rank * sizeof *spec.shape);
	spec.own = own;
	if (parts) {
		for (unsigned i = 0; i < f->nparts; i++)
			parts[i] = (struct array_part){f->parts[i].file, "",
						       f->parts[i].n};
		spec.parts = parts;
		spec.nparts = f->nparts;
	} else {
		frames_layout(own, 0, &l);
		spec.layout = &l;
	}
	r = array_new(s, &spec, out, err);
	free(parts);
	return r;
}
