/* SPDX-License-Identifier: BSD-2-Clause */
/* Chunks whose elements libhdf5 converts, and those that only it can decode. */

/*
 * H5Dread could do both.  But it takes a chunk that decodes to less than its full size
 * for complete, and its n-bit and scale-offset filters read beyond the end of a short
 * one.  So our code undoes the filters that it has, and the library converts the result.
 * H5Dread reads chunks with a filter that only the library has, and those that were never
 * written.  It also reads values of text; the length of their chunks is checked before.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "extent/chunk.h"
#include "formats/hdf5/chunk/chunk.h"
#include "formats/hdf5/file/driver.h"
#include "formats/hdf5/file/vlen.h"

/* ---- by our decoders ----------------------------------------------------- */

/* Can our code decode the chunks of the dataset? */
static bool is_decoded(const struct hdf5_description *d)
{
	return d->storage == HDF5_CHUNKED && hdf5_driver_ok() &&
	       !d->by_library && !pipeline_missing(&d->pipeline, 0);
}

/* Decode the chunk whose first element is at `origin` into *out (malloc'ed, `size`
 * bytes), or set *out to NULL if the chunk was never written. */
static int fetch_decode_chunk(const struct hdf5_place *at, hid_t dset,
			      const struct hdf5_description *d,
			      const uint64_t *origin, uint64_t size, void **out,
			      struct error *err)
{
	struct chunk c = {.state = CHUNK_STORED,
			  .file = at->file,
			  .size = size,
			  .pipeline = d->pipeline.n ? &d->pipeline : NULL};
	cleanup_free void *bytes = NULL;
	struct hdf5_location where;
	int r = hdf5_locate(dset, (const hsize_t *)origin, &where, err);

	*out = NULL;
	if (r < 0 || where.pos == HDF5_ABSENT)
		return r;
	c.pos = where.pos;
	c.stored = where.stored;
	c.skip_mask = where.mask;
	for (unsigned i = 0; i < d->own_rank; i++)
		if (d->raw_edges && d->shape[i] - origin[i] < d->chunk[i])
			c.skip_mask = UINT32_MAX;
	bytes = malloc(size);
	if (!bytes)
		return error_no_memory(err, "a decoded chunk");
	r = chunk_load(at->s->handles, &c, bytes, err);
	if (!r)
		*out = steal_pointer(&bytes);
	return r;
}

/* Return the number of elements of a chunk, or 0 if it overflows. */
static uint64_t chunk_elements(const struct hdf5_description *d)
{
	uint64_t n = 1;

	for (unsigned i = 0; i < d->own_rank; i++)
		if (mul_overflows(n, d->chunk[i], &n))
			return 0;
	return n;
}

/* Set *bytes to the size of a chunk without filters, as stored.  Return false if it
 * overflows. */
static bool chunk_stored_bytes(const struct hdf5_description *d,
			       uint64_t *bytes)
{
	uint64_t n = chunk_elements(d);

	for (unsigned i = 0; i < d->type.rank; i++)
		if (mul_overflows(n, d->type.dims[i], &n))
			n = 0;
	return n && !mul_overflows(n, d->type.stored.size, bytes);
}

/* Go to the next chunk of box `b` in C order.  Return false behind the last one. */
static bool fetch_next_chunk(const struct hdf5_description *d,
			     const struct box *b, uint64_t *origin)
{
	for (unsigned i = d->own_rank; i-- > 0;) {
		origin[i] += d->chunk[i];
		if (origin[i] < b->start[i] + b->count[i])
			return true;
		origin[i] = b->start[i] - b->start[i] % d->chunk[i];
	}
	return false;
}

int hdf5_fetch_check(const struct hdf5_place *at, hid_t dset,
		     const struct hdf5_description *d, const struct box *b,
		     struct error *err)
{
	uint64_t origin[RANK_MAX], n;
	int r = 0;

	if (!is_decoded(d) || !d->pipeline.n || !box_elements(b, d->own_rank))
		return 0;
	if (!chunk_stored_bytes(d, &n))
		return error_set(err, -EIO, "its chunks are too large");
	for (unsigned i = 0; i < d->own_rank; i++)
		origin[i] = b->start[i] - b->start[i] % d->chunk[i];
	do {
		cleanup_free void *bytes = NULL;

		r = fetch_decode_chunk(at, dset, d, origin, n, &bytes, err);
	} while (!r && fetch_next_chunk(d, b, origin));
	return r;
}

static int fetch_convert(hid_t from, hid_t to, uint64_t n, const void *bytes,
			 void *out, size_t size, struct error *err)
{
	uint64_t stored = n * H5Tget_size(from), room = max_u64(stored, size);
	cleanup_free void *work = malloc(room);
	cleanup_free void *below = calloc(1, room);

	if (!work || !below)
		return error_no_memory(err, "converted elements");
	memcpy(work, bytes, stored);
	if (H5Tconvert(from, to, n, work, below, H5P_DEFAULT) < 0)
		return error_set(err, -EIO,
				 "libhdf5 cannot convert its elements");
	memcpy(out, work, size);
	return 0;
}

/* Read a chunk by our decoders, and convert it.  Return 1 if H5Dread has to read it. */
static int fetch_decoded(const struct hdf5_place *at, hid_t dset,
			 const struct hdf5_description *d, const struct grid *g,
			 uint64_t chunk, const struct dtype *as,
			 const char *member, void *out, size_t size,
			 struct error *err)
{
	hid_t from = H5Dget_type(dset);
	hid_t to = as && from >= 0 ? hdf5_type_memory(from, as, member) : -1;
	uint64_t origin[RANK_MAX], n = chunk_elements(d), stored, served;
	cleanup_free void *bytes = NULL;
	int r = 1;

	/* Types with parts of variable length have another size in memory. */
	if (to < 0 || !is_decoded(d) || !dtype_is_binary(&d->type.served) ||
	    d->own_rank > g->rank ||
	    memcmp(d->chunk, g->chunk, d->own_rank * sizeof *d->chunk) || !n ||
	    mul_overflows(n, H5Tget_size(from), &stored) ||
	    mul_overflows(n, H5Tget_size(to), &served) || served != size)
		goto out;
	grid_origin(g, chunk, origin);
	r = fetch_decode_chunk(at, dset, d, origin, stored, &bytes, err);
	if (!r)
		r = bytes ? fetch_convert(from, to, n, bytes, out, size, err)
			  : 1;
out:
	if (from >= 0)
		H5Tclose(from);
	if (to >= 0)
		H5Tclose(to);
	return r;
}

/* ---- by H5Dread ---------------------------------------------------------- */

struct fetch {
	hid_t type, file_space, mem_space;
};

/* Select one chunk in the dataset (cut off at the dataset's edge), and the same box in
 * memory of the chunk's shape. */
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

/* Return the memory type of one element: the stored type, or that for `as`. */
static hid_t fetch_type(hid_t dset, const struct dtype *as, const char *member)
{
	hid_t stored = H5Dget_type(dset), out;

	if (!as || stored < 0)
		return stored;
	out = hdf5_type_memory(stored, as, member);
	H5Tclose(stored);
	return out;
}

static bool fetch_elements(hid_t dset, const struct grid *g, uint64_t chunk,
			   const struct dtype *as, const char *member,
			   void *out, size_t size, struct fetch *f)
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

/* Read only the lengths of sequences.  The result for each looks as in a file: its
 * length and, in place of the address, whether it has items. */
static bool fetch_lengths(hid_t dset, const struct grid *g, uint64_t chunk,
			  const struct dtype *as, const char *member,
			  unsigned char *out, size_t size, struct fetch *f)
{
	size_t n = as->size >= 8 ? size / as->size : 0;
	cleanup_free hvl_t *s = calloc(n, sizeof *s);
	bool ok;

	if (!n || !s)
		return false;
	hdf5_vlen_begin_lengths();
	ok = fetch_elements(dset, g, chunk, as, member, s, n * sizeof *s, f);
	hdf5_vlen_end();
	for (size_t i = 0; i < n && ok; i++) {
		store_le32(out + i * as->size, (uint32_t)s[i].len);
		out[i * as->size + 4] = s[i].len > 0;
	}
	return ok;
}

/* Return the most bytes that filters may make of a chunk; 64 bytes more leave room for
 * a checksum. */
static size_t filters_limit(const struct hdf5_description *d, size_t size)
{
	uint64_t bytes;

	if (d->storage == HDF5_CHUNKED && chunk_stored_bytes(d, &bytes))
		return bytes <= UINT32_MAX ? (size_t)bytes + 64 : 0;
	return size;
}

static int fetch_read(hid_t dset, const struct hdf5_description *d,
		      const struct grid *g, uint64_t chunk,
		      const struct dtype *as, const char *member, void *out,
		      size_t size, struct error *err)
{
	struct fetch f = {-1, -1, -1};
	char why[256];
	bool ok;
	int r = 0;

	memset(out, 0, size);
	hdf5_filters_limit(filters_limit(d, size));
	hdf5_filters_element(hdf5_type_bytes(&d->type));
	ok = as && as->kind == DTYPE_RAGGED
		     ? fetch_lengths(dset, g, chunk, as, member, out, size, &f)
		     : fetch_elements(dset, g, chunk, as, member, out, size,
				      &f);
	if (!ok && !d->by_library)
		r = pipeline_lacks(&d->pipeline, err);
	if (!ok && !r) {
		hdf5_why(why, sizeof why);
		r = error_set(err, -EIO, "%s", why);
	}
	hdf5_filters_limit(0);
	hdf5_filters_element(0);
	if (f.type >= 0)
		H5Tclose(f.type);
	if (f.file_space >= 0)
		H5Sclose(f.file_space);
	if (f.mem_space >= 0)
		H5Sclose(f.mem_space);
	return r;
}

int hdf5_fetch_here(const struct hdf5_place *at, const struct grid *g,
		    uint64_t chunk, const struct dtype *as, const char *member,
		    void *out, size_t size, struct error *err)
{
	struct hdf5_description d;
	struct hdf5_opened o;
	int r = hdf5_place_open(at, &o, err);

	if (r < 0)
		return r;
	r = hdf5_describe(at->s, o.object, NULL, &d, err);
	if (!r) {
		r = fetch_decoded(at, o.object, &d, g, chunk, as, member, out,
				  size, err);
		if (r == 1)
			r = fetch_read(o.object, &d, g, chunk, as, member, out,
				       size, err);
		hdf5_description_free(&d);
	}
	if (r < 0)
		hdf5_place_prefix(at, err);
	hdf5_place_close(&o);
	return r;
}
