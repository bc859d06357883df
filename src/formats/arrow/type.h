/* SPDX-License-Identifier: BSD-2-Clause */
/* The types of Arrow, and the element type that a column gets from them. */
#ifndef FORMATS_ARROW_TYPE_H
#define FORMATS_ARROW_TYPE_H

#include "formats/arrow/schema.h"

/* Types as the union Type of Schema.fbs numbers them. */
enum {
	T_NULL = 1,
	T_INT,
	T_FLOAT,
	T_BINARY,
	T_UTF8,
	T_BOOL,
	T_DECIMAL,
	T_DATE,
	T_TIME,
	T_TIMESTAMP,
	T_INTERVAL,
	T_LIST,
	T_STRUCT,
	T_UNION,
	T_FIXED_BINARY,
	T_FIXED_LIST,
	T_MAP,
	T_DURATION,
	T_LARGE_BINARY,
	T_LARGE_UTF8,
	T_LARGE_LIST,
	T_RUNS,
	T_BINARY_VIEW,
	T_UTF8_VIEW,
	T_LIST_VIEW,
	T_LARGE_LIST_VIEW,
	T_KNOWN /* larger numbers are newer than this program */
};
/* Return true if the rows of the field are numbers of values in a dictionary. */
static inline bool arrow_is_dictionary(const struct flat_table *field)
{
	return flat_child(field, 4).pos;
}
/* Set the column's element type from `type`, whose table is `of`; a type that is not
 * supported sets kind ARROW_NOT.  Returns 0 or -ENOMEM. */
int arrow_type_read(struct arrow_column *c, const struct flat_table *field,
		    uint64_t type, const struct flat_table *of);
/* Note that the column is only listed, and why its values are not shown; returns 0. */
int arrow_not_shown(struct arrow_column *c, const char *why);

#endif
