/* SPDX-License-Identifier: BSD-2-Clause */
/* Options that change nothing are refused. */
#ifndef APP_OPTIONS_FIT_H
#define APP_OPTIONS_FIT_H

#include "app/cli.h"

/* Of run and mount: those that need another one.  0, or CLI_USAGE and a sentence on
 * stderr. */
int options_check(const struct command *c, const struct settings *s);
/* Those that none of the open sources has a use for: SOURCE_USAGE and a sentence. */
int options_fit(const struct settings *s, struct source *const *sources,
		size_t n, struct error *err);

#endif
