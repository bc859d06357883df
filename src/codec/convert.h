/* SPDX-License-Identifier: BSD-2-Clause */
/* Convert numbers from one type to another, with the results of H5Tconvert. */
#ifndef CODEC_CONVERT_H
#define CODEC_CONVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/recode.h"

/* The most numbers that one call converts: intermediate values stay in the first-level
 * cache. */
#define CONVERT_MAX 256

/* The bytes of a number of type `number` (enum recode_number), or 0 if there is no such
 * type. */
uint32_t convert_width(uint32_t number);
/* Convert n <= CONVERT_MAX numbers from one native type to another; `in` may be `out`.
 * `swapped` says that they were stored in the other byte order, for which libhdf5
 * converts in another way, with other results in corner cases; convert.c lists these. */
void convert_run(uint32_t from, uint32_t to, bool swapped, const void *in,
		 void *out, size_t n);

#endif
