/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of columns that are no array, as lines of JSON. */
#ifndef FORMATS_COLUMNS_JSONLINE_H
#define FORMATS_COLUMNS_JSONLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * As formats/hdf5/value/json.h has it: integers beyond int64 are strings of their digits, bytes are
 * strings of hexadecimal digits, what is not UTF-8 is read as Latin-1.
 */
struct jsonline {
	char *at;
	size_t n, room;
	bool too_long, no_memory;
};
/* Of one line. */
#define JSONLINE_MAX ((size_t)64 << 20)
void jsonline_put(struct jsonline *l, const char *s, size_t n);
static inline void jsonline_char(struct jsonline *l, char c)
{
	jsonline_put(l, &c, 1);
}
void jsonline_text(struct jsonline *l, const char *s, size_t n);
void jsonline_hex(struct jsonline *l, const unsigned char *s, size_t n);
/* `bytes` of a little-endian number: 1, 2, 4 or 8. */
void jsonline_integer(struct jsonline *l, const unsigned char *s,
		      unsigned bytes, bool is_signed);
/* A decimal, in quotes: "-1.50".  `s` is an integer of n bytes in two's complement,
 * little-endian, to be divided by 10^scale; where that has too many digits, hexadecimal. */
void jsonline_decimal(struct jsonline *l, const unsigned char *s, size_t n,
		      int64_t scale);
/* 2, 4 or 8 bytes. */
void jsonline_float(struct jsonline *l, const unsigned char *s, unsigned bytes);
/* 0, or what went wrong with the line, which then is empty. */
int jsonline_check(struct jsonline *l, struct error *err);
void jsonline_free(struct jsonline *l);

#endif
