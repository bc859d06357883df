/* SPDX-License-Identifier: BSD-2-Clause */
/* Strings of a part: read by the library, small as they are. */
#include "source/hdf5.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"

struct strings {
	uint64_t n;
	hid_t type, file_space, mem_space;
	size_t width; /* fixed length; 0: variable */
	H5T_str_t pad;
	void *data;
	void (*put)(void *ctx, const char *s, size_t len);
	void *ctx;
};

/* The length of a fixed-size string, by its padding. */
static size_t fixed_length(const char *s, size_t width, H5T_str_t pad)
{
	const char *nul = memchr(s, 0, width);

	if (pad == H5T_STR_NULLTERM)
		return nul ? (size_t)(nul - s) : width;
	while (width && s[width - 1] == (pad == H5T_STR_SPACEPAD ? ' ' : 0))
		width--;
	return width;
}

static void strings_put(const struct strings *x)
{
	for (uint64_t i = 0; i < x->n; i++) {
		const char *s = x->width ? (const char *)x->data + i * x->width
					 : ((char **)x->data)[i];
		size_t len = x->width ? fixed_length(s, x->width, x->pad)
			     : s      ? strlen(s)
				      : 0;

		x->put(x->ctx, s ? s : "", len);
	}
}

/* Select rows of the dataset: elements [first, first + n) are whole rows. */
static int strings_select(struct tensor *t, uint32_t p, hid_t dset,
			  uint64_t first, struct strings *x)
{
	const uint64_t *origin = t->parts[p].origin;
	hsize_t start[RANK_MAX], count[RANK_MAX], total = x->n;
	uint64_t row = 1;

	x->file_space = H5Dget_space(dset);
	x->mem_space = H5Screate_simple(1, &total, NULL);
	if (x->file_space < 0 || x->mem_space < 0)
		return -1;
	if (!t->rank)
		return 0;
	for (unsigned i = 1; i < t->rank; i++)
		row *= t->shape[i];
	for (unsigned i = 0; i < t->rank; i++) {
		start[i] = origin ? origin[i] : 0;
		count[i] = t->shape[i];
	}
	if (!row || first % row || x->n % row)
		return -1; /* whole rows only */
	start[0] += first / row;
	count[0] = x->n / row;
	return H5Sselect_hyperslab(x->file_space, H5S_SELECT_SET, start, NULL,
				   count, NULL);
}

static int strings_read(hid_t dset, struct strings *x)
{
	bool vlen;

	x->type = H5Dget_type(dset);
	vlen = H5Tis_variable_str(x->type) > 0;
	x->pad = H5Tget_strpad(x->type);
	x->width = vlen ? 0 : H5Tget_size(x->type);
	x->data = calloc(x->n, vlen ? sizeof(char *) : x->width);
	if (!x->data)
		return -ENOMEM;
	if (H5Dread(dset, x->type, x->mem_space, x->file_space, H5P_DEFAULT,
		    x->data) < 0)
		return -EIO;
	strings_put(x);
	if (vlen)
		H5Dvlen_reclaim(x->type, x->mem_space, H5P_DEFAULT, x->data);
	return 0;
}

int hdf5_part_strings(struct tensor *t, uint32_t p, uint64_t first, uint64_t n,
		      void (*put)(void *ctx, const char *s, size_t len),
		      void *ctx, struct error *err)
{
	struct strings x = {.n = n,
			    .type = -1,
			    .file_space = -1,
			    .mem_space = -1,
			    .put = put,
			    .ctx = ctx};
	struct hdf5_opened o;
	char why[256];
	int r = hdf5_part_open(t, p, &o, err);

	if (r < 0)
		return r;
	r = hdf5_part_check(t, p, o.dset, err);
	if (!r) {
		r = strings_select(t, p, o.dset, first, &x) < 0
			    ? -EIO
			    : strings_read(o.dset, &x);
		if (r == -EIO)
			hdf5_why(why, sizeof why);
		if (r < 0)
			error_set(err, r, "%s: dataset '%s': %s",
				  handles_path(t->handles, t->parts[p].file),
				  t->parts[p].dataset,
				  r == -EIO ? why : "out of memory");
	}
	free(x.data);
	if (x.type >= 0)
		H5Tclose(x.type);
	if (x.file_space >= 0)
		H5Sclose(x.file_space);
	if (x.mem_space >= 0)
		H5Sclose(x.mem_space);
	hdf5_part_close(&o);
	return r;
}
