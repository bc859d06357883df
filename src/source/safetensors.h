/* SPDX-License-Identifier: BSD-2-Clause */
/* .safetensors files as tensors. */
#ifndef SOURCE_SAFETENSORS_H
#define SOURCE_SAFETENSORS_H

#include "source/source.h"

extern const struct source_ops source_safetensors;

#endif
