/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of columns that are not arrays, as lines of JSON. */
#ifndef FORMATS_COLUMNS_JSONLINE_H
#define FORMATS_COLUMNS_JSONLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * Values are written as in formats/hdf5/value/json.h: integers beyond int64 are strings
 * of their digits, bytes are strings of hexadecimal digits, and text that is not
 * UTF-8 is read as Latin-1.  Errors are kept until jsonline_check.
 */
struct jsonline {
	char *at;
	size_t n, room;
	bool too_long, no_memory;
};
/* Largest line, in bytes. */
#define JSONLINE_MAX ((size_t)64 << 20)
/* Append n bytes as they are. */
void jsonline_put(struct jsonline *l, const char *s, size_t n);
static inline void jsonline_char(struct jsonline *l, char c)
{
	jsonline_put(l, &c, 1);
}
/* Append text as a JSON string. */
void jsonline_text(struct jsonline *l, const char *s, size_t n);
/* Append bytes as a string of hexadecimal digits. */
void jsonline_hex(struct jsonline *l, const unsigned char *s, size_t n);
/* Append a little-endian integer of `bytes` bytes: 1, 2, 4 or 8. */
void jsonline_integer(struct jsonline *l, const unsigned char *s,
		      unsigned bytes, bool is_signed);
/* Append a decimal in quotes: "-1.50".  `s` is an integer of n bytes in two's
 * complement, little-endian, to be divided by 10^scale.  If it has too many digits,
 * its bytes are written in hexadecimal. */
void jsonline_decimal(struct jsonline *l, const unsigned char *s, size_t n,
		      int64_t scale);
/* Append a float of 2, 4 or 8 bytes. */
void jsonline_float(struct jsonline *l, const unsigned char *s, unsigned bytes);
/* Return 0, or -ENOTSUP or -ENOMEM if the line could not be written; it is empty
 * then. */
int jsonline_check(struct jsonline *l, struct error *err);
void jsonline_free(struct jsonline *l);

#endif
