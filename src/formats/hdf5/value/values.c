/* SPDX-License-Identifier: BSD-2-Clause */
/* Values that are no NumPy array: strings, sequences, anything as JSON. */

/*
 * The library reads them, a batch at a time; what elements of variable length
 * refer to comes by formats/hdf5/file/vlen.c, and is forgotten with the batch.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/hdf5/chunk/chunk.h"
#include "formats/hdf5/file/driver.h"
#include "formats/hdf5/value/json.h"
#include "formats/hdf5/file/vlen.h"
#include "formats/hdf5/value/value.h"

/* Limits of a batch: elements, bytes. */
#define BATCH_ELEMENTS 65536
#define BATCH_BYTES (UINT64_C(16) << 20)
/* Limit of variable-length data of one call, in bytes. */
#define VALUES_MAX (UINT64_C(1) << 30)

struct values {
	const struct dtype *as;
	hdf5_put *put;
	void *ctx;
	hid_t dset, memory, space;
	hid_t leaf;   /* the type of what is meant */
	size_t size;  /* of an element, which is values along inner axes */
	size_t value; /* of one of these */
	bool vlen;
	H5T_str_t pad;
	size_t each; /* RAGGED: bytes of an element of a sequence */
	struct hdf5_paths *paths;
	struct hdf5_json *json;
	unsigned rank, inner;    /* all axes; those of array types */
	uint64_t dims[RANK_MAX]; /* of these */
};

/* ---- one value ----------------------------------------------------------- */

static int put_string_bytes(const struct values *v, const char *p)
{
	const char *s = p;
	size_t len;

	if (v->vlen) {
		memcpy(&s, p, sizeof s);
		len = s ? strlen(s) : 0;
	} else {
		len = hdf5_string_length(p, v->value, v->pad);
	}
	v->put(v->ctx, s ? s : "", len);
	return 0;
}

static int put_sequence_bytes(const struct values *v, const char *p)
{
	hvl_t s;

	memcpy(&s, p, sizeof s);
	v->put(v->ctx, s.len ? s.p : "", s.len * v->each);
	return 0;
}

/* Put a reference as its path and what is selected there, not as JSON. */
static int put_reference(const struct values *v, const char *p,
			 struct error *err)
{
	cleanup_free char *line = NULL;
	struct hdf5_meaning m;
	int len = 0;

	if (hdf5_reference_read(v->paths, v->leaf, p, &m) < 0)
		return error_no_memory(err, "a reference as text");
	if (m.selection)
		len = asprintf(&line, "%s %s", m.path, m.selection);
	else
		v->put(v->ctx, m.path ? m.path : "",
		       m.path ? strlen(m.path) : 0);
	if (len > 0)
		v->put(v->ctx, line, (size_t)len);
	else if (len < 0)
		line = NULL;
	hdf5_meaning_free(&m);
	return len < 0 ? error_no_memory(err, "a reference as text") : 0;
}

static int put_json_line(const struct values *v, const char *p,
			 struct error *err)
{
	cleanup_free char *line = NULL;
	json_t *j;
	int r = hdf5_json_value(v->json, p, &j, err);

	if (r < 0)
		return r;
	line = json_exact(j, JSON_COMPACT | JSON_ENCODE_ANY);
	json_decref(j);
	if (!line)
		return error_no_memory(err, "a value as text");
	v->put(v->ctx, line, strlen(line));
	return 0;
}

static int put_inner_value(const struct values *v, const char *p,
			   struct error *err)
{
	switch (v->as->kind) {
	case DTYPE_STRING:
		return put_string_bytes(v, p);
	case DTYPE_RAGGED:
		return put_sequence_bytes(v, p);
	default:
		return v->json ? put_json_line(v, p, err)
			       : put_reference(v, p, err);
	}
}

/* ---- batches ------------------------------------------------------------- */

static int read_value_batch(struct values *v, const struct box *b, uint64_t n,
			    char *data, struct error *err)
{
	hsize_t count = n;
	hid_t memory = H5Screate_simple(1, &count, NULL);
	hid_t dxpl = hdf5_vlen_transfer();
	char why[256];
	int r;
	herr_t ok = memory < 0 || dxpl < 0 ? -1 : 0;

	memset(data, 0, n * v->size);
	if (ok >= 0 && v->rank > v->inner)
		ok = H5Sselect_hyperslab(v->space, H5S_SELECT_SET,
					 (const hsize_t *)b->start, NULL,
					 (const hsize_t *)b->count, NULL);
	if (ok >= 0)
		ok = H5Dread(v->dset, v->memory, memory, v->space, dxpl, data);
	if (dxpl >= 0)
		H5Pclose(dxpl);
	if (memory >= 0)
		H5Sclose(memory);
	if (ok >= 0)
		return 0;
	r = hdf5_vlen_failed(err);
	if (r < 0)
		return r;
	hdf5_why(why, sizeof why);
	return error_set(err, -EIO, "%s", why);
}

/* Put the values of one element that are in the box. */
static int put_element(const struct values *v, const struct box *b,
		       const char *p, struct error *err)
{
	unsigned own = v->rank - v->inner;
	uint64_t n = 1;
	int r = 0;

	for (unsigned i = own; i < v->rank; i++)
		n *= b->count[i];
	for (uint64_t k = 0; k < n && !r; k++) {
		uint64_t left = k, at = 0, stride = 1;

		for (unsigned i = v->rank; i-- > own;) {
			at += (b->start[i] + left % b->count[i]) * stride;
			left /= b->count[i];
			stride *= v->dims[i - own];
		}
		r = put_inner_value(v, p + at * v->value, err);
	}
	return r;
}

static int put_value_batch(struct values *v, const struct box *b, char *data,
			   struct error *err)
{
	uint64_t n = box_elements(b, v->rank - v->inner);
	int r = read_value_batch(v, b, n, data, err);

	for (uint64_t i = 0; i < n && !r; i++)
		r = put_element(v, b, data + i * v->size, err);
	hdf5_vlen_free_values();
	return r;
}

/* The next box of at most `max` elements behind *b in C order: whole along the
 * axes behind `axis`, `step` along it, one along those before. */
static bool next_value_batch(const struct box *all, unsigned axis,
			     uint64_t step, struct box *b)
{
	uint64_t end = all->start[axis] + all->count[axis];

	b->start[axis] += b->count[axis];
	for (unsigned i = axis; b->start[i] == all->start[i] + all->count[i];) {
		if (i == 0)
			return false;
		b->start[i] = all->start[i];
		b->start[--i]++;
	}
	b->count[axis] = min_u64(step, end - b->start[axis]);
	return true;
}

static int put_value_batches(struct values *v, const struct box *all,
			     struct error *err)
{
	uint64_t max = min_u64(BATCH_ELEMENTS, BATCH_BYTES / v->size);
	unsigned own = v->rank - v->inner, axis = own;
	uint64_t inner = 1, step = 1, n = box_elements(all, own);
	cleanup_free char *data = NULL;
	struct box b = *all;
	int r;

	if (n == 0)
		return 0;
	max = min_u64(max_u64(max, 1), n);
	data = malloc(max * v->size);
	if (!data)
		return error_no_memory(err, "a batch of values");
	if (!own)
		return put_value_batch(v, all, data, err);
	/* Axes that fit whole, from the last one; then steps of one more. */
	while (axis > 1 && all->count[axis - 1] <= max / inner)
		inner *= all->count[--axis];
	axis--;
	step = max_u64(min_u64(max / inner, all->count[axis]), 1);
	for (unsigned i = 0; i < axis; i++)
		b.count[i] = 1;
	b.count[axis] = step;
	do
		r = put_value_batch(v, &b, data, err);
	while (!r && next_value_batch(all, axis, step, &b));
	return r;
}

/* ---- the dataset --------------------------------------------------------- */

/* The library would read other files by itself, and what is missing there as
 * fill values. */
static int check_storage(hid_t dset, struct error *err)
{
	hid_t dcpl = hdf5_vlen_create_plist(dset);
	H5D_layout_t layout = dcpl < 0 ? H5D_LAYOUT_ERROR : H5Pget_layout(dcpl);
	int external =
		layout == H5D_CONTIGUOUS ? H5Pget_external_count(dcpl) : 0;

	if (dcpl >= 0)
		H5Pclose(dcpl);
	if (layout == H5D_LAYOUT_ERROR || external < 0)
		return error_set(err, -EIO, "its layout cannot be read");
	if (layout == H5D_VIRTUAL)
		return error_set(
			err, -EIO,
			"it has become a virtual dataset: mount again");
	if (external > 0)
		return error_set(err, -ENOTSUP,
				 "text in external raw files is not supported");
	return 0;
}

static int check_shape(struct values *v, const struct box *b, struct error *err)
{
	hsize_t dims[RANK_MAX] = {0};
	unsigned own = v->rank - v->inner;
	bool fits =
		v->space >= 0 && v->rank <= RANK_MAX && v->inner <= v->rank &&
		H5Sget_simple_extent_type(v->space) != H5S_NULL &&
		H5Sget_simple_extent_ndims(v->space) == (int)own &&
		(!own || H5Sget_simple_extent_dims(v->space, dims, NULL) >= 0);

	for (unsigned i = 0; fits && i < v->rank; i++) {
		uint64_t n = i < own ? dims[i] : v->dims[i - own];

		fits = b->start[i] <= n && b->count[i] <= n - b->start[i];
	}
	return fits ? 0
		    : error_set(err, -EIO,
				"it has another shape than when it was "
				"mounted: mount again");
}

/* Limit what filters may make of a chunk. */
static void limit_filters(hid_t dset, const struct hdf5_type *type)
{
	hid_t dcpl = hdf5_vlen_create_plist(dset);
	hsize_t chunk[RANK_MAX];
	uint64_t bytes = type->stored.size;
	int rank = dcpl >= 0 && H5Pget_layout(dcpl) == H5D_CHUNKED
			   ? H5Pget_chunk(dcpl, RANK_MAX, chunk)
			   : 0;

	for (unsigned i = 0; i < type->rank; i++)
		if (mul_overflows(bytes, type->dims[i], &bytes))
			bytes = 0;
	for (int i = 0; i < rank && i < RANK_MAX; i++)
		if (mul_overflows(bytes, chunk[i], &bytes))
			bytes = 0;
	/* Allow 64 bytes more than the data: a filter may append a checksum. */
	hdf5_filters_limit(rank > 0 && bytes <= UINT32_MAX ? bytes + 64 : 0);
	if (dcpl >= 0)
		H5Pclose(dcpl);
}

/* Return true if the stored type fits the served one. */
static bool learn_leaf(struct values *v)
{
	const struct dtype_field *f = v->as->fields;
	H5T_class_t class = H5Tget_class(v->leaf);

	switch (v->as->kind) {
	case DTYPE_STRING:
		v->vlen = H5Tis_variable_str(v->leaf) > 0;
		v->pad = H5Tget_strpad(v->leaf);
		return class == H5T_STRING;
	case DTYPE_RAGGED:
		v->each = f->type.size;
		for (unsigned i = 0; i < f->rank; i++)
			v->each *= f->dims[i];
		return class == H5T_VLEN;
	case DTYPE_TEXT:
		return true;
	default:
		return false;
	}
}

static int open_values(struct values *v, const char *member, struct error *err)
{
	hid_t type = H5Dget_type(v->dset);
	bool fits = false;

	v->space = H5Dget_space(v->dset);
	if (type >= 0) {
		v->leaf = hdf5_type_member(type, member, &v->inner, v->dims);
		fits = v->leaf >= 0 && learn_leaf(v);
		if (fits)
			v->memory = hdf5_type_memory(type, v->as, member);
		H5Tclose(type);
	}
	if (!fits || v->memory < 0)
		return error_set(err, -EIO,
				 "it has another type than when it was "
				 "mounted: mount again");
	v->size = v->value = H5Tget_size(v->memory);
	for (unsigned i = 0; i < v->inner; i++)
		v->value /= max_u64(v->dims[i], 1);
	if (v->value == 0)
		return error_set(err, -EIO, "its elements have no size");
	if (v->as->kind != DTYPE_TEXT)
		return 0;
	v->paths = hdf5_paths_new(v->dset);
	if (!v->paths)
		return error_no_memory(err, "the paths of objects");
	if (H5Tget_class(v->leaf) == H5T_REFERENCE)
		return 0;
	return hdf5_json_new(v->leaf, v->paths, &v->json, err);
}

static void close_values(struct values *v)
{
	hdf5_json_free(v->json);
	hdf5_paths_free(v->paths);
	if (v->leaf >= 0)
		H5Tclose(v->leaf);
	if (v->memory >= 0)
		H5Tclose(v->memory);
	if (v->space >= 0)
		H5Sclose(v->space);
}

static int read_box_values(const struct hdf5_place *at, struct values *v,
			   const struct box *b, const char *member,
			   struct error *err)
{
	struct hdf5_description d;
	int r;

	if (H5Iget_type(v->dset) != H5I_DATASET)
		return error_set(err, -EIO, "it is not a dataset");
	r = check_storage(v->dset, err);
	if (!r)
		r = open_values(v, member, err);
	if (!r)
		r = check_shape(v, b, err);
	if (!r)
		r = hdf5_describe(at->s, v->dset, NULL, &d, err);
	if (r < 0)
		return r;
	r = hdf5_fetch_check(at, v->dset, &d, b, err);
	if (!r) {
		limit_filters(v->dset, &d.type);
		hdf5_filters_element(hdf5_type_bytes(&d.type));
		hdf5_vlen_begin(v->dset, VALUES_MAX);
		r = put_value_batches(v, b, err);
		hdf5_vlen_end();
		hdf5_filters_limit(0);
		hdf5_filters_element(0);
	}
	hdf5_description_free(&d);
	return r;
}

int hdf5_values_here(const struct hdf5_place *at, const struct box *b,
		     unsigned rank, const struct dtype *as, const char *member,
		     hdf5_put *put, void *ctx, struct error *err)
{
	struct values v = {.as = as,
			   .put = put,
			   .ctx = ctx,
			   .memory = H5I_INVALID_HID,
			   .space = H5I_INVALID_HID,
			   .leaf = H5I_INVALID_HID,
			   .rank = rank};
	struct hdf5_opened o;
	int r = hdf5_place_open(at, &o, err);

	if (r < 0)
		return r;
	v.dset = o.object;
	r = read_box_values(at, &v, b, member, err);
	if (r < 0)
		hdf5_place_prefix(at, err);
	close_values(&v);
	hdf5_place_close(&o);
	return r;
}
