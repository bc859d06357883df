/* SPDX-License-Identifier: BSD-2-Clause */
/* Comma-separated values (RFC 4180). */
#ifndef BASE_CSV_H
#define BASE_CSV_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define CSV_FIELDS_MOST 256
/* A row of `n` fields (>= 1); it begins in line `line`.  Not 0: the end. */
typedef int csv_row(void *ctx, uint64_t line, char **field, size_t n,
		    struct error *err);
/*
 * Every row of `n` bytes at `text` (with room for one more; changed; fields point into
 * it).  Quotes with commas, newlines and doubled quotes in them; lines end with "\n" or
 * "\r\n"; a mark of UTF-8 at the beginning and empty lines are skipped.  -EBADMSG with the
 * line: a quote that does not end, or text behind one, a NUL, too many fields; or what
 * `row` returned.
 */
int csv_parse(char *text, size_t n, csv_row *row, void *ctx, struct error *err);

#endif
