/* SPDX-License-Identifier: BSD-2-Clause */
/* A directory of arrays as one tensor (option concat=). */
#ifndef FORMATS_REGISTRY_CONCAT_H
#define FORMATS_REGISTRY_CONCAT_H

#include "formats/source.h"

/* Implements source_ops.open for a directory; a->concat is the axis. */
int concat_open(const struct source_args *a, struct source **out,
		struct error *err);

#endif
