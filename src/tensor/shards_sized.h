/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the members of shards are, of samples that differ in size. */
#ifndef TENSOR_SHARDS_SIZED_H
#define TENSOR_SHARDS_SIZED_H

struct shards_sized;
/* NULL is nothing. */
void shards_sized_free(struct shards_sized *x);

#endif
