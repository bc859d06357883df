/* SPDX-License-Identifier: BSD-2-Clause */
/* `tensorfs verify --against=READER`: starts the program that compares a mount with a
 * reader. */
#ifndef APP_AGAINST_H
#define APP_AGAINST_H

#include "app/cli.h"

/* Return 0 if a mount can be compared with `reader`, else -EINVAL and a sentence with
 * the list of readers. */
int against_check_reader(const char *reader, struct error *err);
/* Replace this process by the program that mounts `source` and compares it with what
 * s->against reads; that program has the exit status of verify.  Return only on failure:
 * an exit code, after a sentence on stderr. */
int against_exec(const struct command *c, const struct settings *s,
		 const char *source);

#endif
