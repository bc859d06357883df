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
/* After damage all is empty: numbers are 0, structures end, `bad` is set. */
struct thrift {
	const unsigned char *at;
	size_t n, pos;
	bool bad;
};
struct thrift_field {
	int32_t id; /* 0 before the first one */
	unsigned type;
};
/* The next field of a structure; false at its end.  Its value is to be read or
 * skipped before the next. */
bool thrift_next(struct thrift *t, struct thrift_field *f);
void thrift_skip(struct thrift *t, unsigned type);
/* The field's value if it is of a kind that fits, else skipped and `bad`. */
int64_t thrift_number(struct thrift *t, const struct thrift_field *f);
bool thrift_bool(struct thrift *t, const struct thrift_field *f);
const char *thrift_text(struct thrift *t, const struct thrift_field *f,
			size_t *len);
/* How many elements follow, all of type *type. */
uint32_t thrift_list(struct thrift *t, const struct thrift_field *f,
		     unsigned *type);
/* The same for a list of structures. */
uint32_t thrift_structs(struct thrift *t, const struct thrift_field *f);
bool thrift_struct(struct thrift *t, const struct thrift_field *f);

#endif
