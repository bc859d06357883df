/* SPDX-License-Identifier: BSD-2-Clause */
/* What a fuzz target is: libFuzzer's entry, and help to take inputs apart. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Any bytes; returns 0, or does not return when a property does not hold. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A property that must hold whatever the input. */
#define FUZZ_CHECK(cond)                                                   \
	do {                                                               \
		if (!(cond)) {                                             \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, \
				__LINE__, #cond);                          \
			abort();                                           \
		}                                                          \
	} while (0)

/* What is left of an input. */
struct fuzz_input {
	const uint8_t *data;
	size_t size;
};

/* The next byte; 0 when there is none. */
static inline uint8_t fuzz_u8(struct fuzz_input *in)
{
	if (!in->size)
		return 0;
	in->size--;
	return *in->data++;
}
/* The next two or four bytes, little-endian. */
static inline uint16_t fuzz_u16(struct fuzz_input *in)
{
	uint16_t low = fuzz_u8(in);

	return (uint16_t)(low | fuzz_u8(in) << 8);
}
static inline uint32_t fuzz_u32(struct fuzz_input *in)
{
	uint32_t low = fuzz_u16(in);

	return low | (uint32_t)fuzz_u16(in) << 16;
}

#endif
