/* SPDX-License-Identifier: BSD-2-Clause */
/* One type of number becomes another, as H5Tconvert has it. */
#ifndef CODEC_CONVERT_H
#define CODEC_CONVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/recode.h"

/* Numbers at once: what is in between stays in the nearest cache. */
#define CONVERT_MAX 256

/* Bytes of an enum recode_number; 0: there is no such number. */
uint32_t convert_width(uint32_t number);
/* n <= CONVERT_MAX numbers, both native; `in` may be `out`.  `swapped`: they were
 * stored in the other byte order, for which libhdf5 has another way, with other
 * results in corners; convert.c lists these. */
void convert_run(uint32_t from, uint32_t to, bool swapped, const void *in,
		 void *out, size_t n);

#endif
