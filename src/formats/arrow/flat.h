/* SPDX-License-Identifier: BSD-2-Clause */
/* FlatBuffers, read with every offset checked. */
#ifndef FORMATS_ARROW_FLAT_H
#define FORMATS_ARROW_FLAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What is asked for and is not there has its default; what leads outside has it, too,
 * and sets `bad`, which the caller looks at in the end.  Offsets lead forward only, so
 * there are no circles; the same table may be reached twice.
 */
struct flat {
	const unsigned char *at;
	size_t n; /* < 2^31 */
	bool bad;
};
struct flat_table {
	struct flat *in;
	uint32_t pos;  /* 0: there is none, all its fields are defaults */
	uint32_t size; /* of the table itself, bytes */
	uint32_t fields, n_fields; /* where its offsets are */
};
struct flat_vector {
	struct flat *in;
	uint32_t pos, n; /* of the first element; how many */
};

struct flat_table flat_root(struct flat *f);
uint64_t flat_unsigned(const struct flat_table *t, unsigned id, unsigned bytes,
		       uint64_t otherwise);
int64_t flat_signed(const struct flat_table *t, unsigned id, unsigned bytes,
		    int64_t otherwise);
struct flat_table flat_child(const struct flat_table *t, unsigned id);
/* Elements of `bytes` each, all of them inside. */
struct flat_vector flat_list(const struct flat_table *t, unsigned id,
			     unsigned bytes);
/* The text, without a NUL at its end; NULL: there is none. */
const char *flat_text(const struct flat_table *t, unsigned id, size_t *len);
/* Element i < v->n of a vector of tables (4 bytes each). */
struct flat_table flat_element(const struct flat_vector *v, uint32_t i);

#endif
