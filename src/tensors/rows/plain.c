/* SPDX-License-Identifier: BSD-2-Clause */
/* Write rows with H5Dwrite: contiguous data, and filters that only libhdf5 has. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/hdf5/file/driver.h"
#include "tensors/rows/private.h"

#define BUFFER_MOST (UINT64_C(64) << 20)

static int write_rows(struct writer *w, hid_t dset, uint64_t first,
		      uint64_t rows, const void *buf, struct error *err)
{
	hsize_t start[RANK_MAX] = {first}, count[RANK_MAX];
	hid_t type, space, memory;
	int r = 0;

	for (unsigned i = 0; i < w->d.own_rank; i++)
		count[i] = i ? w->d.shape[i] : rows;
	hdf5_lock();
	type = H5Dget_type(dset);
	space = H5Dget_space(dset);
	memory = H5Screate_simple((int)w->d.own_rank, count, NULL);
	/* In memory as in the file: nothing is converted. */
	if (H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count,
				NULL) < 0 ||
	    H5Dwrite(dset, type, memory, space, H5P_DEFAULT, buf) < 0)
		r = write_failed(w, "the data", err);
	H5Sclose(memory);
	H5Sclose(space);
	H5Tclose(type);
	hdf5_unlock();
	return r;
}

/* Write whole layers of chunks at a time; otherwise libhdf5 would decode and encode
 * chunks again and again. */
int write_data_plain(struct writer *w, hid_t dset, struct error *err)
{
	uint64_t layer = w->d.storage == HDF5_CHUNKED ? w->grid.chunk[0] : 1;
	uint64_t at = w->rows->first, end = at + w->rows->rows, bytes;
	uint64_t most = min_u64(BUFFER_MOST, w->o->memory / 2) /
			max_u64(w->row_bytes, 1) / layer * layer;
	cleanup_free void *buf = NULL;
	int r = 0;

	most = max_u64(most, layer);
	if (mul_overflows(min_u64(most, w->rows->rows), w->row_bytes, &bytes) ||
	    bytes > w->o->memory)
		return error_set(err, -ENOMEM,
				 "'%s': rows of %" PRIu64
				 " bytes take more memory than --memory allows",
				 w->rows->path, w->row_bytes);
	buf = malloc(bytes ? bytes : 1);
	if (!buf)
		return error_no_memory(err, "the rows to be written");
	while (at < end && r == 0) {
		uint64_t n = min_u64(most - at % layer, end - at);

		r = write_read_rows(w, at, n, buf, err);
		if (r == 0)
			r = write_rows(w, dset, at, n, buf, err);
		if (r == 0 && *w->o->stop)
			r = error_set(err, -EINTR, "interrupted");
		atomic_fetch_add(w->o->done, n * w->row_bytes);
		at += n;
	}
	return r;
}
