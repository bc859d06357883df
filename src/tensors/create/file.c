/* SPDX-License-Identifier: BSD-2-Clause */
/* Make one part, or the main file, as libhdf5 makes them for h5py. */

/*
 * The calls are those that h5py makes for skerch, in the same order, so that the bytes
 * are equal, too: old-style groups and superblock 0, which every libhdf5 reads; no times
 * in object headers; `data` before `flags`; a heap object for each flag.
 */
#include "tensors/create/private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/hdf5/file/driver.h"
#include "formats/hdf5/type/dtype.h"
#include "pack/comp.h"
#include "tensor/dtype_parse.h"

#define FLAG_BYTES 16 /* bytes of a variable-length string in a chunk */
#define CHUNK_LIMIT ((UINT64_C(1) << 32) - 1) /* HDF5: less than 4 GiB */

/* ---- checks --------------------------------------------------------------------- */

static void create_part_chunk(const struct create_plan *p, uint64_t rows,
			      uint64_t *chunk)
{
	const struct create_args *a = p->a;

	for (unsigned i = 0; i < a->rank; i++) {
		uint64_t length = i ? a->shape[i] : rows;

		chunk[i] = a->chunked ? min_u64(a->chunk[i], length) : length;
	}
}

/* Bytes of a chunk, at most UINT64_MAX. */
static uint64_t create_chunk_bytes(const struct create_plan *p,
				   const uint64_t *chunk)
{
	uint64_t n = p->elem;

	for (unsigned i = 0; i < p->a->rank; i++)
		if (mul_overflows(n, chunk[i], &n))
			return UINT64_MAX;
	return n;
}

static int check_sizes(const struct create_plan *p, const uint64_t *chunk,
		       struct error *err)
{
	const struct create_args *a = p->a;
	uint64_t rows = create_end(p, 0), bytes = create_chunk_bytes(p, chunk);
	uint64_t all = p->elem;

	for (unsigned i = 0; i < a->rank; i++)
		if (mul_overflows(all, a->shape[i], &all) || all > INT64_MAX)
			return error_set(err, -EINVAL,
					 "the tensor would have more than 2^63 "
					 "bytes");
	if (bytes > CHUNK_LIMIT && !a->chunked)
		return error_set(
			err, -EINVAL,
			"a part of %" PRIu64
			" rows would be one chunk of %" PRIu64
			" bytes, but HDF5 chunks have less than 4 GiB: make "
			"--block smaller, or divide parts with --chunk",
			rows, bytes);
	if (bytes > CHUNK_LIMIT)
		return error_set(err, -EINVAL,
				 "a chunk would have %" PRIu64
				 " bytes, but HDF5 chunks have less than 4 "
				 "GiB: make --chunk smaller",
				 bytes);
	if (rows > CHUNK_LIMIT / FLAG_BYTES)
		return error_set(err, -EINVAL,
				 "the flags of a part of %" PRIu64
				 " rows would be a chunk of 4 GiB or more, but "
				 "HDF5 chunks have less: make --block smaller",
				 rows);
	return 0;
}

int create_check(struct create_plan *p, struct create_result *out,
		 struct error *err)
{
	struct pack_comp comp = p->a->comp;
	struct pipeline filters;
	struct dtype d;
	size_t size = 0;
	int r = dtype_parse(p->a->dtype, &d, err);

	if (r < 0)
		return r;
	r = hdf5_init(err);
	if (r < 0)
		return r;
	hdf5_lock();
	r = hdf5_type_of_numpy(p->a->dtype, &p->type, &size, err);
	hdf5_unlock();
	if (r < 0)
		return r;
	p->elem = (uint32_t)size;
	dtype_descr(&d, out->descr, sizeof out->descr);
	create_part_chunk(p, create_end(p, 0), out->chunk);
	r = check_sizes(p, out->chunk, err);
	if (r == 0 && comp.codec != PACK_AUTO)
		r = comp_pipeline(&comp, p->elem,
				  create_chunk_bytes(p, out->chunk), &filters,
				  err);
	return r;
}

/* ---- a part ---------------------------------------------------------------- */

static int create_failed(struct error *err, const char *path, const char *what)
{
	char why[400];
	int code;

	hdf5_why(why, sizeof why);
	code = hdf5_why_errno(why);
	if (code > 0)
		return error_errno(err, -code, "cannot make %s of '%s'", what,
				   path);
	return error_set(err, -EIO, "cannot make %s of '%s': %s", what, path,
			 why);
}

/* Add the filters.  Those for strings have no parameters where these depend on the chunk,
 * and no shuffle. */
static int add_filters(const struct create_plan *p, hid_t dcpl, uint64_t bytes,
		       bool strings, struct error *err)
{
	struct pack_comp comp = p->a->comp;
	struct pipeline filters;
	bool lzf = comp.codec == PACK_AUTO || comp.codec == PACK_LZF;
	int r;

	if (lzf)
		comp = (struct pack_comp){.codec = PACK_LZF};
	r = comp_pipeline(&comp, strings ? 1 : p->elem, bytes, &filters, err);
	for (unsigned i = 0; i < filters.n && r == 0; i++) {
		const struct pipeline_filter *f = &filters.filter[i];
		size_t n = strings && lzf ? 0 : f->params.n;

		if (H5Pset_filter(dcpl, (H5Z_filter_t)f->id, H5Z_FLAG_OPTIONAL,
				  n, f->params.cd) < 0)
			r = create_failed(err, f->name, "the filters");
	}
	return r;
}

static hid_t string_type(void)
{
	hid_t t = H5Tcopy(H5T_C_S1);

	H5Tset_size(t, H5T_VARIABLE);
	H5Tset_cset(t, H5T_CSET_UTF8);
	return t;
}

/* Create a chunked dataset without any chunk. */
static int create_make_dataset(const struct create_plan *p, hid_t file,
			       const char *name, hid_t type, unsigned rank,
			       const uint64_t *shape, const uint64_t *chunk,
			       uint64_t bytes, hid_t *out, struct error *err)
{
	hsize_t dims[RANK_MAX], piece[RANK_MAX];
	hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), space;
	int r;

	for (unsigned i = 0; i < rank; i++) {
		dims[i] = shape[i];
		piece[i] = chunk[i];
	}
	space = H5Screate_simple((int)rank, dims, dims);
	H5Pset_chunk(dcpl, (int)rank, piece);
	H5Pset_fill_time(dcpl, H5D_FILL_TIME_ALLOC);
	H5Pset_obj_track_times(dcpl, false);
	r = add_filters(p, dcpl, bytes, type != p->type, err);
	*out = H5I_INVALID_HID;
	if (r == 0) {
		*out = H5Dcreate2(file, name, type, space, H5P_DEFAULT, dcpl,
				  H5P_DEFAULT);
		if (*out < 0)
			r = create_failed(err, name, "the dataset");
	}
	H5Sclose(space);
	H5Pclose(dcpl);
	return r;
}

static int make_flags(const struct create_plan *p, hid_t file, uint64_t rows,
		      struct error *err)
{
	static const char word[] = CREATE_FLAG;
	hid_t type = string_type(), dset;
	const char **values = malloc(rows * sizeof *values);
	int r = create_make_dataset(p, file, CREATE_FLAGS, type, 1, &rows,
				    &rows, rows * FLAG_BYTES, &dset, err);

	if (r == 0 && !values)
		r = error_no_memory(err, "the flags of a part");
	for (uint64_t i = 0; i < rows && r == 0; i++)
		values[i] = word;
	if (r == 0 &&
	    H5Dwrite(dset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
		r = create_failed(err, CREATE_FLAGS, "the values");
	if (dset >= 0 && H5Dclose(dset) < 0 && r == 0)
		r = create_failed(err, CREATE_FLAGS, "the dataset");
	H5Tclose(type);
	free(values);
	return r;
}

static int make_part(const struct create_plan *p, uint64_t rows, hid_t file,
		     struct error *err)
{
	const struct create_args *a = p->a;
	uint64_t shape[RANK_MAX], chunk[RANK_MAX];
	hid_t dset;
	int r;

	memcpy(shape, a->shape, sizeof shape);
	shape[0] = rows;
	create_part_chunk(p, rows, chunk);
	r = create_make_dataset(p, file, CREATE_DATA, p->type, a->rank, shape,
				chunk, create_chunk_bytes(p, chunk), &dset,
				err);
	if (r == 0) {
		H5Dclose(dset);
		r = make_flags(p, file, rows, err);
	}
	return r;
}

/* ---- the main file --------------------------------------------------------- */

/* Copy a name for a mapping, where it is a pattern: %% stands for %. */
static void mapping_name(const char *name, char *buf)
{
	do {
		if (*name == '%')
			*buf++ = '%';
		*buf++ = *name;
	} while (*name++);
}

static int map_parts(const struct create_plan *p, const char *dataset,
		     hid_t dcpl, hid_t space, unsigned rank, struct error *err)
{
	size_t room = create_name_length(p) + 1;
	cleanup_free char *name = malloc(room), *source = malloc(2 * room);
	int r = name && source ? 0 : error_no_memory(err, "the names of parts");

	for (uint64_t i = 0; i < p->parts && r == 0; i++) {
		hsize_t start[RANK_MAX] = {create_begin(p, i)}, one[RANK_MAX];
		hsize_t block[RANK_MAX];
		hid_t from;

		for (unsigned k = 0; k < rank; k++) {
			one[k] = 1;
			block[k] = p->a->shape[k];
		}
		block[0] = create_end(p, i) - create_begin(p, i);
		create_part_name(p, i, name, room);
		mapping_name(name, source);
		from = H5Screate_simple((int)rank, block, NULL);
		if (H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, one,
					block) < 0 ||
		    H5Pset_virtual(dcpl, space, source, dataset, from) < 0)
			r = create_failed(err, dataset, "the mappings");
		H5Sclose(from);
		if (*p->a->stop)
			r = error_set(err, -EINTR, "interrupted");
	}
	return r;
}

static int make_virtual(const struct create_plan *p, hid_t file,
			const char *name, hid_t type, unsigned rank,
			struct error *err)
{
	hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), space, whole, dset;
	hsize_t dims[RANK_MAX];
	int r;

	for (unsigned i = 0; i < rank; i++)
		dims[i] = p->a->shape[i];
	space = H5Screate_simple((int)rank, dims, NULL);
	whole = H5Scopy(space);
	H5Pset_obj_track_times(dcpl, false);
	r = map_parts(p, name, dcpl, space, rank, err);
	if (r == 0) {
		dset = H5Dcreate2(file, name, type, whole, H5P_DEFAULT, dcpl,
				  H5P_DEFAULT);
		if (dset < 0 || H5Dclose(dset) < 0)
			r = create_failed(err, name, "the dataset");
	}
	H5Sclose(whole);
	H5Sclose(space);
	H5Pclose(dcpl);
	return r;
}

static int make_main(const struct create_plan *p, uint64_t rows, hid_t file,
		     struct error *err)
{
	hid_t type = string_type();
	int r = make_virtual(p, file, CREATE_DATA, p->type, p->a->rank, err);

	(void)rows;
	if (r == 0)
		r = make_virtual(p, file, CREATE_FLAGS, type, 1, err);
	H5Tclose(type);
	return r;
}

/* ---- a file ----------------------------------------------------------------- */

typedef int make_fn(const struct create_plan *p, uint64_t rows, hid_t file,
		    struct error *err);

static int create_make_file(const struct create_plan *p, const char *path,
			    make_fn *make, uint64_t rows, struct error *err)
{
	hid_t fapl, file;
	int r;

	hdf5_lock();
	fapl = H5Pcreate(H5P_FILE_ACCESS);
	H5Pset_fclose_degree(fapl, H5F_CLOSE_STRONG);
#if H5_VERSION_GE(1, 10, 7)
	/* No other process knows the file yet, and not every file system has locks. */
	H5Pset_file_locking(fapl, false, true);
#endif
	file = H5Fcreate(path, H5F_ACC_EXCL, H5P_DEFAULT, fapl);
	r = file < 0 ? create_failed(err, path, "the file")
		     : make(p, rows, file, err);
	if (file >= 0 && H5Fclose(file) < 0 && r == 0)
		r = create_failed(err, path, "the file");
	H5Pclose(fapl);
	hdf5_unlock();
	return r;
}

int create_part(const struct create_plan *p, uint64_t part, const char *path,
		struct error *err)
{
	return create_make_file(p, path, make_part,
				create_end(p, part) - create_begin(p, part),
				err);
}

int create_main(const struct create_plan *p, const char *path,
		struct error *err)
{
	return create_make_file(p, path, make_main, p->a->shape[0], err);
}
