/* SPDX-License-Identifier: BSD-2-Clause */
/* Chunks of a dataset: where they are, or (through the library) what. */
/*
 * No HDF5 file stays open between calls: each opens, asks and closes under the
 * library's lock (about 0.2 ms), and bulk data comes this way only where the
 * library alone can make it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "source/hdf5.h"

/*
 * An old index (version 1 B-tree) has no checksum: a flipped key makes a chunk
 * look as if it had never been written, and the library would read fill values.
 * So a chunk that is not found must be missing from the library's count as
 * well.  `found` of `n` were; counting walks the index once a part.
 */
static int check_absent(const struct grid *g, hid_t dset, uint32_t found,
			uint32_t n, uint64_t *written, struct error *err)
{
	hsize_t have = 0;

	if (*written) {
		have = *written - 1;
	} else {
		hid_t space = H5Dget_space(dset);
		herr_t ok = H5Dget_num_chunks(dset, space, &have);

		H5Sclose(space);
		if (ok < 0)
			return error_set(err, -EIO,
					 "the chunk index cannot be read");
		*written = have + 1;
	}
	if (n == g->count ? have == found : have < g->count)
		return 0;
	return error_set(err, -EBADMSG,
			 "the chunk index is damaged: chunks that it counts "
			 "cannot be found");
}

static int locate(hid_t dset, const struct grid *g, uint64_t first, uint32_t n,
		  uint64_t *written, struct location *out, struct error *err)
{
	uint64_t origin[RANK_MAX];
	struct hdf5_location at;
	uint32_t found = 0;

	for (uint32_t i = 0; i < n; i++) {
		int r;

		/* Axes of an array type come last, in one chunk. */
		grid_origin(g, first + i, origin);
		r = hdf5_locate(dset, (const hsize_t *)origin, &at, err);
		if (r < 0)
			return r;
		out[i] = (struct location){at.pos, at.stored, at.mask};
		found += at.pos != HDF5_ABSENT;
	}
	return found < n ? check_absent(g, dset, found, n, written, err) : 0;
}

int hdf5_locate_here(const struct hdf5_place *at, const struct grid *g,
		     uint64_t first, uint32_t n, uint64_t *written,
		     struct location *out, struct error *err)
{
	struct hdf5_opened o;
	int r = hdf5_place_open(at, &o, err);

	if (r < 0)
		return r;
	r = locate(o.object, g, first, n, written, out, err);
	if (r < 0)
		hdf5_place_prefix(at, err);
	hdf5_place_close(&o);
	return r;
}

/* ---- through the library ------------------------------------------------- */

struct fetch {
	hid_t type, file_space, mem_space;
};

/* Select one chunk in the dataset (without what overhangs), and the same box in
 * a memory of the chunk's shape. */
static bool select_chunk(const struct grid *g, uint64_t chunk, unsigned rank,
			 struct fetch *f)
{
	static const hsize_t zero[RANK_MAX];
	uint64_t start[RANK_MAX], count[RANK_MAX];

	f->mem_space = rank ? H5Screate_simple((int)rank,
					       (const hsize_t *)g->chunk, NULL)
			    : H5Screate(H5S_SCALAR);
	if (f->mem_space < 0 || !rank)
		return f->mem_space >= 0;
	grid_origin(g, chunk, start);
	for (unsigned i = 0; i < rank; i++)
		count[i] = min_u64(g->chunk[i], g->shape[i] - start[i]);
	return H5Sselect_hyperslab(f->file_space, H5S_SELECT_SET,
				   (const hsize_t *)start, NULL,
				   (const hsize_t *)count, NULL) >= 0 &&
	       H5Sselect_hyperslab(f->mem_space, H5S_SELECT_SET, zero, NULL,
				   (const hsize_t *)count, NULL) >= 0;
}

/* The memory type of one element: what is stored, or `as`. */
static hid_t fetch_type(hid_t dset, const struct dtype *as, const char *member)
{
	hid_t stored = H5Dget_type(dset), out;

	if (!as || stored < 0)
		return stored;
	out = hdf5_type_memory(stored, as, member);
	H5Tclose(stored);
	return out;
}

static bool fetch(hid_t dset, const struct grid *g, uint64_t chunk,
		  const struct dtype *as, const char *member, void *out,
		  size_t size, struct fetch *f)
{
	uint64_t elements = 1, bytes;
	int rank;

	f->file_space = H5Dget_space(dset);
	rank = f->file_space < 0 ? -1
				 : H5Sget_simple_extent_ndims(f->file_space);
	f->type = fetch_type(dset, as, member);
	if (rank < 0 || (unsigned)rank > g->rank || f->type < 0 ||
	    !select_chunk(g, chunk, (unsigned)rank, f))
		return false;
	for (int i = 0; i < rank; i++)
		if (mul_overflows(elements, g->chunk[i], &elements))
			return false;
	return !mul_overflows(elements, H5Tget_size(f->type), &bytes) &&
	       bytes == size &&
	       H5Dread(dset, f->type, f->mem_space, f->file_space, H5P_DEFAULT,
		       out) >= 0;
}

int hdf5_fetch_here(const struct hdf5_place *at, const struct grid *g,
		    uint64_t chunk, const struct dtype *as, const char *member,
		    void *out, size_t size, struct error *err)
{
	struct fetch f = {-1, -1, -1};
	struct hdf5_opened o;
	char why[256];
	int r = hdf5_place_open(at, &o, err);

	if (r < 0)
		return r;
	memset(out, 0, size);
	hdf5_filters_limit(size);
	if (!fetch(o.object, g, chunk, as, member, out, size, &f)) {
		hdf5_why(why, sizeof why);
		r = error_set(err, -EIO, "%s", why);
		hdf5_place_prefix(at, err);
	}
	hdf5_filters_limit(0);
	if (f.type >= 0)
		H5Tclose(f.type);
	if (f.file_space >= 0)
		H5Sclose(f.file_space);
	if (f.mem_space >= 0)
		H5Sclose(f.mem_space);
	hdf5_place_close(&o);
	return r;
}
