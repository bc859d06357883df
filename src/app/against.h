/* SPDX-License-Identifier: BSD-2-Clause */
/* tensorfs verify --against=READER: the program that compares a mount with a reader. */
#ifndef APP_AGAINST_H
#define APP_AGAINST_H

#include "app/cli.h"

/* Is `reader` one that can be compared with?  Else -EINVAL and a sentence with the list. */
int against_check_reader(const char *reader, struct error *err);
/* Replace this process by the program that mounts `source` and compares it with what
 * s->against reads; it has the exit status of verify.  Returns only on failure: an exit
 * code, after a sentence on stderr. */
int against_exec(const struct command *c, const struct settings *s,
		 const char *source);

#endif
