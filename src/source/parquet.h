/* SPDX-License-Identifier: BSD-2-Clause */
/* Parquet files: their plain columns as tensors. */
#ifndef SOURCE_PARQUET_H
#define SOURCE_PARQUET_H

#include "source/source.h"

extern const struct source_ops source_parquet;

#endif
