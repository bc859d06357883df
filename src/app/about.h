/* SPDX-License-Identifier: BSD-2-Clause */
/* Print what a source reports about itself as lines for people. */
#ifndef APP_ABOUT_H
#define APP_ABOUT_H

#include <jansson.h>
#include <stdio.h>

/* Print the object that source_ops.about returned: a line for each key, and a line for
 * each entry of a list.  Numbers that are 0 and empty values are left out. */
void about_print(const json_t *o, FILE *out);
/* Print text with each control character replaced by '?', because a terminal may take it
 * for a command. */
void about_say(const char *text, FILE *out);

#endif
