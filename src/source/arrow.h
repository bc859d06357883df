/* SPDX-License-Identifier: BSD-2-Clause */
/* Arrow IPC files, streams, Feather (version 2): their columns as tensors. */
#ifndef SOURCE_ARROW_H
#define SOURCE_ARROW_H

#include "source/source.h"

extern const struct source_ops source_arrow;

#endif
