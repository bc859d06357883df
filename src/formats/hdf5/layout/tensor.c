/* SPDX-License-Identifier: BSD-2-Clause */
/* A tensor read from HDF5: what a dataset, or a field of one, is. */

#include "formats/hdf5/layout/tensor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/hdf5/worker/call.h"
#include "tensor/text.h"

static struct hdf5_tensor *hdf5_of(struct tensor *t)
{
	return (struct hdf5_tensor *)t;
}

static struct hdf5_place place_of_part(struct tensor *t, uint32_t p)
{
	return (struct hdf5_place){hdf5_of(t)->source, t->parts[p].file,
				   t->parts[p].dataset};
}

/* ---- operations ---------------------------------------------------------- */

static int check_match(const struct hdf5_tensor *h,
		       const struct hdf5_description *d, struct error *err)
{
	char wanted[sizeof d->said];

	if (d->null)
		return error_set(err, -EIO, "it has a null dataspace");
	if (d->match != HDF5_DIFFERENT)
		return 0;
	hdf5_type_describe(&h->type->stored, wanted, sizeof wanted);
	return error_set(err, -EIO, "it is %s where the main file maps %s",
			 d->said, wanted);
}

/* Append the axes of an array field to the dataset's own. */
static int add_field_axes(struct hdf5_description *d, const struct tensor *t,
			  struct error *err)
{
	const struct dtype_field *f = t->field;

	if (!f)
		return 0;
	if (f->rank > RANK_MAX - d->rank)
		return error_set(err, -ENOTSUP, "it has more than %d axes",
				 RANK_MAX);
	for (unsigned i = 0; i < f->rank; i++) {
		d->shape[d->rank] = f->dims[i];
		d->chunk[d->rank++] = max_u64(f->dims[i], 1);
	}
	return 0;
}

static int hdf5_learn(struct tensor *t, uint32_t p, struct layout **out,
		      struct error *err)
{
	struct hdf5_place at = place_of_part(t, p);
	struct hdf5_description d;
	int r = hdf5_call_describe(&at, hdf5_of(t)->type, &d, err);

	if (r < 0)
		return r;
	r = check_match(hdf5_of(t), &d, err);
	if (!r)
		r = add_field_axes(&d, t, err);
	if (!r)
		r = hdf5_layout_new(hdf5_of(t), p, &d, out, err);
	if (r < 0)
		hdf5_place_prefix(&at, err);
	hdf5_description_free(&d);
	return r;
}

static int hdf5_locate_part(struct tensor *t, uint32_t p,
			    const struct layout *l, uint64_t first, uint32_t n,
			    struct location *out, struct error *err)
{
	struct hdf5_place at = place_of_part(t, p);
	uint64_t written = atomic_load(&t->parts[p].written);
	int r = hdf5_call_locate(&at, l->grid, first, n, &written, out, err);

	if (!r)
		atomic_store(&t->parts[p].written, written);
	return r;
}

static int hdf5_list_part(struct tensor *t, uint32_t p, const struct layout *l,
			  uint64_t *from, struct written *out, uint32_t room,
			  uint32_t *n, struct error *err)
{
	struct hdf5_place at = place_of_part(t, p);
	uint64_t count;
	int r = hdf5_call_list(&at, l->grid, from, out, room, n, &count, err);

	if (count != UINT64_MAX)
		atomic_store(&t->parts[p].written, count + 1);
	return r;
}

static int hdf5_fetch_part(struct tensor *t, uint32_t p, const struct layout *l,
			   uint64_t chunk, void *out, size_t size,
			   struct error *err)
{
	struct hdf5_place at = place_of_part(t, p);
	struct location where;
	int r = 0;

	/* The library would give fill values for what it cannot find. */
	if (l->by_library && l->indexed)
		r = hdf5_locate_part(t, p, l, chunk, 1, &where, err);
	if (r < 0)
		return r;
	return hdf5_call_fetch(
		&at, l->grid, chunk, l->by_library ? &t->dtype : NULL,
		l->by_library ? hdf5_of(t)->member : NULL, out, size, err);
}

/* The caller prints dataset and file; print the field. */
static bool hdf5_origin_part(const struct tensor *t, uint32_t p, FILE *out)
{
	const char *member = ((const struct hdf5_tensor *)t)->member;

	(void)p;
	return fprintf(out, "member %zu %s", member ? strlen(member) : 0,
		       member ? member : "(all)") > 0;
}

static int hdf5_values_part(struct tensor *t, uint32_t p, const struct box *b,
			    hdf5_put *put, void *ctx, struct error *err)
{
	const struct layout *l = atomic_load(&t->parts[p].layout);
	struct hdf5_place at = place_of_part(t, p);

	return hdf5_call_values(&at, b, l && l->grid ? l->grid->rank : t->rank,
				&t->dtype, hdf5_of(t)->member, put, ctx, err);
}

static char *hdf5_attributes_of(struct tensor *t, struct error *err)
{
	const struct hdf5_tensor *h = hdf5_of(t);
	struct hdf5_place at = {h->source, h->file, h->object};

	return h->t.field || h->member || !h->object
		       ? strdup("{}")
		       : hdf5_call_attributes(&at, err);
}

static char *hdf5_about_of(struct tensor *t, struct error *err)
{
	const struct hdf5_tensor *h = hdf5_of(t);
	struct hdf5_place at = {h->source, h->file, h->object};

	return h->t.field || h->member || !h->object
		       ? strdup("{\"attributes\": {}}")
		       : hdf5_call_about(&at, err);
}

static char *hdf5_monolith_of(struct tensor *t, size_t *len, struct error *err)
{
	return hdf5_monolith_new(hdf5_of(t)->source, hdf5_of(t), len, err);
}

static void hdf5_tensor_free(struct tensor *t)
{
	free(hdf5_of(t));
}

const struct tensor_ops hdf5_tensor_ops = {
	.learn = hdf5_learn,
	.locate = hdf5_locate_part,
	.list = hdf5_list_part,
	.fetch = hdf5_fetch_part,
	.origin = hdf5_origin_part,
	.values = hdf5_values_part,
	.attributes = hdf5_attributes_of,
	.about = hdf5_about_of,
	.monolith = hdf5_monolith_of,
	.free = hdf5_tensor_free,
};

/* ---- shape and type ------------------------------------------------------ */

/* Chunks may have been stored without a filter, so one that we lack does not
 * hide the dataset; it says so. */
static int note_filter(struct tensor *t, const struct layout *l,
		       struct error *err)
{
	const struct pipeline_filter *f =
		l->by_library ? NULL : pipeline_missing(l->pipeline, 0);
	const char *package = f ? codec_package_of_id(f->id) : NULL;

	if (!f)
		return 0;
	if (asprintf(&t->unreadable,
		     "filter %s (id %u) cannot be decoded: chunks stored with "
		     "it read as ENOTSUP%s%s",
		     f->name, (unsigned)f->id,
		     package ? "; the HDF5 plugin is in the Debian package "
			     : "",
		     package ? package : "") < 0) {
		t->unreadable = NULL;
		return error_no_memory(err, "the name of a missing filter");
	}
	return 0;
}

/* Check that rows of text are short enough: they are read whole. */
static int check_text_rows(struct hdf5_source *s, struct tensor *t,
			   struct error *err)
{
	uint64_t row = 1;

	t->bytes = 0;
	for (unsigned i = 1; i < t->rank; i++)
		row *= max_u64(t->shape[i], 1);
	/* What is of variable length lies in its file, not compressed: it cannot
	 * be longer than that on average. */
	t->text_bytes = t->dtype.kind == DTYPE_STRING && !t->dtype.vlen
				? max_u64(t->dtype.size, 1)
				: s->size / max_u64(t->elements, 1) + 1;
	if (t->mosaic) /* the files of its parts were not opened yet */
		t->text_bytes = t->dtype.vlen || t->dtype.kind != DTYPE_STRING
					? 0
					: t->text_bytes;
	if (t->dtype.kind != DTYPE_RAGGED &&
	    (row > TEXT_ROW_MAX ||
	     row > TEXT_ROW_BYTES / max_u64(t->text_bytes, 1)))
		return error_set(err, -ENOTSUP,
				 "rows of %" PRIu64 " strings of up to %" PRIu64
				 " bytes are not supported",
				 row, t->text_bytes);
	return 0;
}

static int set_tensor_type(struct hdf5_tensor *h, const struct hdf5_type *type,
			   struct error *err)
{
	struct hdf5_source *s = h->source;
	struct tensor *t = &h->t;
	cleanup_free char *descr = NULL;
	size_t n;

	h->type = intern_bytes(&s->intern, type, sizeof *type);
	t->stored = type->stored;
	if (!t->field && !h->member)
		t->dtype = type->served;
	if (!h->type)
		return error_no_memory(err, "the type of a dataset");
	if (t->dtype.kind == DTYPE_OTHER)
		return error_set(err, -ENOTSUP,
				 "elements of type %s are not supported",
				 t->dtype.text ? t->dtype.text : "unknown");
	if (t->dtype.kind != DTYPE_STRUCT)
		return 0;
	n = dtype_descr(&t->dtype, NULL, 0) + 1;
	descr = malloc(n);
	if (!descr)
		return error_no_memory(err, "the type of a dataset");
	dtype_descr(&t->dtype, descr, n);
	t->descr = intern_bytes(&s->intern, descr, n);
	return t->descr ? 0 : error_no_memory(err, "the type of a dataset");
}

static int set_tensor_shape(struct hdf5_tensor *h, unsigned rank,
			    const uint64_t *shape, struct error *err)
{
	struct tensor *t = &h->t;

	t->rank = rank;
	t->shape =
		intern_bytes(&h->source->intern, shape, rank * sizeof *shape);
	if (!t->shape)
		return error_no_memory(err, "the shape of a dataset");
	t->elements = 1;
	for (unsigned i = 0; i < rank; i++)
		if (mul_overflows(t->elements, shape[i], &t->elements))
			return error_set(err, -ENOTSUP,
					 "the dataset is too large");
	if (mul_overflows(t->elements, t->dtype.size, &t->bytes) ||
	    t->bytes > INT64_MAX)
		return error_set(err, -ENOTSUP, "the dataset is too large");
	return dtype_is_binary(&t->dtype) ? 0
					  : check_text_rows(h->source, t, err);
}

/* ---- parts --------------------------------------------------------------- */

/* Make the dataset itself the only part. */
static int set_only_part(struct hdf5_tensor *h,
			 const struct hdf5_description *d, struct error *err)
{
	struct tensor *t = &h->t;
	struct layout *l;
	int r;

	t->parts = calloc(1, sizeof *t->parts);
	if (!t->parts)
		return error_no_memory(err, "the layout of a dataset");
	t->nparts = 1;
	t->parts[0].file = h->file;
	t->parts[0].dataset = h->object;
	r = hdf5_layout_new(h, 0, d, &l, err);
	if (r < 0)
		return r;
	atomic_init(&t->parts[0].layout, l);
	atomic_init(&t->learnt, 1);
	t->set.unit = l->grid ? l->grid->chunk_bytes : 0;
	return note_filter(t, l, err);
}

/* Set the fill value, as served, which gaps of a mosaic have. */
static int set_tensor_fill(struct hdf5_tensor *h,
			   const struct hdf5_description *d, struct error *err)
{
	struct recode r;
	bool odd = h->t.stored.kind == DTYPE_OTHER;
	int x;

	if (!dtype_is_binary(&h->t.dtype))
		return 0;
	if (odd && h->t.field) /* the library fills in, but for gaps */
		return d->fill_size && d->storage == HDF5_VIRTUAL
			       ? error_set(err, -ENOTSUP,
					   "its fill value is one of a "
					   "structure that is converted")
			       : 0;
	if (!odd && !dtype_recode(&h->t.stored, &h->t.dtype, h->t.field, &r))
		return error_set(err, -ENOTSUP, "its type is too complicated");
	x = hdf5_fill_new(h->source, d, odd ? NULL : &r, &h->t.dtype,
			  &h->t.fill, err);
	return x == 1 && d->storage == HDF5_VIRTUAL
		       ? error_set(err, -ENOTSUP,
				   "its fill value differs within an element")
	       : x < 0 ? x
		       : 0;
}

/* Fill in the tensor. Return 0, or an error that tells why it is only listed. */
static int apply_description(struct hdf5_tensor *h,
			     const struct hdf5_description *d,
			     const struct hdf5_type *type, struct error *err)
{
	uint64_t shape[RANK_MAX];
	int r;

	memcpy(shape, d->shape, sizeof shape);
	r = set_tensor_type(h, type, err);
	h->null = d->null && !r;
	if (d->null)
		return error_set(
			err, -ENOTSUP,
			"it has a null dataspace and therefore no elements");
	if (!r)
		r = set_tensor_fill(h, d, err);
	if (!r && d->storage == HDF5_VIRTUAL)
		r = hdf5_virtual_new(h, d, shape, err);
	if (!r)
		r = set_tensor_shape(h, d->rank, shape, err);
	if (!r && d->storage != HDF5_VIRTUAL)
		r = set_only_part(h, d, err);
	if (!r && h->t.mosaic && h->t.nparts)
		h->t.set.unit = h->t.bytes / h->t.nparts;
	return r;
}

/* ---- making one ---------------------------------------------------------- */

static struct hdf5_tensor *tensor_plain(const struct hdf5_place *at,
					const char *name)
{
	static const unsigned char zero[8];
	struct hdf5_tensor *h = calloc(1, sizeof *h);

	if (!h)
		return NULL;
	h->source = at->s;
	h->file = at->file;
	h->object = at->object;
	h->t.ops = &hdf5_tensor_ops;
	h->t.set.ops = &tensor_chunk_ops;
	h->t.set.id = chunk_set_new_id();
	h->t.handles = at->s->handles;
	h->t.mtime = at->s->mtime;
	h->t.missing = at->s->views.missing;
	h->t.source = at->s->path;
	h->t.dtype.kind = h->t.stored.kind = DTYPE_OTHER;
	h->t.fill = (struct fill){zero, 1};
	h->t.name = strdup(name);
	if (h->t.name)
		return h;
	tensor_free(&h->t);
	return NULL;
}

static struct hdf5_tensor *list_only(struct hdf5_tensor *h,
				     const struct error *why)
{
	h->t.why_not = strdup(why->text);
	h->t.why_code = why->code;
	if (h->t.why_not)
		return h;
	tensor_free(&h->t);
	return NULL;
}

struct hdf5_tensor *hdf5_tensor_new(const struct hdf5_place *at,
				    const char *name,
				    const struct hdf5_description *d,
				    const struct error *why)
{
	struct hdf5_tensor *h = tensor_plain(at, name);
	struct error err = {0};

	if (h && d && apply_description(h, d, &d->type, &err) < 0)
		why = &err;
	return h && why ? list_only(h, why) : h;
}

struct hdf5_tensor *hdf5_tensor_nested(struct hdf5_tensor *outer,
				       const struct hdf5_place *at,
				       const struct hdf5_description *d,
				       struct error *err)
{
	struct hdf5_tensor *h = tensor_plain(at, outer->t.name);
	int r;

	if (!h) {
		error_no_memory(err, "a virtual dataset in a virtual dataset");
		return NULL;
	}
	h->t.depth = outer->t.depth + 1;
	h->t.field = outer->t.field;
	h->member = outer->member;
	r = apply_description(h, d, outer->type, err);
	if (!r)
		return h;
	tensor_free(&h->t);
	return NULL;
}

struct hdf5_tensor *hdf5_tensor_field(const struct hdf5_tensor *of,
				      const struct hdf5_description *d,
				      const struct dtype_field *f,
				      const struct dtype *served,
				      const char *path, struct error *err)
{
	struct hdf5_place at = {of->source, of->file, of->object};
	struct hdf5_description x = *d; /* what it points to stays d's */
	cleanup_free char *name = NULL;
	struct hdf5_tensor *h;
	int r;

	if (asprintf(&name, "%s/fields/%s", of->t.name, path) < 0)
		name = NULL;
	h = name ? tensor_plain(&at, name) : NULL;
	if (!h) {
		error_no_memory(err, "a field of a dataset");
		return NULL;
	}
	h->t.dtype = *served;
	h->t.field = f;
	h->member = intern_text(&of->source->intern, path);
	r = add_field_axes(&x, &h->t, err);
	if (!r)
		r = apply_description(h, &x, of->type, err);
	return r < 0 ? list_only(h, err) : h;
}
