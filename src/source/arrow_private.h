/* SPDX-License-Identifier: BSD-2-Clause */
/* Arrow IPC: what is kept of a file between reading its head and its columns. */
#ifndef SOURCE_ARROW_PRIVATE_H
#define SOURCE_ARROW_PRIVATE_H

#include "base/vec.h"
#include "source/arrays.h"
#include "source/arrow_schema.h"

/* A column's part of one batch, at places of the file. */
struct arrow_part {
	struct arrow_piece piece;
	enum arrow_codec codec;
};
struct arrow_own {
	const struct arrow_column *column; /* the source's */
	vec(struct arrow_part) parts;      /* those that have rows */
};
struct arrow {
	struct arrays arrays; /* first member */
	struct arrow_schema schema;
	uint64_t rows;
	struct arrow_own **own; /* of each column; moves to its array */
};

/* What a writer may have aligned a buffer to. */
#define ARROW_PADDING 4096
/* A compressed buffer, decoded: at least `least` bytes (malloc'ed). */
int arrow_buffer_read(const struct arrays *s, enum arrow_codec codec,
		      uint64_t pos, uint64_t size, uint64_t least,
		      uint64_t most, unsigned char **out, uint64_t *out_size,
		      struct error *err);
/* Of columns whose rows vary. */
extern const struct array_ops arrow_values_ops;
uint64_t arrow_values_mean(const struct arrow_own *own);
/* Is looking at one of them work? */
bool arrow_values_costly(const struct array *a);
/* array_ops of all of them. */
json_t *arrow_own_attributes(const struct array *a);
void arrow_own_done(struct array *a);
/* The array of column `i`, from its parts. */
int arrow_array(struct arrow *s, uint32_t i, struct array **out,
		struct error *err);
void arrow_own_free(struct arrow_own *own);

#endif
