/* SPDX-License-Identifier: BSD-2-Clause */
/* An HDF5 file that is built from the inside out: first the chunks, then what refers to
 * them. */

/*
 * The bytes of chunks are appended here by all threads at once: the next position is
 * taken with an atomic addition, and the bytes are written with pwrite.  How libhdf5
 * makes a file around them is described in tensors/build_driver.c.
 *
 * The index of chunks is the B-tree of version 1, which h5py makes and all programs read.
 * Chunks are inserted in order of their numbers, which fills its nodes to nine tenths and
 * takes a microsecond or two for each chunk.
 */
#include "tensors/build_private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "extent/file.h"
#include "formats/hdf5/file/driver.h"
#include "tensor/grid.h"

/* Start write-back when this many bytes are dirty, so that the sync at the end does not
 * have to write everything. */
#define BEHIND (UINT64_C(32) << 20)
#define COPY_PIECE ((size_t)1 << 20)

int build_new(struct build **out, int fd, const char *path, uint64_t end,
	      struct error *err)
{
	struct build *b;

	*out = NULL;
	if (end < BUILD_FIRST || end > INT64_MAX / 2)
		return error_set(err, -EINVAL,
				 "chunks cannot begin at byte %" PRIu64, end);
	b = calloc(1, sizeof *b);
	if (!b || !(b->path = strdup(path))) {
		free(b);
		return error_no_memory(err, "the HDF5 file to be made");
	}
	b->fd = fd;
	b->first = BUILD_FIRST;
	b->end = b->behind = end;
	*out = b;
	return 0;
}

void build_user_block(struct build *b, uint64_t n)
{
	b->first = n + BUILD_FIRST;
	if (build_end(b) < b->first)
		b->end = b->behind = b->first;
}

uint64_t build_end(const struct build *b)
{
	return atomic_load(&((struct build *)b)->end);
}

/* ---- chunks -------------------------------------------------------------- */

static int build_cannot_write(const struct build *b, int code,
			      struct error *err)
{
	return error_errno(err, code, "cannot write '%s'", file_shown(b->path));
}

int build_place(struct build *b, size_t n, uint64_t *pos, struct error *err)
{
	uint64_t at;

	if (n > INT64_MAX / 4 || build_end(b) > INT64_MAX / 4)
		return build_cannot_write(b, -EFBIG, err);
	at = atomic_fetch_add(&b->end, n);
	*pos = at;
	return 0;
}

static int put_at(struct build *b, const char *data, size_t n, uint64_t pos,
		  struct error *err)
{
	while (n > 0) {
		ssize_t done = pwrite(b->fd, data, n, (off_t)pos);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return build_cannot_write(b, done < 0 ? -errno : -EIO,
						  err);
		pos += (uint64_t)done;
		data += done;
		n -= (size_t)done;
	}
	return 0;
}

/* Start write-back of everything before the end if enough is dirty.  One of several
 * threads does it. */
static void write_behind(struct build *b)
{
	uint64_t end = build_end(b), was = atomic_load(&b->behind);

	if (end - was >= BEHIND &&
	    atomic_compare_exchange_strong(&b->behind, &was, end))
		sync_file_range(b->fd, (off_t)was, (off_t)(end - was),
				SYNC_FILE_RANGE_WRITE);
}

int build_put_at(struct build *b, const void *data, size_t n, uint64_t pos,
		 struct error *err)
{
	int r = put_at(b, data, n, pos, err);

	if (r == 0)
		write_behind(b);
	return r;
}

int build_put(struct build *b, const void *data, size_t n, uint64_t *pos,
	      struct error *err)
{
	uint64_t at = 0;
	int r = build_place(b, n, &at, err);

	if (r == 0)
		r = build_put_at(b, data, n, at, err);
	if (r == 0)
		*pos = at;
	return r;
}

/* Copy through memory, where the kernel cannot copy. */
static int copy_by_hand(struct build *b, int from, uint64_t from_pos, size_t n,
			uint64_t pos, struct error *err)
{
	size_t room = n < COPY_PIECE ? n : COPY_PIECE;
	cleanup_free char *buf = malloc(room ? room : 1);

	if (!buf)
		return error_no_memory(err, "a buffer to copy chunks");
	while (n > 0) {
		size_t want = n < room ? n : room;
		ssize_t got = file_read(from, from_pos, buf, want);
		int r;

		if (got < 0)
			return error_errno(err, (int)got, "cannot read");
		if ((size_t)got < want)
			return error_set(err, -ENODATA,
					 "the file ends before its data does");
		r = put_at(b, buf, want, pos, err);
		if (r < 0)
			return r;
		from_pos += want;
		pos += want;
		n -= want;
	}
	return 0;
}

/* Copy as much as the kernel can, and advance the positions.  Return 0 even if some is
 * left. */
static int copy_by_kernel(struct build *b, int from, uint64_t *from_pos,
			  size_t *n, uint64_t *pos, struct error *err)
{
	while (*n > 0) {
		off_t in = (off_t)*from_pos, out = (off_t)*pos;
		ssize_t done = copy_file_range(from, &in, b->fd, &out, *n, 0);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0 && (errno == ENOSPC || errno == EDQUOT))
			return build_cannot_write(b, -errno, err);
		/* Another file system, a read error, ...: pread will report it. */
		if (done < 0)
			atomic_store(&b->no_copy, true);
		if (done <= 0)
			return 0;
		*from_pos += (uint64_t)done;
		*pos += (uint64_t)done;
		*n -= (size_t)done;
	}
	return 0;
}

int build_copy(struct build *b, int from, uint64_t from_pos, size_t n,
	       uint64_t *pos, struct error *err)
{
	uint64_t at = 0, to;
	int r = build_place(b, n, &at, err);

	to = at;
	if (r == 0 && !atomic_load(&b->no_copy))
		r = copy_by_kernel(b, from, &from_pos, &n, &to, err);
	if (r == 0)
		r = copy_by_hand(b, from, from_pos, n, to, err);
	if (r < 0)
		return r;
	*pos = at;
	write_behind(b);
	return 0;
}

/* ---- the file ------------------------------------------------------------ */

int build_open(struct build *b, hid_t *file, struct error *err)
{
	return build_open_with(b, H5P_DEFAULT, file, err);
}

int build_open_with(struct build *b, hid_t fcpl, hid_t *file, struct error *err)
{
	/* Addresses of metadata are multiples of 8 by convention. */
	b->chunks_end = div_up(build_end(b), 8) * 8;
	b->failure.code = 0;
	return build_driver_create(b, fcpl, file, err);
}

void build_stop(struct build *b, const _Atomic int *stop)
{
	b->stop = stop;
}

int build_close(struct build *b, hid_t file, struct error *err)
{
	herr_t closed = H5Fclose(file);
	char why[256];

	if (closed < 0)
		hdf5_why(why, sizeof why);
	if (b->failure.code)
		return error_set(err, b->failure.code, "%s", b->failure.text);
	if (closed < 0 || b->file)
		return error_set(err, -EIO, "cannot finish '%s': %s",
				 file_shown(b->path),
				 closed < 0 ? why : "it is still in use");
	if (b->eoa < b->chunks_end && b->chunks_end > b->first)
		b->eoa = b->chunks_end;
	return ftruncate(b->fd, (off_t)b->eoa) < 0
		       ? build_cannot_write(b, -errno, err)
		       : 0;
}

void build_free(struct build *b)
{
	if (!b)
		return;
	if (b->file) {
		hdf5_lock();
		b->file->b = NULL;
		hdf5_unlock();
	}
	free(b->path);
	free(b);
}

/* ---- datasets ------------------------------------------------------------ */

/* Set `err` to the reason for the library's failure, preferably the driver's. */
static int build_library_failed(const struct build *b,
				const struct build_dataset *d,
				struct error *err)
{
	char why[256];

	hdf5_why(why, sizeof why);
	if (b->failure.code)
		return error_set(err, b->failure.code, "%s", b->failure.text);
	return error_set(err, -EIO, "cannot make dataset '%s': %s", d->path,
			 why);
}

static int chunk_order(const void *one, const void *two)
{
	const struct build_chunk *a = one, *b = two;

	return a->number < b->number ? -1 : a->number > b->number;
}

static int bad_chunk(const struct build_dataset *d, const struct build_chunk *c,
		     const char *what, struct error *err)
{
	return error_set(err, -EINVAL, "dataset '%s': chunk %" PRIu64 " %s",
			 d->path, c->number, what);
}

/* Sort the chunks, and check that all are in the grid and in the file.  Set *longest to
 * the size of the largest one in bytes. */
static int build_check_chunks(const struct build *b,
			      const struct build_dataset *d,
			      const struct grid *g, uint32_t *longest,
			      struct error *err)
{
	bool sorted = true;

	for (uint64_t i = 1; i < d->n_chunks && sorted; i++)
		sorted = d->chunks[i - 1].number < d->chunks[i].number;
	if (!sorted)
		qsort(d->chunks, d->n_chunks, sizeof *d->chunks, chunk_order);
	*longest = 0;
	for (uint64_t i = 0; i < d->n_chunks; i++) {
		const struct build_chunk *c = &d->chunks[i];

		if (c->number >= g->count)
			return bad_chunk(d, c, "is not in the grid", err);
		if (i && c[-1].number == c->number)
			return bad_chunk(d, c, "appears twice", err);
		if (c->len == 0 || c->pos < b->first ||
		    c->pos > b->chunks_end || c->len > b->chunks_end - c->pos)
			return bad_chunk(d, c, "is not in the file", err);
		if (c->len > *longest)
			*longest = c->len;
	}
	return 0;
}

/* Tell the library of one chunk whose bytes are written already; see
 * tensors/build_driver.c. */
static int tell_chunk(struct build *b, hid_t dset,
		      const struct build_dataset *d, const struct grid *g,
		      const struct build_chunk *c, const void *dummy,
		      struct error *err)
{
	uint64_t origin[RANK_MAX];
	hsize_t at[RANK_MAX];
	herr_t done;

	grid_origin(g, c->number, origin);
	for (unsigned i = 0; i < g->rank; i++)
		at[i] = origin[i];
	b->spot = (struct build_spot){.on = true, .pos = c->pos, .len = c->len};
	done = H5Dwrite_chunk(dset, H5P_DEFAULT, c->mask, at, c->len, dummy);
	b->spot.on = false;
	if (done < 0 || b->failure.code)
		return build_library_failed(b, d, err);
	if (b->spot.asked != 1 || b->spot.written != 1)
		return error_set(err, -ENOTSUP,
				 "'%s': this version of libhdf5 writes chunks "
				 "in an unknown way",
				 file_shown(b->path));
	return 0;
}

static int tell_chunks(struct build *b, hid_t dset,
		       const struct build_dataset *d, const struct grid *g,
		       struct error *err)
{
	uint32_t longest;
	void *dummy; /* never read, so that its pages do not take memory */
	int r = build_check_chunks(b, d, g, &longest, err);

	if (r < 0 || !longest)
		return r;
	dummy = mmap(NULL, longest, PROT_READ,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (dummy == MAP_FAILED)
		return error_no_memory(err, "the index of chunks");
	for (uint64_t i = 0; i < d->n_chunks && r == 0; i++)
		r = tell_chunk(b, dset, d, g, &d->chunks[i], dummy, err);
	munmap(dummy, longest);
	return r;
}

/* Is the dataset chunked?  Yes if it has chunks, or could have some after growing. */
static bool build_is_chunked(const struct build_dataset *d,
			     const struct grid *g)
{
	for (unsigned i = 0; i < d->rank && !g->count; i++)
		if (d->chunk[i] > (d->max ? d->max[i] : d->shape[i]))
			return false;
	return true;
}

/* Create the chunked (or empty) dataset, without any chunk.  Return its id, or a negative
 * number; `err` is set if the filters are the reason. */
static hid_t build_create_dataset(hid_t file, const struct build_dataset *d,
				  const struct grid *g, struct error *err)
{
	hsize_t shape[RANK_MAX], max[RANK_MAX], chunk[RANK_MAX];
	hid_t lcpl = H5Pcreate(H5P_LINK_CREATE), space;
	hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), dset = H5I_INVALID_HID;
	bool ok;

	for (unsigned i = 0; i < d->rank; i++) {
		shape[i] = d->shape[i];
		chunk[i] = d->chunk[i];
		max[i] = d->max ? d->max[i] : d->shape[i];
	}
	space = H5Screate_simple((int)d->rank, shape, max);
	ok = lcpl >= 0 && dcpl >= 0 && space >= 0 &&
	     H5Pset_create_intermediate_group(lcpl, 1) >= 0 &&
	     H5Pset_char_encoding(lcpl, H5T_CSET_UTF8) >= 0 &&
	     H5Pset_obj_track_times(dcpl, false) >= 0 &&
	     H5Pset_fill_time(dcpl, H5D_FILL_TIME_ALLOC) >= 0; /* as h5py */
	if (ok && build_is_chunked(d, g))
		ok = H5Pset_chunk(dcpl, (int)d->rank, chunk) >= 0 &&
		     build_filters(dcpl, d->pipeline, err) >= 0;
	if (ok && d->attr_order)
		ok = H5Pset_attr_creation_order(dcpl, d->attr_order) >= 0;
	if (ok && d->fill)
		ok = H5Pset_fill_value(dcpl, d->type, d->fill) >= 0;
	if (ok)
		dset = H5Dcreate2(file, d->path, d->type, space, lcpl, dcpl,
				  H5P_DEFAULT);
	if (lcpl >= 0)
		H5Pclose(lcpl);
	if (dcpl >= 0)
		H5Pclose(dcpl);
	if (space >= 0)
		H5Sclose(space);
	return dset;
}

static int check_dataset(const struct build_dataset *d, struct grid *g,
			 struct error *err)
{
	size_t elem = H5Tget_size(d->type);
	int r = d->rank == 0 || d->rank > RANK_MAX || !elem || elem > UINT32_MAX
			? -EINVAL
			: grid_init(g, d->rank, d->shape, d->chunk,
				    (uint32_t)elem);

	if (r < 0)
		return error_set(err, -EINVAL,
				 "dataset '%s': its shape, chunks or type are "
				 "not possible",
				 d->path);
	if (g->count && g->chunk_bytes > BUILD_CHUNK_MAX)
		return error_set(err, -EINVAL,
				 "dataset '%s': chunks of %" PRIu64
				 " bytes are too large: HDF5 chunks have less "
				 "than 4 GiB",
				 d->path, g->chunk_bytes);
	return 0;
}

int build_dataset(struct build *b, hid_t file, const struct build_dataset *d,
		  hid_t *dset, struct error *err)
{
	struct error why = {.code = 0};
	struct grid g;
	hid_t id;
	int r = check_dataset(d, &g, err);

	if (r < 0)
		return r;
	H5Eclear2(H5E_DEFAULT);
	id = build_create_dataset(file, d, &g, &why);
	if (id < 0)
		return why.code ? error_set(err, why.code, "dataset '%s': %s",
					    d->path, why.text)
				: build_library_failed(b, d, err);
	r = tell_chunks(b, id, d, &g, err);
	if (r < 0) {
		H5Dclose(id);
		return r;
	}
	*dset = id;
	return 0;
}
