/* SPDX-License-Identifier: BSD-2-Clause */
/* Refuses options that have no effect. */
#ifndef APP_OPTIONS_FIT_H
#define APP_OPTIONS_FIT_H

#include "app/cli.h"

/* Check the options of run and mount that need another option.  Return 0, or CLI_USAGE
 * after a sentence on stderr. */
int options_check(const struct command *c, const struct settings *s);
/* Check for options that apply to none of the open sources.  Return 0, or SOURCE_USAGE
 * with a sentence. */
int options_fit(const struct settings *s, struct source *const *sources,
		size_t n, struct error *err);

#endif
