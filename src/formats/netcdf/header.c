/* SPDX-License-Identifier: BSD-2-Clause */
/* Parse the header of a netCDF-3 file and compute where the data of variables are. */
/*
 *	header = magic numrecs dim_list gatt_list var_list
 *	list   = ABSENT | tag nelems [element ...]
 *	dim    = name length
 *	attr   = name type nelems [values]
 *	var    = name nelems [dimid ...] attr_list type vsize begin
 *
 * Names and values are padded to 4 bytes.  Counts have 4 bytes, in CDF-5 8; `begin` has 4
 * bytes in CDF-1 and 8 in the others.
 */
#include "formats/netcdf/header.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/number.h"

/* ---- taking bytes -------------------------------------------------------- */

static int netcdf_take(struct netcdf_input *in, size_t n,
		       const unsigned char **out, struct error *err)
{
	if (n > in->left) {
		in->ended = true;
		error_set(err, -EBADMSG,
			  "it ends in the middle of its header: truncated?");
		return -EBADMSG;
	}
	*out = in->at;
	in->at += n;
	in->left -= n;
	return 0;
}

static int netcdf_take_u32(struct netcdf_input *in, uint32_t *v,
			   struct error *err)
{
	const unsigned char *p;
	int r = netcdf_take(in, 4, &p, err);

	if (r == 0)
		*v = load_be32(p);
	return r;
}

static int netcdf_take_u64(struct netcdf_input *in, uint64_t *v,
			   struct error *err)
{
	const unsigned char *p;
	int r = netcdf_take(in, 8, &p, err);

	if (r == 0)
		*v = load_be64(p);
	return r;
}

/* Take a count or a length. */
static int netcdf_take_count(struct netcdf_input *in, uint64_t *v,
			     struct error *err)
{
	uint32_t narrow = 0;
	int r;

	if (in->wide)
		return netcdf_take_u64(in, v, err);
	r = netcdf_take_u32(in, &narrow, err);
	*v = narrow;
	return r;
}

/* Take `n` elements of `size` bytes, and what pads them to a multiple of 4. */
static int netcdf_take_padded(struct netcdf_input *in, uint64_t n,
			      uint32_t size, const unsigned char **out,
			      struct error *err)
{
	uint64_t bytes, all;

	if (mul_overflows(n, size, &bytes) ||
	    add_overflows(bytes, -bytes & 3, &all))
		all = UINT64_MAX;
	return netcdf_take(in, all, out, err);
}

/* ---- lists, types, names ------------------------------------------------- */

int netcdf_take_list(struct netcdf_input *in, uint32_t tag, size_t least,
		     size_t *n, struct error *err)
{
	uint32_t is = 0;
	uint64_t count = 0;
	int r = netcdf_take_u32(in, &is, err);

	*n = 0;
	if (r == 0)
		r = netcdf_take_count(in, &count, err);
	if (r < 0)
		return r;
	if (is != tag && (is || count))
		return error_set(err, -EBADMSG,
				 "its header has a list with tag %" PRIu32
				 " where 0 or %" PRIu32 " is expected",
				 is, tag);
	if (count > in->left / least) {
		const unsigned char *end;

		return netcdf_take(in, SIZE_MAX, &end, err);
	}
	*n = count;
	return 0;
}

static int netcdf_take_type(struct netcdf_input *in, struct dtype *out,
			    struct error *err)
{
	static const struct {
		enum dtype_kind kind;
		uint32_t size;
	} types[] = {
		[1] = {DTYPE_INT, 1},   [2] = {DTYPE_BYTES, 1},
		[3] = {DTYPE_INT, 2},   [4] = {DTYPE_INT, 4},
		[5] = {DTYPE_FLOAT, 4}, [6] = {DTYPE_FLOAT, 8},
		[7] = {DTYPE_UINT, 1},  [8] = {DTYPE_UINT, 2},
		[9] = {DTYPE_UINT, 4},  [10] = {DTYPE_INT, 8},
		[11] = {DTYPE_UINT, 8},
	};
	uint32_t is = 0;
	int r = netcdf_take_u32(in, &is, err);

	if (r < 0)
		return r;
	if (is < 1 || is > (in->wide ? 11 : 6))
		return error_set(err, -EBADMSG,
				 "its header has the unknown type %" PRIu32,
				 is);
	memset(out, 0, sizeof *out);
	out->kind = types[is].kind;
	out->size = types[is].size;
	out->big_endian = out->size > 1;
	return 0;
}

static int netcdf_take_text(struct netcdf_input *in, const unsigned char **name,
			    size_t *len, struct error *err)
{
	uint64_t n = 0;
	int r = netcdf_take_count(in, &n, err);

	if (r == 0)
		r = netcdf_take_padded(in, n, 1, name, err);
	if (r < 0)
		return r;
	if (!n || memchr(*name, '\0', n))
		return error_set(err, -EBADMSG,
				 "its header has a name that is empty or "
				 "contains a NUL");
	*len = n;
	return 0;
}

static int netcdf_take_name(struct netcdf_input *in, char **out,
			    struct error *err)
{
	const unsigned char *name;
	size_t len;
	int r = netcdf_take_text(in, &name, &len, err);

	if (r < 0)
		return r;
	*out = strndup((const char *)name, len);
	return *out ? 0 : error_no_memory(err, "the names of the file");
}

/* ---- attributes ---------------------------------------------------------- */

size_t netcdf_attribute_least(const struct netcdf_input *in)
{
	return in->wide ? 8 + 4 + 4 + 8 : 4 + 4 + 4 + 4;
}

int netcdf_take_attribute(struct netcdf_input *in, struct netcdf_attribute *out,
			  struct error *err)
{
	uint64_t n = 0;
	int r = netcdf_take_text(in, &out->name, &out->name_len, err);

	if (r == 0)
		r = netcdf_take_type(in, &out->dtype, err);
	if (r == 0)
		r = netcdf_take_count(in, &n, err);
	if (r == 0)
		r = netcdf_take_padded(in, n, out->dtype.size, &out->values,
				       err);
	out->n = n;
	return r;
}

static int netcdf_skip_attributes(struct netcdf_input *in, struct error *err)
{
	struct netcdf_attribute a;
	size_t n;
	int r = netcdf_take_list(in, NETCDF_ATTRIBUTE,
				 netcdf_attribute_least(in), &n, err);

	for (; r == 0 && n; n--)
		r = netcdf_take_attribute(in, &a, err);
	return r;
}

/* ---- dimensions ---------------------------------------------------------- */

static int netcdf_take_dimension(struct netcdf_input *in, struct netcdf *f,
				 bool *has_record, struct error *err)
{
	struct netcdf_dimension *d = &f->dims[f->ndims];
	int r = netcdf_take_name(in, &d->name, err);

	if (r < 0)
		return r;
	f->ndims++;
	r = netcdf_take_count(in, &d->length, err);
	if (r < 0)
		return r;
	d->record = !d->length;
	if (d->record && *has_record)
		return error_set(err, -EBADMSG,
				 "its header has two record dimensions, the "
				 "second is \"%.80s\"",
				 d->name);
	*has_record |= d->record;
	return 0;
}

static int netcdf_take_dimensions(struct netcdf_input *in, struct netcdf *f,
				  struct error *err)
{
	bool has_record = false;
	size_t n;
	int r = netcdf_take_list(in, NETCDF_DIMENSION, in->wide ? 20 : 12, &n,
				 err);

	if (r < 0)
		return r;
	f->dims = calloc(n ? n : 1, sizeof *f->dims);
	if (!f->dims)
		return error_no_memory(err, "the dimensions of the file");
	for (; r == 0 && n; n--)
		r = netcdf_take_dimension(in, f, &has_record, err);
	return r;
}

/* ---- variables ----------------------------------------------------------- */

static int netcdf_take_shape(struct netcdf_input *in, const struct netcdf *f,
			     struct netcdf_variable *v, struct error *err)
{
	int r = netcdf_take_count(in, &v->rank, err);
	const unsigned char *end;

	if (r < 0)
		return r;
	if (v->rank > in->left / (in->wide ? 8 : 4))
		return netcdf_take(in, SIZE_MAX, &end, err);
	v->dims = calloc(v->rank ? v->rank : 1, sizeof *v->dims);
	if (!v->dims)
		return error_no_memory(err, "the shape of a variable");
	for (uint64_t i = 0; i < v->rank; i++) {
		uint64_t id = 0;

		r = netcdf_take_count(in, &id, err);
		if (r < 0)
			return r;
		if (id >= f->ndims)
			return error_set(err, -EBADMSG,
					 "variable \"%.80s\" has the unknown "
					 "dimension %" PRIu64,
					 v->name, id);
		v->dims[i] = &f->dims[id];
		if (v->dims[i]->record && i)
			return error_set(err, -EBADMSG,
					 "variable \"%.80s\" has the record "
					 "dimension behind another one",
					 v->name);
	}
	v->record = v->rank && v->dims[0]->record;
	return 0;
}

static void netcdf_size_variable(struct netcdf_variable *v)
{
	v->bytes = v->dtype.size;
	for (uint64_t i = v->record; i < v->rank && !v->too_large; i++)
		v->too_large =
			mul_overflows(v->bytes, v->dims[i]->length, &v->bytes);
}

static int netcdf_take_variable(struct netcdf_input *in, struct netcdf *f,
				const unsigned char *head,
				struct netcdf_variable *v, struct error *err)
{
	uint64_t vsize;
	uint32_t begin = 0;
	int r = netcdf_take_name(in, &v->name, err);

	if (r == 0)
		r = netcdf_take_shape(in, f, v, err);
	if (r == 0) {
		v->attributes = (size_t)(in->at - head);
		r = netcdf_skip_attributes(in, err);
	}
	if (r == 0)
		r = netcdf_take_type(in, &v->dtype, err);
	if (r == 0)
		r = netcdf_take_count(in, &vsize, err);
	if (r < 0)
		return r;
	netcdf_size_variable(v);
	if (f->version > 1)
		return netcdf_take_u64(in, &v->begin, err);
	r = netcdf_take_u32(in, &begin, err);
	v->begin = begin;
	return r;
}

static int netcdf_take_variables(struct netcdf_input *in, struct netcdf *f,
				 const unsigned char *head, struct error *err)
{
	static const struct netcdf_variable empty;
	size_t n;
	int r = netcdf_take_list(in, NETCDF_VARIABLE, in->wide ? 48 : 32, &n,
				 err);

	for (; r == 0 && n; n--) {
		if (!vec_push(&f->vars, empty))
			return error_no_memory(err,
					       "the variables of the file");
		r = netcdf_take_variable(in, f, head,
					 &f->vars.at[f->vars.n - 1], err);
	}
	return r;
}

static int netcdf_compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int netcdf_check_names(const struct netcdf *f, struct error *err)
{
	char **names = calloc(f->vars.n ? f->vars.n : 1, sizeof *names);
	int r = 0;

	if (!names)
		return error_no_memory(err, "the names of the variables");
	for (size_t i = 0; i < f->vars.n; i++)
		names[i] = f->vars.at[i].name;
	qsort(names, f->vars.n, sizeof *names, netcdf_compare_names);
	for (size_t i = 1; r == 0 && i < f->vars.n; i++)
		if (!strcmp(names[i - 1], names[i]))
			r = error_set(err, -EBADMSG,
				      "two variables have the name \"%.80s\"",
				      names[i]);
	free(names);
	return r;
}

/* ---- records ------------------------------------------------------------- */

/* A record has the data of each variable in turn, padded to 4 bytes.  Where only one
 * variable has records, nothing pads them ("Note on padding" of the specification). */
static void netcdf_size_record(struct netcdf *f)
{
	const struct netcdf_variable *only = NULL;
	bool too_large = false;
	uint64_t sum = 0, n = 0;

	for (size_t i = 0; i < f->vars.n; i++) {
		const struct netcdf_variable *v = &f->vars.at[i];

		if (!v->record)
			continue;
		n++;
		only = v;
		too_large |= v->too_large ||
			     add_overflows(sum, v->bytes, &sum) ||
			     add_overflows(sum, -v->bytes & 3, &sum);
	}
	f->distance = n == 1 ? only->bytes : sum;
	for (size_t i = 0; too_large && i < f->vars.n; i++)
		f->vars.at[i].too_large |= f->vars.at[i].record;
}

/* The header of a file that was streamed does not say how many records there are: they
 * are as many as fit behind the beginning of the first one. */
static void netcdf_count_records(struct netcdf *f, uint64_t size)
{
	uint64_t begin = size;

	for (size_t i = 0; i < f->vars.n; i++)
		if (f->vars.at[i].record)
			begin = min_u64(begin, f->vars.at[i].begin);
	f->records = f->distance ? (size - begin) / f->distance : 0;
}

/* ---- the header ---------------------------------------------------------- */

static int netcdf_take_magic(struct netcdf_input *in, struct netcdf *f,
			     bool *streamed, struct error *err)
{
	const unsigned char *magic;
	int r = netcdf_take(in, 4, &magic, err);

	if (r < 0)
		return r;
	f->version = magic[3];
	if (memcmp(magic, "CDF", 3) ||
	    (f->version != 1 && f->version != 2 && f->version != 5))
		return error_set(err, -EBADMSG,
				 "it does not begin as a netCDF-3 file");
	in->wide = f->version == 5;
	r = netcdf_take_count(in, &f->records, err);
	*streamed = f->records == (in->wide ? UINT64_MAX : UINT32_MAX);
	return r;
}

static int netcdf_take_header(struct netcdf_input *in, uint64_t size,
			      struct netcdf *f, struct error *err)
{
	const unsigned char *head = in->at;
	bool streamed = false;
	int r = netcdf_take_magic(in, f, &streamed, err);

	if (r == 0)
		r = netcdf_take_dimensions(in, f, err);
	if (r == 0) {
		f->attributes = (size_t)(in->at - head);
		r = netcdf_skip_attributes(in, err);
	}
	if (r == 0)
		r = netcdf_take_variables(in, f, head, err);
	if (r == 0)
		r = netcdf_check_names(f, err);
	if (r < 0)
		return r;
	f->size = (size_t)(in->at - head);
	netcdf_size_record(f);
	if (streamed)
		netcdf_count_records(f, size);
	for (size_t i = 0; i < f->ndims; i++)
		if (f->dims[i].record)
			f->dims[i].length = f->records;
	return 0;
}

int netcdf_read(const unsigned char *head, size_t n, uint64_t size,
		struct netcdf *out, struct error *err)
{
	struct netcdf_input in = {.at = head, .left = n};
	int r;

	memset(out, 0, sizeof *out);
	r = netcdf_take_header(&in, size, out, err);
	if (r < 0)
		netcdf_free(out);
	return r == -EBADMSG && in.ended && n < size ? 1 : r;
}

void netcdf_free(struct netcdf *f)
{
	for (size_t i = 0; i < f->ndims; i++)
		free(f->dims[i].name);
	free(f->dims);
	for (size_t i = 0; i < f->vars.n; i++) {
		free(f->vars.at[i].name);
		free(f->vars.at[i].dims);
	}
	vec_free(&f->vars);
	memset(f, 0, sizeof *f);
}
