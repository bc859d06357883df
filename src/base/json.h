/* SPDX-License-Identifier: BSD-2-Clause */
/* What jansson does not do: text of unknown encoding, numbers that JSON lacks. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>
#include <stdio.h>

/* A string of any bytes: what is not UTF-8 is read as Latin-1. */
json_t *json_text(const char *s, size_t len);
/* A JSON string, quotes included.  A byte that is not UTF-8 becomes \udcXX, as Python's
 * surrogateescape. */
void json_put_text(FILE *out, const char *s);
/* As json_dumps, with the fewest digits of each number that make the same double
 * again. */
char *json_exact(const json_t *j, size_t flags);
/* A finite number, or "NaN", "Infinity", "-Infinity". */
json_t *json_number(double v);

#endif
