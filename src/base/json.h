/* SPDX-License-Identifier: BSD-2-Clause */
/* What jansson lacks: text of unknown encoding, numbers that JSON does not have. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>
#include <stdio.h>

/* Make a string of any bytes: those that are not UTF-8 are read as Latin-1.  NULL if
 * memory is out. */
json_t *json_text(const char *s, size_t len);
/* Write a JSON string, quotes included.  A byte that is not UTF-8 becomes \udcXX, as with
 * Python's surrogateescape. */
void json_put_text(FILE *out, const char *s);
/* As json_dumps, but each real number has the fewest digits that make the same double
 * again.  The caller frees the text; NULL if memory is out. */
char *json_exact(const json_t *j, size_t flags);
/* Make a number if `v` is finite, else the string "NaN", "Infinity" or "-Infinity". */
json_t *json_number(double v);

#endif
