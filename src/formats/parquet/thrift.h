/* SPDX-License-Identifier: BSD-2-Clause */
/* Thrift's compact protocol, read from memory with every length checked. */
#ifndef FORMATS_PARQUET_THRIFT_H
#define FORMATS_PARQUET_THRIFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum thrift_type {
	THRIFT_STOP,
	THRIFT_TRUE,
	THRIFT_FALSE,
	THRIFT_BYTE,
	THRIFT_I16,
	THRIFT_I32,
	THRIFT_I64,
	THRIFT_DOUBLE,
	THRIFT_BINARY,
	THRIFT_LIST,
	THRIFT_SET,
	THRIFT_MAP,
	THRIFT_STRUCT
};
/* After damage everything reads as empty: numbers are 0, structures end, and `bad` is
 * set. */
struct thrift {
	const unsigned char *at;
	size_t n, pos;
	bool bad;
};
struct thrift_field {
	int32_t id; /* the caller sets it to 0 before the first field */
	unsigned type;
};
/* Read the header of a structure's next field; return false at the end of the structure.
 * The caller must read or skip the field's value before the next call. */
bool thrift_next(struct thrift *t, struct thrift_field *f);
void thrift_skip(struct thrift *t, unsigned type);
/* Read the value of a field, whose type must fit.  Otherwise set `bad` and return an
 * empty value. */
int64_t thrift_number(struct thrift *t, const struct thrift_field *f);
bool thrift_bool(struct thrift *t, const struct thrift_field *f);
const char *thrift_text(struct thrift *t, const struct thrift_field *f,
			size_t *len);
/* Begin a list: return how many elements follow, and set *type to their type. */
uint32_t thrift_list(struct thrift *t, const struct thrift_field *f,
		     unsigned *type);
/* Begin a list of structures: return how many follow. */
uint32_t thrift_structs(struct thrift *t, const struct thrift_field *f);
bool thrift_struct(struct thrift *t, const struct thrift_field *f);

#endif
