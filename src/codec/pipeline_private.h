/* SPDX-License-Identifier: BSD-2-Clause */
/* Scratch memory of a thread, which decoding and encoding share. */
#ifndef CODEC_PIPELINE_PRIVATE_H
#define CODEC_PIPELINE_PRIVATE_H

#include "codec/pipeline.h"

enum scratch { SCRATCH_A, SCRATCH_B, SCRATCH_STORED, SCRATCHES };
/* A buffer of at least `size` bytes, contents undefined, valid until the next call for
 * `which`; NULL if memory is out. */
void *scratch_get(enum scratch which, size_t size);
/* Free the buffer if it is larger than PIPELINE_SCRATCH_KEEP. */
void scratch_trim(enum scratch which);

#endif
