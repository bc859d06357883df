/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides which files of a mount other users may read. */
#ifndef APP_AUDIENCE_H
#define APP_AUDIENCE_H

#include "app/cli.h"

/* Call before the sources are opened.  With allow_other, limits which files may be shown
 * (extent/guard.h).  Return 0 or -ENOMEM. */
int audience_limit(struct handles *h, char *const *paths, size_t n,
		   const struct settings *set, struct error *err);
/* Call when all sources are open.  Return true if files must have mode 0400 instead of
 * 0444.  If it returns false with allow_other, files that other users may not read are
 * refused from now on. */
bool audience_owner_only(struct handles *h, char *const *paths, size_t n,
			 const struct settings *set);

#endif
