/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes as a netCDF-3 file: what its header says is consistent. */
#include <errno.h>

#include "fuzz.h"
#include "formats/netcdf/header.h"

static void check_variable(const struct netcdf *f,
			   const struct netcdf_variable *v)
{
	uint64_t bytes = v->dtype.size;

	FUZZ_CHECK(*v->name && v->dtype.size && v->dtype.size <= 8);
	FUZZ_CHECK(v->record == (v->rank && v->dims[0]->record));
	FUZZ_CHECK(v->attributes < f->size);
	for (uint64_t i = 0; i < v->rank; i++)
		FUZZ_CHECK(v->dims[i] >= f->dims &&
			   v->dims[i] < f->dims + f->ndims &&
			   (!i || !v->dims[i]->record));
	if (v->too_large)
		return;
	for (uint64_t i = v->record; i < v->rank; i++)
		FUZZ_CHECK(!__builtin_mul_overflow(bytes, v->dims[i]->length,
						   &bytes));
	FUZZ_CHECK(v->bytes == bytes && bytes);
	FUZZ_CHECK(!v->record ||
		   (f->distance >= bytes && v->dims[0]->length == f->records));
}

static void check_attributes(const unsigned char *head, const struct netcdf *f)
{
	json_t *o = netcdf_attributes(head, f, f->attributes);

	FUZZ_CHECK(json_is_object(o));
	json_decref(o);
	for (size_t i = 0; i < f->vars.n; i++) {
		o = netcdf_attributes(head, f, f->vars.at[i].attributes);
		FUZZ_CHECK(json_is_object(o));
		json_decref(o);
	}
}

/* A header is found in its own bytes, and not in fewer. */
static void check_ends(const unsigned char *data, size_t n, uint64_t size)
{
	unsigned char *copy = malloc(n);
	struct error err = {0};
	struct netcdf f;

	memcpy(copy, data, n);
	FUZZ_CHECK(netcdf_read(copy, n, size, &f, &err) == 0 && f.size == n);
	netcdf_free(&f);
	FUZZ_CHECK(netcdf_read(copy, n - 1, size, &f, &err) == 1);
	FUZZ_CHECK(netcdf_read(copy, n - 1, n - 1, &f, &err) == -EBADMSG);
	free(copy);
}

/* Two bytes say how much longer the file is. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	uint64_t more = fuzz_u16(&in);
	unsigned char *copy = malloc(in.size ? in.size : 1); /* of this size */
	struct error err = {0};
	struct netcdf f;
	int r;

	if (in.size)
		memcpy(copy, in.data, in.size);
	r = netcdf_read(copy, in.size, in.size + more, &f, &err);
	if (r == 0) {
		FUZZ_CHECK(f.size && f.size <= in.size);
		for (size_t i = 0; i < f.vars.n; i++)
			check_variable(&f, &f.vars.at[i]);
		check_attributes(copy, &f);
		check_ends(copy, f.size, in.size + more);
		netcdf_free(&f);
	} else {
		FUZZ_CHECK(r == -EBADMSG || (r == 1 && more));
		FUZZ_CHECK(err.code == -EBADMSG && *err.text);
		FUZZ_CHECK(!f.dims && !f.vars.at);
	}
	free(copy);
	return 0;
}
