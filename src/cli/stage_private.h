/* SPDX-License-Identifier: BSD-2-Clause */
/* How a request becomes what the staging layer knows it by. */
#ifndef CLI_STAGE_PRIVATE_H
#define CLI_STAGE_PRIVATE_H

#include "cli/stage.h"

struct stage_texts {
	char *name, *source, *options;
};
/* *want points into *texts, which is to be freed also after a failure: -errno of
 * looking for a source, or -ENOMEM. */
int stage_want(const struct stage_request *q, const struct settings *s,
	       struct staging_want *want, struct stage_texts *texts,
	       struct error *err);
void stage_texts_free(struct stage_texts *t);

#endif
