/* SPDX-License-Identifier: BSD-2-Clause */
/* .safetensors files as tensors. */
#ifndef FORMATS_SAFETENSORS_SAFETENSORS_H
#define FORMATS_SAFETENSORS_SAFETENSORS_H

#include "formats/source.h"

extern const struct source_ops source_safetensors;

#endif
