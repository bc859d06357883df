/* SPDX-License-Identifier: BSD-2-Clause */
/* Values written as lines, with where each sample's lines end. */
#ifndef TENSOR_LINES_H
#define TENSOR_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Lines as they come from the source. */
struct lines {
	char *text;
	size_t used, room;
	uint32_t *offset;
	uint64_t samples, sample_values, values;
	bool failed;
};

/* A value: backslashes and newlines escaped, a newline behind it. */
void lines_put(void *lines, const char *s, size_t len);

#endif
