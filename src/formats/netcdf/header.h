/* SPDX-License-Identifier: BSD-2-Clause */
/* The header of a netCDF-3 classic file. */
/*
 * Source: "The NetCDF Classic Format Specification" (Unidata, appendix "File Format
 * Specifications" of the netCDF documentation), for CDF-1, CDF-2 (64-bit offset) and
 * CDF-5 (64-bit data).  All numbers are big-endian.  The sizes of variables (vsize) are
 * computed, not read: the specification calls them redundant, and they are wrong where a
 * variable is larger than 4 GiB.
 */
#ifndef FORMATS_NETCDF_HEADER_H
#define FORMATS_NETCDF_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "base/vec.h"
#include "tensor/dtype.h"

/* Our limit of a header in bytes; the format has none. */
#define NETCDF_HEADER_MOST (UINT64_C(64) << 20)

struct netcdf_dimension {
	char *name;
	uint64_t length; /* of the record dimension: the number of records */
	bool record;
};
struct netcdf_variable {
	char *name;
	struct dtype dtype; /* as stored */
	uint64_t rank;      /* may be more than RANK_MAX */
	/* The first axis of a variable with records is the record dimension. */
	const struct netcdf_dimension **dims; /* [rank] */
	bool record;
	bool too_large; /* its bytes, or those of a record, overflow 64 bits */
	uint64_t
		bytes; /* of all data, or of its data in one record, unpadded */
	uint64_t begin;    /* of the first byte in the file */
	size_t attributes; /* where their list begins in the header */
};
struct netcdf {
	unsigned version; /* 1, 2 or 5 */
	uint64_t records;
	uint64_t
		distance; /* from record to record in bytes; 0: no variable has any */
	struct netcdf_dimension *dims;
	size_t ndims;
	vec(struct netcdf_variable) vars; /* in the order of the file */
	size_t attributes; /* where the list of the file's own begins */
	size_t size;       /* bytes of the header */
};
/*
 * Parse the header in the first `n` bytes of a file of `size` bytes.  Return 0; 1 if the
 * header does not end in these bytes and the file is longer: call again with more of
 * them; -EBADMSG with a sentence that names no file, or -ENOMEM.  The caller frees *out
 * after 0.  No memory is taken for a count that the bytes behind it do not bear out.
 */
int netcdf_read(const unsigned char *head, size_t n, uint64_t size,
		struct netcdf *out, struct error *err);
void netcdf_free(struct netcdf *f);
/*
 * Return the attributes of a list in a header that netcdf_read has accepted, as a JSON
 * object: `at` is one of the numbers `attributes` above.  NULL: no memory.
 */
json_t *netcdf_attributes(const unsigned char *head, const struct netcdf *f,
			  size_t at);

/* ---- what a header is made of -------------------------------------------- */

/* The bytes of a header that follow. */
struct netcdf_input {
	const unsigned char *at;
	size_t left;
	bool wide;  /* counts and lengths have 8 bytes (CDF-5) */
	bool ended; /* there were fewer bytes than had to be taken */
};
/* One attribute; its name and values are in the header. */
struct netcdf_attribute {
	const unsigned char *name, *values;
	size_t name_len, n; /* bytes of the name, number of values */
	struct dtype dtype; /* of the values, as stored */
};
/* Take the head of a list whose elements have tag `tag`, which is absent or has *n
 * elements of at least `least` bytes.  Return 0, or -EBADMSG. */
int netcdf_take_list(struct netcdf_input *in, uint32_t tag, size_t least,
		     size_t *n, struct error *err);
/* Take an attribute.  Return 0, or -EBADMSG. */
int netcdf_take_attribute(struct netcdf_input *in, struct netcdf_attribute *out,
			  struct error *err);
#define NETCDF_DIMENSION 10 /* tags of lists */
#define NETCDF_VARIABLE 11
#define NETCDF_ATTRIBUTE 12
/* Return the fewest bytes of an attribute: the lengths of name and values, a type. */
size_t netcdf_attribute_least(const struct netcdf_input *in);

#endif
