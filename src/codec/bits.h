/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading numbers out of a stream of bits, most significant bits first. */
#ifndef CODEC_BITS_H
#define CODEC_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"

/*
 * Bit 0 of the stream is the highest bit of byte 0.  The caller has to know that the bits
 * are there: nothing is checked here, so that a value costs one load and two shifts.
 */
struct bits {
	const unsigned char *in;
	size_t len;  /* in bytes */
	uint64_t at; /* number of the next bit */
};

/* The number of bytes that hold `bits` bits. */
static inline uint64_t bits_bytes(uint64_t bits)
{
	return bits / 8 + (bits % 8 != 0);
}

/* Return the next `n` bits (1 to 64) as a number; at + n <= 8 * len must hold. */
static inline uint64_t bits_take(struct bits *b, unsigned n)
{
	size_t byte = (size_t)(b->at / 8);
	unsigned skip = b->at % 8;
	const unsigned char *p = b->in + byte;
	unsigned char tail[9] = {0};
	uint64_t v;

	if (b->len - byte < sizeof tail) {
		memcpy(tail, p, b->len - byte);
		p = tail;
	}
	v = load_be64(p) << skip | (unsigned)p[8] >> (8 - skip);
	b->at += n;
	return v >> (64 - n);
}

/* Store the low `size` bytes of `v`, in either byte order. */
static inline void bits_store(unsigned char *out, uint64_t v, unsigned size,
			      bool big_endian)
{
	if (big_endian)
		for (unsigned i = 0; i < size; i++)
			out[i] = (unsigned char)(v >> 8 * (size - 1 - i));
	else
		for (unsigned i = 0; i < size; i++)
			out[i] = (unsigned char)(v >> 8 * i);
}

#endif
