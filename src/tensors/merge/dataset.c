/* SPDX-License-Identifier: BSD-2-Clause */
/* Datasets of the output: around chunks, by way of the library, or as they are. */
#include "tensors/merge/making.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "formats/hdf5/file/driver.h"
#include "formats/hdf5/file/vlen.h"
#include "tensors/refer.h"

/* ---- as it is ------------------------------------------------------------ */

/* A dataset or a type, without its attributes, stored as it was. */
/* 0: the library must not know its filters until the copy is written. */
static int forget_filters(struct making *x, hid_t from)
{
	hid_t dcpl;
	int r;

	if (H5Iget_type(from) != H5I_DATASET)
		return 1;
	dcpl = H5Dget_create_plist(from);
	r = dcpl < 0 ? 1 : build_filters_nameless(dcpl, x->err);
	if (dcpl >= 0)
		H5Pclose(dcpl);
	return r;
}

int making_copy(struct making *x, const struct item *it, hid_t from, hid_t *to)
{
	hid_t ocpypl = H5Pcreate(H5P_OBJECT_COPY), lcpl = making_link(it);
	int forgotten = forget_filters(x, from), r;
	struct error ignored;

	r = forgotten < 0 ? forgotten : 0;
	*to = H5I_INVALID_HID;
	if (r == 0 &&
	    H5Pset_copy_object(ocpypl, H5O_COPY_WITHOUT_ATTR_FLAG) >= 0 &&
	    H5Ocopy(x->from, making_place(it), x->out, it->path, ocpypl,
		    lcpl) >= 0)
		*to = H5Oopen(x->out, it->path, H5P_DEFAULT);
	if (r == 0 && (*to < 0 || (forgotten == 0 && H5Oflush(*to) < 0)))
		r = making_failed(x, it, "it cannot be copied");
	H5Pclose(lcpl);
	H5Pclose(ocpypl);
	if (forgotten == 0)
		hdf5_filters_register(&ignored);
	if (r < 0 && *to >= 0)
		H5Oclose(*to);
	return r;
}

/* What of the virtual dataset's properties the new one shall have. */
struct shape {
	hid_t type;
	unsigned rank;
	hsize_t dims[RANK_MAX], max[RANK_MAX];
	unsigned char *fill; /* NULL: zeros */
	bool odd_fill;       /* there is one that cannot be had */
};

static int read_shape(struct making *x, const struct item *it, hid_t from,
		      const struct tensor *t, struct shape *s)
{
	hid_t stored = H5Dget_type(from), space = H5Dget_space(from);
	hid_t dcpl = hdf5_vlen_create_plist(from);
	H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
	int rank = space < 0
			   ? -1
			   : H5Sget_simple_extent_dims(space, s->dims, s->max);
	bool ok = stored >= 0 && rank >= 0 && dcpl >= 0;
	int r;

	s->type = ok ? H5Tcopy(stored) : H5I_INVALID_HID;
	s->rank = ok ? (unsigned)rank : 0;
	s->fill = NULL;
	/* Axes without end are as long as the parts say. */
	for (unsigned i = 0; i < s->rank && t->rank >= s->rank; i++)
		s->dims[i] = t->shape[i];
	ok = ok && s->type >= 0 && H5Pfill_value_defined(dcpl, &defined) >= 0;
	s->odd_fill = ok && defined == H5D_FILL_VALUE_USER_DEFINED &&
		      refer_points(s->type);
	if (ok && defined == H5D_FILL_VALUE_USER_DEFINED && !s->odd_fill) {
		s->fill = calloc(1, H5Tget_size(s->type));
		ok = s->fill && H5Pget_fill_value(dcpl, s->type, s->fill) >= 0;
	}
	r = ok ? 0 : making_failed(x, it, "it cannot be read");
	if (stored >= 0)
		H5Tclose(stored);
	if (space >= 0)
		H5Sclose(space);
	if (dcpl >= 0)
		H5Pclose(dcpl);
	return r;
}

static void shape_free(struct shape *s)
{
	if (s->type >= 0)
		H5Tclose(s->type);
	free(s->fill);
}

/* The chunks of one stream, out of the journal's. */
static int chunks_of(const struct merge *m, uint32_t stream,
		     struct build_chunk **out, uint64_t *count)
{
	uint64_t n = 0;

	for (size_t i = 0; i < m->j.chunks.n; i++)
		n += m->j.chunks.at[i].stream == stream &&
		     m->j.chunks.at[i].at.len;
	*count = n;
	*out = calloc(n ? n : 1, sizeof **out);
	if (!*out)
		return -ENOMEM;
	n = 0;
	for (size_t i = 0; i < m->j.chunks.n; i++)
		if (m->j.chunks.at[i].stream == stream &&
		    m->j.chunks.at[i].at.len)
			(*out)[n++] = m->j.chunks.at[i].at;
	return 0;
}

int making_stream(struct making *x, const struct item *it, hid_t from,
		  hid_t *to)
{
	const struct stream *st = &x->m->streams.at[it->index];
	uint64_t dims[RANK_MAX], max[RANK_MAX];
	struct build_dataset d = {.path = it->path,
				  .shape = dims,
				  .max = max,
				  .chunk = st->grid.chunk,
				  .pipeline = &st->pipeline};
	struct shape s;
	int r = read_shape(x, it, from, st->t, &s);

	d.type = s.type;
	d.rank = s.rank;
	d.fill = s.fill;
	for (unsigned i = 0; i < s.rank; i++) {
		dims[i] = s.dims[i];
		max[i] = s.max[i] == H5S_UNLIMITED ? UINT64_MAX : s.max[i];
		max[i] = max_u64(max[i], dims[i]);
	}
	if (r == 0 &&
	    chunks_of(x->m, (uint32_t)it->index, &d.chunks, &d.n_chunks) < 0)
		r = merge_no_memory(x->err);
	if (r == 0)
		r = build_dataset(x->m->b, x->out, &d, to, x->err);
	free(d.chunks);
	shape_free(&s);
	return r;
}

/* ---- strings and the like ------------------------------------------------ */

/* The dataset whose rows a dataset of flags is of: it says how these are stored. */
static const struct stream *sibling(const struct merge *m, const char *path,
				    const struct tensor *t)
{
	size_t n = (size_t)(strrchr(path, '/') - path) + 1;

	for (size_t i = 0; i < m->streams.n; i++) {
		const struct stream *s = &m->streams.at[i];
		const char *name = s->t->name;

		if (!strncmp(name, path, n) && !strchr(name + n, '/') &&
		    s->t->shape[0] == t->shape[0])
			return s;
	}
	return NULL;
}

/* As many rows in a chunk as the data has, and its compression where the library has
 * it, too: deflate and lzf. */
static int store_as_sibling(const struct stream *s, hid_t dcpl,
			    struct error *err)
{
	hsize_t rows = s->grid.chunk[0];
	struct pipeline p = {.n = 0};
	int r = H5Pset_chunk(dcpl, 1, &rows) < 0
			? error_set(err, -EIO, "its chunks cannot be set")
			: 0;

	for (unsigned i = 0; i < s->pipeline.n && r == 0; i++) {
		const struct pipeline_filter *f = &s->pipeline.filter[i];

		if (f->id == 32000)
			r = pipeline_add(&p, f->id, NULL, NULL, 0, 16, err);
		else if (f->id == H5Z_FILTER_DEFLATE)
			r = pipeline_add(&p, f->id, NULL, f->params.cd, 1, 16,
					 err);
	}
	return r < 0 ? r : build_filters(dcpl, &p, err);
}

int making_values(struct making *x, const struct item *it, hid_t from,
		  hid_t *to)
{
	const struct values *v = &x->m->values.at[it->index];
	const struct stream *beside =
		v->is_flags ? sibling(x->m, it->path, v->t) : NULL;
	hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), space = -1, lcpl;
	struct shape s;
	int r = read_shape(x, it, from, v->t, &s);

	H5Pset_obj_track_times(dcpl, false);
	H5Pset_fill_time(dcpl, H5D_FILL_TIME_ALLOC); /* h5py's */
	if (r == 0 && refer_is_in(s.type))
		r = error_set(x->err, -ENOTSUP,
			      "%s: references in other files cannot be merged",
			      it->path);
	if (r == 0 && beside && v->t->elements)
		r = store_as_sibling(beside, dcpl, x->err);
	if (r == 0 && s.fill && H5Pset_fill_value(dcpl, s.type, s.fill) < 0)
		r = making_failed(x, it, "its fill value cannot be set");
	if (r == 0) {
		lcpl = making_link(it);
		space = H5Screate_simple((int)s.rank, s.dims, NULL);
		*to = H5Dcreate2(x->out, it->path, s.type, space, lcpl, dcpl,
				 H5P_DEFAULT);
		r = *to < 0 ? making_failed(x, it, "it cannot be made") : 0;
		H5Pclose(lcpl);
		H5Sclose(space);
	}
	if (r == 0) {
		/* It opens parts. */
		H5Fclose(x->from);
		x->from = H5I_INVALID_HID;
		r = merge_values_write(x->m, it, *to, s.odd_fill, x->err);
		if (r < 0)
			H5Dclose(*to);
	}
	H5Pclose(dcpl);
	shape_free(&s);
	return r;
}

/* Filters that nobody can apply are left out. */
static void drop_filters(hid_t dcpl)
{
	for (int i = H5Pget_nfilters(dcpl); i-- > 0;) {
		unsigned flags, can = 0;
		size_t n = 0;
		H5Z_filter_t id = H5Pget_filter2(dcpl, (unsigned)i, &flags, &n,
						 NULL, 0, NULL, NULL);

		if (id >= 0 && (H5Zget_filter_info(id, &can) < 0 ||
				!(can & H5Z_FILTER_CONFIG_ENCODE_ENABLED)))
			H5Premove_filter(dcpl, id);
	}
}

/* A dataset as it is, whose elements point to others. */
int making_pointing(struct making *x, const struct item *it, hid_t from,
		    hid_t *to)
{
	hid_t stored = H5Dget_type(from), space = H5Dget_space(from);
	hid_t type = stored < 0 ? stored : H5Tcopy(stored),
	      lcpl = making_link(it);
	hid_t dcpl = hdf5_vlen_create_plist(from);
	int r;

	*to = H5I_INVALID_HID;
	if (type >= 0 && space >= 0 && dcpl >= 0) {
		drop_filters(dcpl);
		*to = H5Dcreate2(x->out, it->path, type, space, lcpl, dcpl,
				 H5P_DEFAULT);
	}
	r = *to < 0 ? making_failed(x, it, "it cannot be made") : 0;
	H5Pclose(lcpl);
	if (dcpl >= 0)
		H5Pclose(dcpl);
	if (space >= 0)
		H5Sclose(space);
	if (type >= 0)
		H5Tclose(type);
	if (stored >= 0)
		H5Tclose(stored);
	if (r < 0)
		return r;
	H5Fclose(x->from); /* it is opened there */
	x->from = H5I_INVALID_HID;
	r = merge_values_write(x->m, it, *to, false, x->err);
	if (r < 0)
		H5Dclose(*to);
	return r;
}

bool making_points(hid_t dset)
{
	hid_t type = H5Dget_type(dset);
	bool is = type >= 0 && (refer_points(type) || refer_is_in(type));

	if (type >= 0)
		H5Tclose(type);
	return is;
}
