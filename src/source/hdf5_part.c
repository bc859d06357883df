/* SPDX-License-Identifier: BSD-2-Clause */
/* One part of a tensor: open it, learn its layout, locate its chunks. */
/*
 * No HDF5 file stays open between calls: each opens, asks and closes under the
 * library's lock (about 0.2 ms), and bulk data never comes this way.
 */
#include "source/hdf5.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"

/* ---- a part, opened ------------------------------------------------------ */

void hdf5_part_close(struct hdf5_opened *o)
{
	if (o->dset >= 0)
		H5Dclose(o->dset);
	if (o->file >= 0)
		H5Fclose(o->file);
	hdf5_unlock();
}

/* Takes the lock and keeps it until part_close; not when it fails. */
int hdf5_part_open(struct tensor *t, uint32_t p, struct hdf5_opened *o,
		   struct error *err)
{
	const struct part *part = &t->parts[p];
	char why[256];
	int r;

	o->file = o->dset = -1;
	hdf5_lock();
	r = hdf5_open(t->handles, part->file, &o->file, err);
	if (r < 0) {
		o->file = -1;
		hdf5_part_close(o);
		return r;
	}
	o->dset = H5Dopen2(o->file, part->dataset, H5P_DEFAULT);
	if (o->dset >= 0)
		return 0;
	hdf5_why(why, sizeof why);
	r = error_set(err, -EIO, "%s: dataset '%s' cannot be opened: %s",
		      handles_path(t->handles, part->file), part->dataset, why);
	hdf5_part_close(o);
	return r;
}

int hdf5_part_check(struct tensor *t, uint32_t p, hid_t dset, struct error *err)
{
	const struct part *part = &t->parts[p];
	hid_t space = H5Dget_space(dset), type = H5Dget_type(dset);
	hsize_t dims[RANK_MAX] = {0};
	struct dtype d = {.kind = DTYPE_OTHER};
	char is[80], wanted[80];
	bool fits =
		space >= 0 && H5Sget_simple_extent_ndims(space) == (int)t->rank;

	if (fits)
		H5Sget_simple_extent_dims(space, dims, NULL);
	for (unsigned i = 0; fits && i < t->rank; i++) {
		uint64_t want = i ? t->shape[i] : part->end - part->begin;
		uint64_t from = part->origin ? part->origin[i] : 0;

		fits = part->origin ? dims[i] >= from && dims[i] - from >= want
				    : dims[i] == want;
	}
	hdf5_type_read(type, &d);
	if (space >= 0)
		H5Sclose(space);
	H5Tclose(type);
	if (!fits)
		return error_set(err, -EIO,
				 "%s: dataset '%s' has not the shape that the "
				 "main file maps",
				 handles_path(t->handles, part->file),
				 part->dataset);
	if (dtype_equal(&d, &t->stored) ||
	    (d.kind == DTYPE_STRING && t->stored.kind == DTYPE_STRING))
		return 0;
	dtype_descr(&d, is, sizeof is);
	dtype_descr(&t->stored, wanted, sizeof wanted);
	return error_set(err, -EIO,
			 "%s: dataset '%s' is %s where the main file maps %s",
			 handles_path(t->handles, part->file), part->dataset,
			 is, wanted);
}

int hdf5_part_learn(struct tensor *t, uint32_t p, struct layout **out,
		    struct error *err)
{
	const struct part *part = &t->parts[p];
	struct hdf5_opened o;
	int r = hdf5_part_open(t, p, &o, err);

	if (r < 0)
		return r;
	r = hdf5_part_check(t, p, o.dset, err);
	if (!r) {
		r = hdf5_layout_read(((struct hdf5_tensor *)t)->source, t,
				     o.dset, part->file, out, err);
		if (r < 0)
			error_prefix(err, "%s: dataset '%s': ",
				     handles_path(t->handles, part->file),
				     part->dataset);
		else
			(*out)->origin = part->origin;
	}
	hdf5_part_close(&o);
	return r;
}

/* ---- chunks -------------------------------------------------------------- */

/*
 * An old index (version 1 B-tree) has no checksum: a flipped key makes a chunk
 * look as if it had never been written, and the library would read fill values.
 * So a chunk that is not found must be missing from the library's count as
 * well.  `found` of `n` were; counting walks the index once a part.
 */
static int check_absent(struct tensor *t, uint32_t p, const struct layout *l,
			hid_t dset, uint32_t found, uint32_t n,
			struct error *err)
{
	uint64_t count = atomic_load(&t->parts[p].written);
	hsize_t have = 0;

	if (count) {
		have = count - 1;
	} else {
		hid_t space = H5Dget_space(dset);
		herr_t ok = H5Dget_num_chunks(dset, space, &have);

		H5Sclose(space);
		if (ok < 0)
			return error_set(err, -EIO,
					 "%s: the chunk index of '%s' cannot "
					 "be read",
					 handles_path(t->handles, l->file),
					 t->parts[p].dataset);
		atomic_store(&t->parts[p].written, have + 1);
	}
	if (n == l->grid->count ? have == found : have < l->grid->count)
		return 0;
	return error_set(err, -EBADMSG,
			 "%s: the chunk index of '%s' is damaged: chunks that "
			 "it counts cannot be found",
			 handles_path(t->handles, l->file),
			 t->parts[p].dataset);
}

int hdf5_part_locate(struct tensor *t, uint32_t p, const struct layout *l,
		     uint64_t first, uint32_t n, struct location *out,
		     struct error *err)
{
	uint64_t origin[RANK_MAX];
	struct hdf5_location at;
	uint32_t found = 0;
	struct hdf5_opened o;
	int r = hdf5_part_open(t, p, &o, err);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < n && !r; i++) {
		grid_origin(l->grid, first + i, origin);
		r = hdf5_locate(o.dset, (const hsize_t *)origin, &at, err);
		if (r < 0) {
			error_prefix(err,
				     "%s: ", handles_path(t->handles, l->file));
			break;
		}
		out[i] = (struct location){at.pos, at.stored, at.mask};
		found += at.pos != HDF5_ABSENT;
	}
	if (!r && found < n)
		r = check_absent(t, p, l, o.dset, found, n, err);
	hdf5_part_close(&o);
	return r;
}

/* Select one chunk in the dataset (without what overhangs), and the same box in
 * a memory of the chunk's shape. */
static bool select_chunk(const struct grid *g, uint64_t chunk, hid_t file_space,
			 hid_t mem_space)
{
	static const hsize_t zero[RANK_MAX];
	uint64_t start[RANK_MAX], count[RANK_MAX];

	if (!g->rank)
		return true;
	grid_origin(g, chunk, start);
	for (unsigned i = 0; i < g->rank; i++)
		count[i] = min_u64(g->chunk[i], g->shape[i] - start[i]);
	return H5Sselect_hyperslab(file_space, H5S_SELECT_SET,
				   (const hsize_t *)start, NULL,
				   (const hsize_t *)count, NULL) >= 0 &&
	       H5Sselect_hyperslab(mem_space, H5S_SELECT_SET, zero, NULL,
				   (const hsize_t *)count, NULL) >= 0;
}

static bool read_chunk(hid_t dset, hid_t type, const struct layout *l,
		       uint64_t chunk, void *out)
{
	const struct grid *g = l->grid;
	hid_t file_space = H5Dget_space(dset);
	hid_t mem_space =
		g->rank ? H5Screate_simple((int)g->rank,
					   (const hsize_t *)g->chunk, NULL)
			: H5Screate(H5S_SCALAR);
	bool ok;

	ok = file_space >= 0 && mem_space >= 0 &&
	     select_chunk(g, chunk, file_space, mem_space) &&
	     H5Dread(dset, type, mem_space, file_space, H5P_DEFAULT, out) >= 0;
	if (file_space >= 0)
		H5Sclose(file_space);
	if (mem_space >= 0)
		H5Sclose(mem_space);
	return ok;
}

/* Compact data, a few KiB in the object header; or any chunk, where the library
 * does not let us find it. */
int hdf5_part_fetch(struct tensor *t, uint32_t p, const struct layout *l,
		    uint64_t chunk, void *out, size_t size, struct error *err)
{
	struct hdf5_opened o;
	char why[256];
	hid_t type;
	int r = hdf5_part_open(t, p, &o, err);

	if (r < 0)
		return r;
	memset(out, 0, size);
	type = H5Dget_type(o.dset);
	hdf5_filters_limit(size);
	if (size != l->grid->chunk_bytes ||
	    H5Tget_size(type) != t->stored.size ||
	    !read_chunk(o.dset, type, l, chunk, out)) {
		hdf5_why(why, sizeof why);
		r = error_set(err, -EIO, "%s: dataset '%s': %s",
			      handles_path(t->handles, t->parts[p].file),
			      t->parts[p].dataset, why);
	}
	hdf5_filters_limit(0);
	H5Tclose(type);
	hdf5_part_close(&o);
	return r;
}
