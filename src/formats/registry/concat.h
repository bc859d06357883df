/* SPDX-License-Identifier: BSD-2-Clause */
/* A directory of arrays as one tensor (option concat=). */
#ifndef FORMATS_REGISTRY_CONCAT_H
#define FORMATS_REGISTRY_CONCAT_H

#include "formats/source.h"

/* a->concat says along which axis.  source_ops.open. */
int concat_open(const struct source_args *a, struct source **out,
		struct error *err);

#endif
