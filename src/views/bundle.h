/* SPDX-License-Identifier: BSD-2-Clause */
/* tensor.safetensors: all tensors of a directory, or one, as a single file. */
#ifndef VIEWS_BUNDLE_H
#define VIEWS_BUNDLE_H

#include "tensor/tensor.h"

#define BUNDLE_NAME "tensor.safetensors"

/* May one be called so? */
bool bundle_takes_name(const char *name);
/* What a tensor is called in its source, without the groups that it is in; borrowed. */
const char *bundle_name(const struct tensor *t);
/* Has the format a type for it?  Numbers, complex64 and booleans, little-endian. */
bool bundle_takes(const struct tensor *t);

/*
 * Header and places are worked out when they are first asked for, and kept: about 100
 * bytes a tensor.  Tensors lie in the order that Hugging Face's writer has.
 */
struct bundle;
/* Of `t`, which bundle_takes all, called `names` (NULL: as in their sources); both are
 * borrowed, one by one.  NULL: no memory. */
struct bundle *bundle_new(struct tensor *const *t, const char *const *names,
			  size_t n);
/* NULL is nothing. */
void bundle_free(struct bundle *b);
/* Bytes of the file.  -EFBIG: the header would be longer than the format allows; -EEXIST:
 * two names are the same. */
int bundle_size(struct bundle *b, uint64_t *size, struct error *err);
/* As in files_ops. */
int bundle_prepare(struct bundle *b, uint64_t off, uint64_t len,
		   struct error *err);
int bundle_map(const struct bundle *b, uint64_t off, struct plan *plan,
	       struct error *err);

#endif
