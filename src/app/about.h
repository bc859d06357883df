/* SPDX-License-Identifier: BSD-2-Clause */
/* What sources tell of themselves, for people. */
#ifndef APP_ABOUT_H
#define APP_ABOUT_H

#include <jansson.h>
#include <stdio.h>

/* What source_ops.about gave: a line for each key, lists as lines; numbers that are
 * 0, and what is empty, are left out. */
void about_print(const json_t *o, FILE *out);
/* Text with what a terminal may take for a command replaced. */
void about_say(const char *text, FILE *out);

#endif
