/* SPDX-License-Identifier: BSD-2-Clause */
/* Scratch memory of a thread that decoding and encoding share. */
#ifndef CODEC_PIPELINE_PRIVATE_H
#define CODEC_PIPELINE_PRIVATE_H

#include "codec/pipeline.h"

enum scratch { SCRATCH_A, SCRATCH_B, SCRATCH_STORED, SCRATCHES };
/* At least `size` bytes, contents undefined; NULL when memory is out. */
void *scratch_get(enum scratch which, size_t size);
/* Give it up when it is larger than PIPELINE_SCRATCH_KEEP. */
void scratch_trim(enum scratch which);

#endif
