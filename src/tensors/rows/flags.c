/* SPDX-License-Identifier: BSD-2-Clause */
/* Write the flags of rows: one string for all of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/hdf5/file/driver.h"
#include "tensors/rows/private.h"

/* Make flags of variable length: a pointer for each row.  The caller frees *list. */
static int make_pointers(const struct writer *w, uint64_t rows, void **list,
			 struct error *err)
{
	const char **at = malloc(rows * sizeof *at);

	if (!at)
		return error_no_memory(err, "the flags of rows");
	for (uint64_t i = 0; i < rows; i++)
		at[i] = w->o->flag;
	*list = at;
	return 0;
}

static int make_strings(const struct writer *w, hid_t type, uint64_t rows,
			void **list, struct error *err)
{
	size_t size = H5Tget_size(type), n = strlen(w->o->flag);
	H5T_str_t pad = H5Tget_strpad(type);
	char *at;

	if (n + (pad == H5T_STR_NULLTERM) > size)
		return error_set(err, -EINVAL,
				 "'%s': flags have room for %zu bytes, '%s' "
				 "does not fit",
				 w->rows->path,
				 size - (pad == H5T_STR_NULLTERM), w->o->flag);
	at = calloc(rows, size);
	if (!at)
		return error_no_memory(err, "the flags of rows");
	for (uint64_t i = 0; i < rows; i++) {
		if (pad == H5T_STR_SPACEPAD)
			memset(at + i * size, ' ', size);
		memcpy(at + i * size, w->o->flag, n);
	}
	*list = at;
	return 0;
}

/* Select the flags of the rows.  The dataset must have one axis that is long enough. */
static int select_rows(const struct writer *w, hid_t space, struct error *err)
{
	hsize_t length = 0, start = w->rows->flags_first, n = w->rows->rows;

	if (H5Sget_simple_extent_ndims(space) != 1 ||
	    H5Sget_simple_extent_dims(space, &length, NULL) < 0 ||
	    start > length || n > length - start)
		return error_set(err, -EINVAL,
				 "'%s': %s does not have a flag for each row",
				 w->rows->path, w->rows->flags);
	return H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &n,
				   NULL) < 0
		       ? write_failed(w, "the flags", err)
		       : 0;
}

static int write_to(const struct writer *w, hid_t dset, struct error *err)
{
	hsize_t n = w->rows->rows;
	hid_t type = H5Dget_type(dset), space = H5Dget_space(dset);
	hid_t memory = H5Screate_simple(1, &n, NULL);
	cleanup_free void *list = NULL;
	int r;

	if (type < 0 || H5Tget_class(type) != H5T_STRING)
		r = error_set(err, -EINVAL, "'%s': %s does not hold strings",
			      w->rows->path, w->rows->flags);
	else
		r = select_rows(w, space, err);
	if (r == 0)
		r = H5Tis_variable_str(type) > 0
			    ? make_pointers(w, n, &list, err)
			    : make_strings(w, type, n, &list, err);
	if (r == 0 &&
	    H5Dwrite(dset, type, memory, space, H5P_DEFAULT, list) < 0)
		r = write_failed(w, "the flags", err);
	H5Sclose(memory);
	if (space >= 0)
		H5Sclose(space);
	if (type >= 0)
		H5Tclose(type);
	return r;
}

int write_flags(struct writer *w, struct error *err)
{
	hid_t dset;
	int r;

	if (!w->rows->flags)
		return error_set(err, -EINVAL, "'%s' has no flags",
				 w->rows->path);
	hdf5_lock();
	r = write_open_dataset(w, w->rows->flags, &dset, err);
	if (r == 0) {
		r = write_to(w, dset, err);
		if (H5Dclose(dset) < 0 && r == 0)
			r = write_failed(w, "the flags", err);
	}
	hdf5_unlock();
	return r;
}
