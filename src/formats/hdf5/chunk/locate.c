/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the chunks of a dataset are stored: those asked for, or all of a sparse one. */
/*
 * No HDF5 file stays open between calls: each call opens the file, asks and closes it
 * under the library's lock (about 0.2 ms).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "formats/hdf5/chunk/chunk.h"
#include "formats/hdf5/file/driver.h"
#include "formats/hdf5/file/index.h"

/*
 * An old index (version 1 B-tree) has no checksum: a flipped bit in a key makes a chunk
 * look as if it had never been written, and the library would read fill values.  So a
 * chunk that is not found must be missing from the library's count as well.  `found` of
 * `n` chunks were found.  Counting walks through the index; each part is counted once.
 * In an array the library visits every place, which takes a minute for 10^8.  Arrays have
 * checksums, so large ones are not counted.
 */
#define COUNTED_MAX (UINT64_C(1) << 22)

static bool is_vast_array(const struct grid *g, hid_t dset)
{
	H5D_chunk_index_t index;

	return g->count > COUNTED_MAX &&
	       H5Dget_chunk_index_type(dset, &index) >= 0 &&
	       (index == H5D_CHUNK_IDX_FARRAY || index == H5D_CHUNK_IDX_EARRAY);
}

static int check_absent(const struct grid *g, hid_t dset, uint32_t found,
			uint32_t n, uint64_t *written, struct error *err)
{
	hsize_t have = 0;

	if (*written) {
		have = *written - 1;
	} else if (is_vast_array(g, dset)) {
		return 0;
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

static int locate_range(hid_t dset, const struct grid *g, uint64_t first,
			uint32_t n, uint64_t *written, struct location *out,
			struct error *err)
{
	uint64_t origin[RANK_MAX];
	struct hdf5_location at;
	uint32_t found = 0;

	for (uint32_t i = 0; i < n; i++) {
		int r;

		/* The axes of an array type come last and are in one chunk. */
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
	r = locate_range(o.object, g, first, n, written, out, err);
	if (r < 0)
		hdf5_place_prefix(at, err);
	hdf5_place_close(&o);
	return r;
}

/* ---- all of a sparse grid ------------------------------------------------ */

/* A grid is sparse, and its chunks are listed, if at most one place in this many has a
 * chunk. */
#define SPARSE 16

static bool index_prepare(hid_t file, hid_t dset, struct hdf5_index *x)
{
	hid_t fcpl = H5Fget_create_plist(file), space = H5Dget_space(dset);
	size_t addr = 0, len = 0;
	hsize_t base = 0;
	int rank = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);
	bool ok = rank > 0 && (unsigned)rank <= x->g->rank &&
		  H5Sget_simple_extent_dims(space, NULL, (hsize_t *)x->max) >=
			  0 &&
		  fcpl >= 0 && H5Pget_sizes(fcpl, &addr, &len) >= 0 &&
		  H5Pget_userblock(fcpl, &base) >= 0;

	/* Only addresses and lengths of 2 to 8 bytes are supported. */
	x->rank = rank > 0 ? (unsigned)rank : 0;
	x->addr_size = (unsigned)addr;
	x->len_size = (unsigned)len;
	x->base = base;
	if (space >= 0)
		H5Sclose(space);
	if (fcpl >= 0)
		H5Pclose(fcpl);
	return ok && addr >= 2 && addr <= 8 && len >= 2 && len <= 8;
}

/* Let the library count the chunks, and watch the nodes that it reads.  The file is
 * opened again for that, because the library does not read again what it has cached. */
static int index_watch(const struct hdf5_place *at, struct hdf5_index *x,
		       uint64_t *count, struct error *err)
{
	struct hdf5_opened o;
	hsize_t have = 0;
	hid_t space;
	bool ok;
	int r = hdf5_place_open(at, &o, err);

	if (r < 0)
		return r;
	ok = index_prepare(o.file, o.object, x);
	hdf5_place_close(&o);
	if (!ok)
		return -ENOTSUP;
	hdf5_index_begin(x);
	r = hdf5_place_open(at, &o, err);
	if (!r) {
		space = H5Dget_space(o.object);
		if (H5Dget_num_chunks(o.object, space, &have) < 0) {
			r = error_set(err, -EIO,
				      "the chunk index cannot be read");
			hdf5_place_prefix(at, err);
		}
		H5Sclose(space);
		hdf5_place_close(&o);
	}
	hdf5_index_end(x);
	if (!r)
		*count = have;
	return r;
}

/* Return the error for an index that contradicts itself.  One with checksums is sound
 * if libhdf5 could read it, so then our reading of it is wrong: -ENOTSUP. */
static int index_damaged(const struct hdf5_index *x, struct error *err)
{
	return x->kind != HDF5_INDEX_BTREE1
		       ? -ENOTSUP
		       : error_set(
				 err, -EBADMSG,
				 "the chunk index is damaged: it lists chunks "
				 "that cannot be found");
}

/* Check what was noted. Return 0 if the chunks can be looked up, 1 if all of them are in a
 * row without an index, -ENOTSUP if the chunks cannot be listed, -EBADMSG, -ENOMEM. */
static int index_check(const struct hdf5_index *x, uint64_t count,
		       struct error *err)
{
	if (x->no_memory)
		return error_no_memory(err, "the list of chunks");
	if (x->kind == HDF5_INDEX_NONE && count > 1 && count == x->g->count)
		return 1;
	if (x->odd || count > x->g->count / SPARSE)
		return -ENOTSUP;
	if (x->kind == HDF5_INDEX_BTREE2)
		return 0; /* its chunks are counted in the end */
	if (x->entries != count)
		return -ENOTSUP;
	return x->outside || x->twice ? index_damaged(x, err) : 0;
}

/* Look up each chunk that was noted, as readers will, and set `out` to those that
 * exist. */
static int index_confirm(const struct hdf5_place *at, struct hdf5_index *x,
			 struct written *out, uint32_t *n, struct error *err)
{
	struct hdf5_opened o;
	uint64_t origin[RANK_MAX];
	struct hdf5_location is;
	uint32_t found = 0;
	int r = hdf5_place_open(at, &o, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < x->chunks.n && !r; i++) {
		grid_origin(x->g, x->chunks.at[i], origin);
		r = hdf5_locate(o.object, (const hsize_t *)origin, &is, err);
		if (r < 0 || is.pos == HDF5_ABSENT) {
			if (!r && x->kind != HDF5_INDEX_BTREE2)
				r = index_damaged(x, err);
			continue;
		}
		out[found++] = (struct written){x->chunks.at[i],
						{is.pos, is.stored, is.mask}};
	}
	if (r < 0 && r != -ENOTSUP)
		hdf5_place_prefix(at, err);
	hdf5_place_close(&o);
	*n = found;
	return r;
}

/* List a dataset without an index, whose chunks were all allocated at once, in a row:
 * return 1, and set *out to the first.  -ENOTSUP if they are not in a row. */
static int index_row(const struct hdf5_place *at, const struct grid *g,
		     struct written *out, struct error *err)
{
	uint64_t origin[RANK_MAX], bytes, last = g->count - 1;
	struct hdf5_location a, b;
	struct hdf5_opened o;
	int r = hdf5_place_open(at, &o, err);

	if (r < 0)
		return r;
	grid_origin(g, 0, origin);
	r = hdf5_locate(o.object, (const hsize_t *)origin, &a, err);
	grid_origin(g, last, origin);
	if (!r)
		r = hdf5_locate(o.object, (const hsize_t *)origin, &b, err);
	if (r < 0)
		hdf5_place_prefix(at, err);
	hdf5_place_close(&o);
	if (r < 0)
		return r;
	if (a.stored != b.stored || a.mask || b.mask || a.pos == HDF5_ABSENT ||
	    b.pos < a.pos || mul_overflows(last, a.stored, &bytes) ||
	    b.pos - a.pos != bytes)
		return -ENOTSUP;
	*out = (struct written){0, {a.pos, a.stored, 0}};
	return 1;
}

int hdf5_list_here(const struct hdf5_place *at, const struct grid *g,
		   uint64_t *from, struct written *out, uint32_t room,
		   uint32_t *n, uint64_t *count, struct error *err)
{
	struct hdf5_index x = {.g = g, .first = *from, .room = room};
	int r;

	*count = UINT64_MAX;
	r = index_watch(at, &x, count, err);
	if (!r) {
		r = index_check(&x, *count, err);
		if (r < 0 && r != -ENOTSUP)
			hdf5_place_prefix(at, err);
	}
	if (r == 1)
		r = index_row(at, g, out, err);
	else if (!r)
		r = index_confirm(at, &x, out, n, err);
	if (!r && !x.first && !x.more && *n != *count)
		r = -ENOTSUP;
	if (!r)
		*from = x.more ? x.chunks.at[x.chunks.n - 1] + 1 : UINT64_MAX;
	vec_free(&x.chunks);
	return r;
}
