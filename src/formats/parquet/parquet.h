/* SPDX-License-Identifier: BSD-2-Clause */
/* Parquet files: their columns as tensors. */
#ifndef FORMATS_PARQUET_PARQUET_H
#define FORMATS_PARQUET_PARQUET_H

#include "formats/source.h"

extern const struct source_ops source_parquet;

#endif
