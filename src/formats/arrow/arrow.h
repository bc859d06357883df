/* SPDX-License-Identifier: BSD-2-Clause */
/* Arrow IPC files and streams, and Feather version 2: their columns as tensors. */
#ifndef FORMATS_ARROW_ARROW_H
#define FORMATS_ARROW_ARROW_H

#include "formats/source.h"

extern const struct source_ops source_arrow;

#endif
