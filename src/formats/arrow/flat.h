/* SPDX-License-Identifier: BSD-2-Clause */
/* FlatBuffers, read with every offset checked. */
#ifndef FORMATS_ARROW_FLAT_H
#define FORMATS_ARROW_FLAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A field that is absent has its default.  An offset that leads outside of the data gives
 * the default, too, and sets `bad`, which the caller checks in the end.  Offsets lead
 * forward only, so there are no circles; a table may be reached in several ways.
 */
struct flat {
	const unsigned char *at;
	size_t n; /* bytes at `at`, less than 2^31 */
	bool bad;
};
struct flat_table {
	struct flat *in;
	/* 0: the table is absent, and all fields have their defaults. */
	uint32_t pos;
	uint32_t size; /* of the table itself, in bytes */
	/* Where the offsets of its fields are, and how many. */
	uint32_t fields, n_fields;
};
struct flat_vector {
	struct flat *in;
	/* Position of the first element; number of elements. */
	uint32_t pos, n;
};

struct flat_table flat_root(struct flat *f);
uint64_t flat_unsigned(const struct flat_table *t, unsigned id, unsigned bytes,
		       uint64_t otherwise);
int64_t flat_signed(const struct flat_table *t, unsigned id, unsigned bytes,
		    int64_t otherwise);
struct flat_table flat_child(const struct flat_table *t, unsigned id);
/* A vector whose elements have `bytes` bytes each; all of them are inside the data. */
struct flat_vector flat_list(const struct flat_table *t, unsigned id,
			     unsigned bytes);
/* Return the text, which has no NUL at its end, and set *len; NULL if it is absent. */
const char *flat_text(const struct flat_table *t, unsigned id, size_t *len);
/* Element i < v->n of a vector of tables; each is an offset of 4 bytes. */
struct flat_table flat_element(const struct flat_vector *v, uint32_t i);

#endif
