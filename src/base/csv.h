/* SPDX-License-Identifier: BSD-2-Clause */
/* Comma-separated values (RFC 4180). */
#ifndef BASE_CSV_H
#define BASE_CSV_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define CSV_FIELDS_MOST 256
/* Called for a row of `n` fields (>= 1) that begins in line `line`.  Any result but 0
 * ends the parsing. */
typedef int csv_row(void *ctx, uint64_t line, char **field, size_t n,
		    struct error *err);
/*
 * Call `row` for every row of the `n` bytes at `text`, which are changed (there must be
 * room for one byte more); fields point into them.  Quoted fields may hold commas,
 * newlines and doubled quotes.  Lines end with "\n" or "\r\n".  A UTF-8 byte order mark
 * at the beginning and empty lines are skipped.  Return 0, what `row` returned, or
 * -EBADMSG with the line: a quote that does not end, text behind a closing quote, a NUL,
 * or too many fields.
 */
int csv_parse(char *text, size_t n, csv_row *row, void *ctx, struct error *err);

#endif
