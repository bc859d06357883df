/* SPDX-License-Identifier: BSD-2-Clause */
/* Datasets as directories of the tree, with their fields. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "formats/hdf5/file/driver.h"
#include "formats/hdf5/group.h"
#include "formats/hdf5/walk.h"

/* Fields, those of fields included, that get a directory each. */
#define FIELDS_MAX 4096

/* Give a tensor its directory: `parent` itself if `name` is NULL, or a new one. */
static int publish_tensor_dir(struct walk *w, uint32_t parent, const char *name,
			      struct hdf5_tensor *h, uint32_t *dir)
{
	uint32_t at =
		name ? tree_add_dir(w->b, parent, name, w->s->mtime) : parent;
	struct files *f;
	int r;

	if (at == UINT32_MAX) {
		tensor_free(&h->t);
		return error_no_memory(w->err, "a dataset's directory");
	}
	r = tensor_files_new(&f, &h->t, &w->s->views, w->err);
	if (r < 0)
		return r;
	tree_set_files(w->b, at, f);
	*dir = at;
	return 0;
}

/* ---- fields -------------------------------------------------------------- */

struct fields {
	struct walk *w;
	const struct hdf5_tensor *of;
	const struct hdf5_description *d;
	unsigned n;
};

/* A structure, as stored and as served, and which field of the element it is
 * (or an array of it is); `at` NULL: it is the element. */
struct inside {
	const struct dtype *stored, *served;
	const struct dtype_field *at;
	const char *path;
};
static int publish_fields(struct fields *x, const struct inside *in,
			  uint32_t parent);

/* Append the axes of a field. */
static void append_field_axes(const struct dtype_field *f, uint64_t *dims,
			      uint64_t *strides)
{
	uint64_t side_by_side = f->type.size;

	for (uint32_t i = f->rank; i-- > 0;) {
		dims[i] = f->dims[i];
		strides[i] = f->strides ? f->strides[i] : side_by_side;
		side_by_side *= f->dims[i]; /* checked with the type */
	}
}

/*
 * Field i as one of the whole element: its offset counted from there, the axes
 * of arrays that it is inside of in front of its own.  Kept by the source; NULL:
 * no memory.
 */
static const struct dtype_field *
field_inside(struct walk *w, const struct inside *in, uint32_t i)
{
	const struct dtype_field *f = &in->stored->fields[i], *at = in->at;
	cleanup_free uint64_t *axes = NULL;
	struct intern *keep = &w->s->intern;
	struct dtype_field x;
	uint32_t rank;

	if (!at)
		return f;
	memset(&x, 0, sizeof x);
	memcpy(&x, f, sizeof x);
	x.offset += at->offset;
	x.rank = rank = at->rank + f->rank;
	if (at->rank) {
		axes = calloc(2 * (size_t)rank, sizeof *axes);
		if (!axes)
			return NULL;
		append_field_axes(at, axes, axes + rank);
		append_field_axes(f, axes + at->rank, axes + rank + at->rank);
		x.dims = intern_bytes(keep, axes, rank * sizeof *axes);
		x.strides =
			intern_bytes(keep, axes + rank, rank * sizeof *axes);
		if (!x.dims || !x.strides)
			return NULL;
	}
	return intern_bytes(keep, &x, sizeof x);
}

/* Return a field's type when it stands alone: bytes are strings then. */
static struct dtype type_of_lone_field(const struct dtype_field *f)
{
	struct dtype d = f->type;

	if (d.kind == DTYPE_BYTES)
		d.kind = DTYPE_STRING;
	return d;
}

static int publish_field(struct fields *x, const struct inside *in, uint32_t i,
			 uint32_t parent)
{
	const struct dtype_field *f = field_inside(x->w, in, i);
	const struct dtype_field *served = &in->served->fields[i];
	const struct dtype as = type_of_lone_field(served);
	cleanup_free char *path = NULL;
	struct hdf5_tensor *h;
	struct error err = {0};
	struct inside deeper;
	uint32_t dir;
	int r;

	if (!f || asprintf(&path, "%s%s%s", in->path, *in->path ? "/" : "",
			   f->name) < 0) {
		path = NULL;
		return error_no_memory(x->w->err, "the path of a field");
	}
	h = hdf5_tensor_field(x->of, x->d, f, &as, path, &err);
	if (!h)
		return error_no_memory(x->w->err, "a field of a dataset");
	r = publish_tensor_dir(x->w, parent, f->name, h, &dir);
	if (r < 0 || (as.kind != DTYPE_STRUCT && as.kind != DTYPE_TEXT))
		return r;
	deeper = (struct inside){&f->type, &served->type, f, path};
	return publish_fields(x, &deeper, dir);
}

static int publish_fields(struct fields *x, const struct inside *in,
			  uint32_t parent)
{
	uint32_t dir, n = in->stored->nfields;
	int r = 0;

	if (!n || n != in->served->nfields || x->n + n > FIELDS_MAX)
		return 0;
	x->n += n;
	dir = tree_add_dir(x->w->b, parent, "fields", x->w->s->mtime);
	if (dir == UINT32_MAX)
		return error_no_memory(x->w->err, "a directory of fields");
	for (uint32_t i = 0; i < n && !r; i++)
		r = publish_field(x, in, i, dir);
	return r;
}

/* ---- datasets ------------------------------------------------------------ */

static int note_dataset(struct walk *w, struct hdf5_tensor *h)
{
	const struct hdf5_item item = {
		.kind = HDF5_ITEM_DATASET, .name = h->t.name, .tensor = h};

	return hdf5_walk_note(w, &item);
}

/* Set which axes count samples, if the dataset or its group tells. */
static void suggest_axes(const struct group *g, hid_t dset,
			 struct hdf5_tensor *h)
{
	h->t.sample_axes = hdf5_axes_suggested(g ? g->id : -1, dset, h->t.rank);
}

static int publish_described(struct walk *w, const struct group *g,
			     uint32_t parent, const char *name, hid_t dset,
			     const struct hdf5_place *at,
			     const struct hdf5_description *d,
			     struct tensor **out)
{
	cleanup_free char *path = NULL;
	struct hdf5_tensor *h;
	struct fields x;
	struct inside in;
	uint32_t dir;
	int r;

	if (asprintf(&path, "%s%s%s", g ? g->path : "", name ? "/" : "",
		     name ? name : at->object) < 0) {
		path = NULL;
		return error_no_memory(w->err, "the path of a dataset");
	}
	hdf5_unlock();
	h = hdf5_tensor_new(at, path, d, NULL);
	hdf5_lock();
	if (!h)
		return error_no_memory(w->err, "a dataset");
	suggest_axes(g, dset, h);
	r = hdf5_labels_set(w, g, dset, h);
	if (!r)
		r = hdf5_dimensions_note(w, dset, at->file, h);
	if (r < 0) {
		tensor_free(&h->t);
		return r;
	}
	if (out)
		*out = &h->t;
	r = publish_tensor_dir(w, parent, name, h, &dir);
	if (!r)
		r = note_dataset(w, h);
	if (r < 0 || d->null || h->t.why_not)
		return r;
	x = (struct fields){w, h, d, 0};
	in = (struct inside){&d->type.stored, &d->type.served, NULL, ""};
	hdf5_unlock();
	if (d->type.served.kind == DTYPE_STRUCT ||
	    d->type.served.kind == DTYPE_TEXT)
		r = publish_fields(&x, &in, dir);
	hdf5_lock();
	return r;
}

int hdf5_publish_dataset(struct walk *w, const struct group *g,
			 const char *name, hid_t dset,
			 const struct hdf5_place *at, struct tensor **out)
{
	struct hdf5_description d;
	struct error why = {0};
	int r;

	if (hdf5_describe(w->s, dset, NULL, &d, &why) < 0)
		return hdf5_publish_listed(w, g, name, why.code, why.text);
	r = publish_described(w, g, g ? g->dir : w->level[0].dir, name, dset,
			      at, &d, out);
	hdf5_description_free(&d);
	return r;
}

int hdf5_publish_listed(struct walk *w, const struct group *g, const char *name,
			int code, const char *why)
{
	struct hdf5_place at = {w->s, w->s->file, NULL};
	cleanup_free char *path = NULL;
	struct hdf5_tensor *h;
	struct error err;
	uint32_t dir;
	int r;

	if (asprintf(&path, "%s/%s", g ? g->path : "", name ? name : "") < 0) {
		path = NULL;
		return error_no_memory(w->err, "the path of a dataset");
	}
	error_set(&err, code, "%s", why);
	h = hdf5_tensor_new(&at, path, NULL, &err);
	if (!h)
		return error_no_memory(w->err, "a dataset");
	r = publish_tensor_dir(w, g ? g->dir : w->level[0].dir, name, h, &dir);
	return r < 0 ? r : note_dataset(w, h);
}
