/* SPDX-License-Identifier: BSD-2-Clause */
/* Copy elements one by one: strings, sequences, references. */

/*
 * Elements are copied a chunk at a time (or several small ones), or some thousand
 * elements where there are no chunks.  A box whose strings take too much memory is
 * halved.  A box of zeros, which is what unwritten elements read as, is not written.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "extent/file.h"
#include "formats/hdf5/chunk/chunk.h"
#include "formats/hdf5/dataset/description.h"
#include "formats/hdf5/file/driver.h"
#include "formats/hdf5/file/heap.h"
#include "formats/hdf5/file/vlen.h"
#include "tensors/refer.h"
#include "tensors/rest_private.h"

#define ELEMENTS 4096  /* elements at a time */
#define MEMORY_SHARE 4 /* share of the memory for what values point to */
#define DATA_SHARE 16  /* share of the memory for elements */
/* Boxes, at most: a file of a few KiB can announce any number of chunks. */
#define BOXES_MOST (UINT64_C(1) << 26)

struct filling {
	struct rest *r;
	const char *path;
	hid_t from, to, space, type; /* type: in memory */
	struct hdf5_place at;
	struct hdf5_description d;
	unsigned rank;
	size_t elem;
	uint64_t shape[RANK_MAX];
	bool filled; /* it has a user-defined fill value */
	bool early;  /* storage is allocated at creation */
	/* A box is a chunk, because an unwritten chunk cannot be read. */
	bool by_chunk;
	bool refers;
	struct refer refer;
	struct error err; /* failure of a value */
};

/* ---- one box ------------------------------------------------------------- */

static uint64_t box_size(const struct filling *f, const struct box *b)
{
	uint64_t n = 1;

	for (unsigned i = 0; i < f->rank; i++)
		n *= b->count[i];
	return n;
}

static bool filling_is_zero(const unsigned char *data, size_t n)
{
	return !n || (!data[0] && !memcmp(data, data + 1, n - 1));
}

static int filling_fail(struct filling *f, const char *what)
{
	char why[256];

	hdf5_why(why, sizeof why);
	if (hdf5_vlen_failed(&f->err) < 0)
		return f->err.code;
	return error_set(&f->err, -EIO, "%s: %s", what, why);
}

static int filling_write_box(struct filling *f, hid_t memory, hid_t dxpl,
			     const void *data)
{
	herr_t done;

	hdf5_vlen_swap_files();
	done = H5Dwrite(f->to, f->type, memory, f->space, dxpl, data);
	hdf5_vlen_swap_files();
	return done < 0 ? filling_fail(f, "its values cannot be written") : 0;
}

/* Set *absent if a box is a chunk that was never written.  libhdf5 1.10 cannot read it if
 * the fill value has a variable length, and it need not be copied. */
static int filling_is_absent(struct filling *f, const struct box *b,
			     bool *absent)
{
	struct hdf5_location where;
	hsize_t at[RANK_MAX];
	int r;

	*absent = false;
	if (!f->by_chunk)
		return 0;
	for (unsigned i = 0; i < f->rank; i++)
		at[i] = b->start[i];
	r = hdf5_locate(f->from, at, &where, &f->err);
	*absent = r == 0 && where.pos == HDF5_ABSENT;
	return r == -ENOTSUP ? 0 : r;
}

static int filling_copy_box(struct filling *f, const struct box *b, void *data)
{
	hsize_t n = box_size(f, b), start[RANK_MAX], count[RANK_MAX];
	hid_t memory = H5Screate_simple(1, &n, NULL);
	hid_t dxpl = hdf5_vlen_transfer();
	int r = 0;

	for (unsigned i = 0; i < f->rank; i++) {
		start[i] = b->start[i];
		count[i] = b->count[i];
	}
	if (memory < 0 || dxpl < 0 ||
	    (f->rank && H5Sselect_hyperslab(f->space, H5S_SELECT_SET, start,
					    NULL, count, NULL) < 0))
		r = filling_fail(f, "it cannot be selected");
	/* Check that its chunks decode to as many bytes as H5Dread needs. */
	if (r == 0)
		r = hdf5_fetch_check(&f->at, f->from, &f->d, b, &f->err);
	memset(data, 0, n * f->elem);
	if (r == 0 &&
	    H5Dread(f->from, f->type, memory, f->space, dxpl, data) < 0)
		r = filling_fail(f, "its values cannot be read");
	if (r == 0 && f->refers && f->to >= 0)
		refer_translate(&f->refer, f->type, data, n);
	if (r == 0 && f->to >= 0 &&
	    (f->filled || !filling_is_zero(data, n * f->elem)))
		r = filling_write_box(f, memory, dxpl, data);
	hdf5_vlen_free_values();
	if (memory >= 0)
		H5Sclose(memory);
	if (dxpl >= 0)
		H5Pclose(dxpl);
	return r;
}

/* Copy a box, in halves if it is too large. */
static int copy_or_halve(struct filling *f, const struct box *b, void *data)
{
	int r = filling_copy_box(f, b, data);
	struct box half = *b;
	unsigned axis = 0;

	while (axis < f->rank && b->count[axis] < 2)
		axis++;
	if (r != -ENOTSUP || axis == f->rank)
		return r;
	half.count[axis] = b->count[axis] / 2;
	r = copy_or_halve(f, &half, data);
	half.start[axis] += half.count[axis];
	half.count[axis] = b->count[axis] - half.count[axis];
	return r < 0 ? r : copy_or_halve(f, &half, data);
}

/* ---- all boxes ------------------------------------------------------------------ */

/* Choose the shape of boxes. */
static void choose_step(const struct filling *f, uint64_t *step)
{
	uint64_t most = f->r->o->memory / DATA_SHARE / max_u64(f->elem, 1);
	uint64_t room = max_u64(min_u64(ELEMENTS, most), 1), n = 1;

	for (unsigned k = f->rank; k-- > 0;) {
		if (f->d.storage == HDF5_CHUNKED && k < f->d.own_rank)
			step[k] = min_u64(f->d.chunk[k], f->shape[k]);
		else
			step[k] = min_u64(room, f->shape[k]);
		step[k] = max_u64(step[k], 1);
		n *= step[k];
		room = step[k] >= f->shape[k] ? max_u64(room / step[k], 1) : 1;
	}
	most = min_u64(ELEMENTS, most);
	if (f->d.storage == HDF5_CHUNKED && f->rank && n < most && !f->by_chunk)
		step[0] = min_u64(step[0] * (most / n), f->shape[0]);
}

static int copy_boxes(struct filling *f)
{
	uint64_t step[RANK_MAX], most = 1, boxes = 1, bytes;
	cleanup_free void *data = NULL;
	struct box b = {{0}, {0}};
	unsigned k;
	int r = 0;

	choose_step(f, step);
	for (k = 0; k < f->rank; k++) {
		uint64_t n = div_up(f->shape[k], step[k]);

		if (mul_overflows(most, step[k], &most))
			most = UINT64_MAX;
		if (mul_overflows(boxes, n, &boxes))
			boxes = UINT64_MAX;
	}
	if (boxes > BOXES_MOST)
		return error_set(&f->err, -EFBIG,
				 "strings, sequences or references in more "
				 "than 2^26 chunks");
	if (mul_overflows(most, f->elem, &bytes) ||
	    !(data = malloc(max_u64(bytes, 1))))
		return error_set(&f->err, -ENOMEM, "there is no memory for it");
	do {
		bool absent;

		for (k = 0; k < f->rank; k++)
			b.count[k] = min_u64(step[k], f->shape[k] - b.start[k]);
		r = filling_is_absent(f, &b, &absent);
		if (r == 0 && !absent)
			r = copy_or_halve(f, &b, data);
		if (r == 0 && *f->r->o->stop)
			return error_set(f->r->err, -EINTR, "interrupted");
		for (k = f->rank; k-- > 0;) {
			b.start[k] += b.count[k];
			if (b.start[k] < f->shape[k])
				break;
			b.start[k] = 0;
		}
	} while (r == 0 && k != UINT32_MAX);
	return r;
}

/* Set up `f`.  Return 0; 1 if no elements were written; -errno. */
static int filling_prepare(struct filling *f)
{
	hid_t stored = H5Dget_type(f->from), dcpl;
	H5D_fill_value_t fill = H5D_FILL_VALUE_DEFAULT;
	H5D_alloc_time_t when = H5D_ALLOC_TIME_DEFAULT;
	hsize_t dims[RANK_MAX];
	int rank, r = 0;

	f->space = H5Dget_space(f->from);
	f->type = stored < 0 ? stored : H5Tcopy(stored);
	rank = f->space < 0 ? -1
			    : H5Sget_simple_extent_dims(f->space, dims, NULL);
	if (f->type < 0 || rank < 0 || rank > RANK_MAX)
		r = filling_fail(f, "it cannot be read");
	f->rank = r < 0 ? 0 : (unsigned)rank;
	for (unsigned i = 0; i < f->rank; i++)
		f->shape[i] = dims[i];
	f->elem = f->type < 0 ? 0 : H5Tget_size(f->type);
	f->refers = f->type >= 0 && refer_is_in(f->type);
	dcpl = hdf5_vlen_create_plist(f->from);
	if (dcpl >= 0) {
		H5Pfill_value_defined(dcpl, &fill);
		H5Pget_alloc_time(dcpl, &when);
		f->early = when == H5D_ALLOC_TIME_EARLY;
		H5Pclose(dcpl);
	}
	f->filled = fill == H5D_FILL_VALUE_USER_DEFINED;
	if (stored >= 0)
		H5Tclose(stored);
	if (r == 0)
		r = hdf5_describe(f->r->o->source, f->from, NULL, &f->d,
				  &f->err);
	f->by_chunk = f->filled && f->d.storage == HDF5_CHUNKED && r == 0 &&
		      refer_points(f->type);
	/* There are no elements, or none was written. */
	if (r == 0 && (H5Sget_simple_extent_npoints(f->space) <= 0 ||
		       H5Dget_storage_size(f->from) == 0))
		return 1;
	return r;
}

static int read_output(void *ctx, uint64_t pos, void *buf, size_t n,
		       struct error *err)
{
	const struct rest_options *o = ctx;
	ssize_t got = file_read(o->to_fd, pos, buf, n);

	if (got < 0)
		return error_errno(err, (int)got, "cannot read the output");
	return (size_t)got == n
		       ? 0
		       : error_set(err, -EIO, "the output ends too early");
}

/* Begin to copy values.  When the library allocates storage, it reads the fill value from
 * the output. */
static int begin_values(struct filling *f)
{
	const struct rest_options *o = f->r->o;
	struct hdf5_heap_file file = {.read = read_output,
				      .ctx = (void *)o,
				      .base = o->user_block,
				      .address = 8,
				      .length = 8};

	hdf5_vlen_begin(f->from, o->memory / MEMORY_SHARE);
	if (f->to < 0 || !f->filled || !refer_points(f->type))
		return 0;
	return H5Fflush(f->to, H5F_SCOPE_LOCAL) < 0 || !hdf5_vlen_output(&file)
		       ? filling_fail(f, "its fill value cannot be set")
		       : 0;
}

static void filling_begin(struct filling *f, struct rest *r, const char *path,
			  hid_t from, hid_t to)
{
	*f = (struct filling){.r = r,
			      .path = path,
			      .from = from,
			      .to = to,
			      .space = H5I_INVALID_HID,
			      .type = H5I_INVALID_HID,
			      .at = {r->o->source, r->o->file, path},
			      .refer = {from, to, rest_find_address, r, 0}};
}

static void filling_end(struct filling *f)
{
	hdf5_description_free(&f->d);
	if (f->type >= 0)
		H5Tclose(f->type);
	if (f->space >= 0)
		H5Sclose(f->space);
}

/* Read all values.  Return NULL, or the reason why that failed. */
static const char *filling_read_all(struct filling *f)
{
	int code = begin_values(f);

	if (code == 0)
		code = copy_boxes(f);
	hdf5_vlen_end();
	return code < 0 && !f->r->err->code ? f->err.text : NULL;
}

const char *rest_values_check(struct rest *r, const char *path, hid_t from,
			      char *why, size_t n)
{
	const struct pipeline_filter *lack;
	const char *said = NULL;
	struct filling f;
	int code;

	filling_begin(&f, r, path, from, H5I_INVALID_HID);
	code = filling_prepare(&f);
	lack = code == 0 && f.d.storage == HDF5_CHUNKED
		       ? pipeline_missing(&f.d.pipeline, 0)
		       : NULL;
	if (code < 0)
		said = f.err.text;
	else if (f.d.nraw)
		said = "strings, sequences or references in raw data files";
	else if (lack && !f.d.by_library)
		said = "it has a filter that is not supported";
	else if (code == 0 && pipeline_cannot_encode(&f.d.pipeline, &f.err) < 0)
		said = f.err.text;
	else if (f.filled && refer_points(f.type) && f.early)
		said = "a fill value of variable length in a dataset whose "
		       "storage is allocated when it is made";
	/* A dataset that cannot be read is not made: an empty one in its place would be
	 * wrong. */
	if (!said && code == 0)
		said = filling_read_all(&f);
	if (said)
		snprintf(why, n, "%s", said);
	filling_end(&f);
	return said ? why : NULL;
}

void rest_values(struct rest *r, const char *path, hid_t from, hid_t to)
{
	struct filling f;
	int code;

	filling_begin(&f, r, path, from, to);
	code = filling_prepare(&f);
	if (code == 0)
		code = begin_values(&f);
	if (code == 0)
		code = copy_boxes(&f);
	hdf5_vlen_end();
	if (code < 0 && !r->err->code) /* the check could read it */
		error_set(r->err, code, "%s: %s", path, f.err.text);
	if (f.refer.lost)
		rest_say(&r->found->null, path, NULL);
	filling_end(&f);
}
