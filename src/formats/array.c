/* SPDX-License-Identifier: BSD-2-Clause */
/* Make a tensor of one array of a format whose header describes it completely. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/number.h"
#include "formats/arrays.h"

static struct array *array_of_tensor(struct tensor *t)
{
	return (struct array *)t;
}

/* ---- types --------------------------------------------------------------- */

static int array_set_type(struct array *a, const struct dtype *stored,
			  struct error *err)
{
	struct tensor *t = &a->t;
	cleanup_free char *descr = NULL;

	memcpy(&t->stored, stored, sizeof *stored);
	stored = t->field ? &t->field->type : &t->stored;
	if ((stored->kind == DTYPE_STRING || stored->kind == DTYPE_TEXT ||
	     stored->kind == DTYPE_RAGGED || stored->kind == DTYPE_BLOB) &&
	    a->ops && a->ops->values) {
		memcpy(&t->dtype, stored, sizeof *stored);
		return 0;
	}
	if (!dtype_is_binary(stored) || !stored->size)
		return error_set(err, -ENOTSUP,
				 "elements of its type are not supported");
	if (!arrays_served(a->source, stored, &t->dtype))
		return error_no_memory(err, "the type of an array");
	if (t->dtype.kind != DTYPE_STRUCT)
		return 0;
	descr = tensor_descr_text(&t->dtype);
	t->descr = descr ? intern_text(&a->source->intern, descr) : NULL;
	return t->descr ? 0 : error_no_memory(err, "the type of an array");
}

static int array_set_shape(struct array *a, const struct array_spec *spec,
			   struct error *err)
{
	struct tensor *t = &a->t;

	if (spec->rank > RANK_MAX)
		return error_set(err, -ENOTSUP, "it has more than %d axes",
				 RANK_MAX);
	t->rank = spec->rank;
	t->sample_axes = min_u64(spec->sample_axes, spec->rank);
	t->shape = intern_bytes(&a->source->intern, spec->shape,
				spec->rank * sizeof *spec->shape);
	if (!t->shape)
		return error_no_memory(err, "the shape of an array");
	t->elements = 1;
	for (unsigned i = 0; i < spec->rank; i++)
		if (mul_overflows(t->elements, spec->shape[i], &t->elements))
			return error_set(err, -ENOTSUP, "it is too large");
	if (mul_overflows(t->elements, t->dtype.size, &t->bytes) ||
	    t->bytes > INT64_MAX)
		return error_set(err, -ENOTSUP, "it is too large");
	if (!dtype_is_binary(&t->dtype))
		t->bytes = 0;
	return 0;
}

/* ---- layouts ------------------------------------------------------------- */

static int array_set_recode(struct array *a, const struct array_layout *x,
			    struct layout *l, struct error *err)
{
	struct recode r;

	if (x->kind == ARRAY_MADE || x->kind == ARRAY_ABSENT)
		return 0;
	memset(&r, 0, sizeof r);
	if (!dtype_recode(&x->stored, &a->t.dtype, a->t.field, &r))
		return error_set(err, -ENOTSUP, "its type is too complicated");
	if (recode_is_identity(&r))
		return 0;
	l->recode = intern_bytes(&a->source->intern, &r, sizeof r);
	return l->recode ? 0 : error_no_memory(err, "the layout of an array");
}

/* Return -EBADMSG unless the array's bytes end within the file. */
static int check_end(const struct array *a, const struct array_layout *x,
		     const struct layout *l, struct error *err)
{
	uint64_t n = l->grid->count ? l->grid->chunk_bytes : 0, end;

	if (l->recode)
		n = n / l->recode->to * l->recode->from;
	if (x->file != a->source->file) /* checked when read */
		return 0;
	if (add_overflows(x->pos, n, &end) || end > a->source->size)
		return error_set(
			err, -EBADMSG,
			"its %" PRIu64 " bytes from %" PRIu64
			" on do not fit in the file, which has %" PRIu64
			": truncated?",
			n, x->pos, a->source->size);
	return 0;
}

static int array_set_grid(struct array *a, const struct array_layout *x,
			  struct layout *l, struct error *err)
{
	bool whole = x->kind == ARRAY_LINEAR || x->kind == ARRAY_ABSENT;
	uint64_t chunk[RANK_MAX];
	struct grid g;

	for (unsigned i = 0; i < a->t.rank; i++)
		chunk[i] = max_u64(whole ? x->shape[i] : x->chunk[i], 1);
	memset(&g, 0, sizeof g);
	if (grid_init(&g, a->t.rank, x->shape, chunk, a->t.dtype.size) < 0 ||
	    g.count >= TENSOR_CHUNK_MAX)
		return error_set(err, -ENOTSUP, "it is too large");
	l->grid = intern_bytes(&a->source->intern, &g, sizeof g);
	return l->grid ? 0 : error_no_memory(err, "the layout of an array");
}

static int fill_layout(struct array *a, const struct array_layout *x,
		       struct layout *l, struct error *err)
{
	static const enum layout_kind kinds[] = {
		[ARRAY_LINEAR] = LAYOUT_LINEAR,
		[ARRAY_CHUNKED] = LAYOUT_CHUNKED,
		[ARRAY_MADE] = LAYOUT_CHUNKED,
		[ARRAY_ABSENT] = LAYOUT_ABSENT,
	};
	static const struct pipeline none;
	int r = array_set_recode(a, x, l, err);

	l->kind = kinds[x->kind];
	l->file = x->file;
	l->pos = x->pos;
	l->fill = a->t.fill;
	l->by_library = x->kind == ARRAY_MADE;
	l->maker = x->maker;
	l->pipeline = x->kind == ARRAY_CHUNKED
			      ? intern_bytes(&a->source->intern, &x->pipeline,
					     sizeof x->pipeline)
			      : &none;
	if (r == 0 && !l->pipeline)
		r = error_no_memory(err, "the filters of an array");
	if (r == 0)
		r = array_set_grid(a, x, l, err);
	if (r == 0 && x->kind == ARRAY_LINEAR)
		r = check_end(a, x, l, err);
	return r;
}

static int layout_new(struct array *a, const struct array_layout *x,
		      struct layout **out, struct error *err)
{
	struct layout *l = calloc(1, sizeof *l);
	int r = l ? fill_layout(a, x, l, err)
		  : error_no_memory(err, "the layout of an array");

	if (r < 0) {
		free(l);
		return r;
	}
	*out = l;
	return 0;
}

/* ---- operations ---------------------------------------------------------- */

/* Return -EIO unless a part has the shape that the mosaic gives it. */
static int check_part(const struct array *a, uint32_t p,
		      const struct array_layout *x, struct error *err)
{
	for (unsigned i = 0; i < a->t.rank; i++) {
		uint64_t n = i == a->axis ? a->along[p] : a->t.shape[i];

		if (x->shape[i] != n)
			return error_set(
				err, -EIO,
				"%s: it has %" PRIu64
				" elements along axis %u, but should have "
				"%" PRIu64,
				handles_name(a->t.handles, a->t.parts[p].file),
				x->shape[i], i, n);
	}
	return 0;
}

static int array_learn(struct tensor *t, uint32_t p, struct layout **out,
		       struct error *err)
{
	struct array *a = array_of_tensor(t);
	struct array_layout x;
	int r;

	memset(&x, 0, sizeof x);
	r = a->ops->learn(a, p, &x, err);
	if (r == 0 && t->mosaic)
		r = check_part(a, p, &x, err);
	return r < 0 ? r : layout_new(a, &x, out, err);
}

static int array_locate(struct tensor *t, uint32_t p, const struct layout *l,
			uint64_t first, uint32_t n, struct location *out,
			struct error *err)
{
	struct array *a = array_of_tensor(t);

	return a->ops->locate(a, p, l->grid, first, n, out, err);
}

static int array_fetch(struct tensor *t, uint32_t p, const struct layout *l,
		       uint64_t chunk, void *out, size_t size,
		       struct error *err)
{
	struct array *a = array_of_tensor(t);

	return a->ops->make(a, p, l->grid, chunk, out, size, err);
}

static bool array_origin(const struct tensor *t, uint32_t p, FILE *out)
{
	const struct array *a = (const struct array *)t;
	cleanup_free char *stored = NULL;

	if (!a->ops || !a->ops->origin)
		return false;
	stored = tensor_descr_text(&t->stored);
	if (!stored)
		return false;
	fprintf(out, "part %" PRIu32 ", stored as %s, ", p, stored);
	if (t->field)
		fprintf(out, "its field at %" PRIu32 ", ", t->field->offset);
	return a->ops->origin(a, p, out);
}

static int array_values(struct tensor *t, uint32_t p, const struct box *b,
			void (*put)(void *ctx, const char *s, size_t len),
			void *ctx, struct error *err)
{
	struct array *a = array_of_tensor(t);

	return a->ops->values(a, p, b, put, ctx, err);
}

static int array_length(struct tensor *t, uint32_t p, const struct box *b,
			uint64_t *bytes, struct error *err)
{
	struct array *a = array_of_tensor(t);

	return a->ops->length ? a->ops->length(a, p, b, bytes, err) : 0;
}

static bool array_has_checksum(struct tensor *t, uint32_t p)
{
	struct array *a = array_of_tensor(t);

	return a->ops && a->ops->has_checksum && a->ops->has_checksum(a, p);
}

static char *array_attributes(struct tensor *t, struct error *err)
{
	const struct array *a = array_of_tensor(t);
	json_t *o = a->ops && a->ops->attributes ? a->ops->attributes(a)
						 : json_object();
	char *text = o ? json_exact(o, 0) : NULL;

	json_decref(o);
	if (!text)
		error_no_memory(err, "the attributes of an array");
	return text;
}

static char *array_about(struct tensor *t, struct error *err)
{
	const struct array *a = array_of_tensor(t);
	cleanup_free char *attributes = array_attributes(t, err);
	json_t *o, *all;
	char *text;

	if (!attributes)
		return NULL;
	all = a->ops && a->ops->about ? a->ops->about(a) : json_object();
	o = json_loads(attributes, JSON_ALLOW_NUL, NULL);
	if (o)
		json_object_set_new(all, "attributes", o);
	text = all && o ? json_exact(all, 0) : NULL;
	json_decref(all);
	if (!text)
		error_no_memory(err, "the description of an array");
	return text;
}

static void array_free(struct tensor *t)
{
	struct array *a = array_of_tensor(t);

	if (a->ops && a->ops->free)
		a->ops->free(a);
	free(a->along);
	free(a);
}

static const struct tensor_ops array_tensor_ops = {
	.learn = array_learn,
	.locate = array_locate,
	.fetch = array_fetch,
	.origin = array_origin,
	.values = array_values,
	.length = array_length,
	.has_checksum = array_has_checksum,
	.attributes = array_attributes,
	.about = array_about,
	.monolith = array_monolith,
	.free = array_free,
};

/* ---- parts --------------------------------------------------------------- */

static int array_set_parts(struct array *a, const struct array_spec *spec,
			   struct error *err)
{
	const struct array_layout *l = spec->layout;
	uint32_t file = l && l->file != UINT32_MAX ? l->file : a->source->file;
	struct tensor *t = &a->t;
	uint32_t n = max_u64(spec->nparts, 1);

	if (n > TENSOR_PARTS_MAX)
		return error_set(err, -ENOTSUP,
				 "it is in more files than are supported");
	t->parts = calloc(n, sizeof *t->parts);
	if (!t->parts)
		return error_no_memory(err, "the parts of an array");
	t->nparts = n;
	for (uint32_t i = 0; i < n; i++) {
		t->parts[i].file = spec->nparts ? spec->parts[i].file : file;
		t->parts[i].dataset =
			spec->nparts ? spec->parts[i].name : t->name;
	}
	return 0;
}

static int array_set_single(struct array *a, const struct array_spec *spec,
			    struct error *err)
{
	struct layout *l;
	int r = layout_new(a, spec->layout, &l, err);

	if (r < 0)
		return r;
	atomic_init(&a->t.parts[0].layout, l);
	atomic_init(&a->t.learnt, 1);
	a->t.set.unit = l->grid->chunk_bytes;
	return 0;
}

/* Lay the parts side by side along an axis. */
static int array_set_mosaic(struct array *a, const struct array_spec *spec,
			    struct error *err)
{
	struct tensor *t = &a->t;
	uint64_t begin = 0;
	struct tile to;
	int r = mosaic_new(&t->mosaic, t->rank, t->shape, err);

	a->axis = spec->axis;
	a->along = calloc(t->nparts, sizeof *a->along);
	if (r == 0 && !a->along)
		r = error_no_memory(err, "the parts of an array");
	for (uint32_t i = 0; r == 0 && i < t->nparts; i++) {
		a->along[i] = spec->parts[i].n;
		memset(&to, 0, sizeof to);
		to.part = i;
		to.all = true;
		for (unsigned k = 0; k < t->rank; k++) {
			to.to.stride[k] = to.to.block[k] = t->shape[k];
			to.to.count[k] = 1;
		}
		to.to.start[spec->axis] = begin;
		to.to.stride[spec->axis] = to.to.block[spec->axis] =
			spec->parts[i].n;
		if (add_overflows(begin, spec->parts[i].n, &begin))
			return error_set(err, -ENOTSUP, "it is too large");
		r = mosaic_add(t->mosaic, &to, err);
	}
	if (r == 0)
		r = mosaic_finish(t->mosaic, err);
	if (r == 0 && t->nparts)
		t->set.unit = t->bytes / t->nparts;
	return r;
}

/* ---- making one ---------------------------------------------------------- */

static struct array *array_plain(struct arrays *s, const char *name,
				 const struct array_spec *spec)
{
	static const unsigned char zero[8];
	struct array *a = calloc(1, sizeof *a);

	if (!a)
		return NULL;
	a->source = s;
	a->ops = spec ? spec->ops : NULL;
	a->own = spec ? spec->own : NULL;
	a->t.ops = &array_tensor_ops;
	a->t.set.ops = &tensor_chunk_ops;
	a->t.set.id = chunk_set_new_id();
	a->t.handles = s->handles;
	a->t.mtime = s->mtime;
	a->t.missing = s->views.missing;
	a->t.source = s->path;
	a->t.dtype.kind = a->t.stored.kind = DTYPE_OTHER;
	a->t.fill = (struct fill){zero, 1};
	a->t.name = strdup(name);
	if (a->t.name)
		return a;
	tensor_free(&a->t);
	return NULL;
}

static int array_fill_in(struct array *a, const struct array_spec *spec,
			 struct error *err)
{
	struct tensor *t = &a->t;
	int r;

	t->field = spec->field;
	r = array_set_type(a, &spec->stored, err);
	if (r == 0)
		r = array_set_shape(a, spec, err);
	if (r == 0 && spec->fill) {
		t->fill.pattern = intern_bytes(&a->source->intern, spec->fill,
					       t->dtype.size);
		t->fill.width = t->dtype.size;
		r = t->fill.pattern
			    ? 0
			    : error_no_memory(err,
					      "the fill value of an array");
	}
	if (r == 0 && spec->note && !(t->note = strdup(spec->note)))
		r = error_no_memory(err, "the description of an array");
	t->text_bytes = spec->text_bytes;
	if (r == 0)
		r = array_set_parts(a, spec, err);
	if (r == 0)
		r = spec->layout ? array_set_single(a, spec, err)
				 : array_set_mosaic(a, spec, err);
	return r;
}

int array_new(struct arrays *s, const struct array_spec *spec,
	      struct array **out, struct error *err)
{
	struct array *a = array_plain(s, spec->name, spec);
	int r;

	if (!a) { /* the array would own `own`: free it here */
		struct array gone = {.own = spec->own};

		if (spec->ops && spec->ops->free)
			spec->ops->free(&gone);
		return error_no_memory(err, "an array");
	}
	r = array_fill_in(a, spec, err);
	if (r < 0) {
		tensor_free(&a->t);
		return r;
	}
	*out = a;
	return 0;
}

int array_publish_not(struct arrays *s, struct tree_builder *b, uint32_t parent,
		      const char *name, const struct error *why,
		      struct error *err)
{
	struct array *a = array_plain(s, name ? name : "", NULL);

	if (!a)
		return error_no_memory(err, "an array");
	a->t.why_not = strdup(why->text);
	a->t.why_code = why->code;
	if (!a->t.why_not) {
		tensor_free(&a->t);
		return error_no_memory(err, "an array");
	}
	return array_publish(b, parent, name, a, NULL, err);
}
