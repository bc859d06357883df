/* SPDX-License-Identifier: BSD-2-Clause */
/* tensor.safetensors: all tensors of a directory, or one, as a single file. */
#ifndef VIEWS_BUNDLE_H
#define VIEWS_BUNDLE_H

#include "tensor/tensor.h"

#define BUNDLE_NAME "tensor.safetensors"

/* May a tensor have this name in the file? "__metadata__" is reserved. */
bool bundle_takes_name(const char *name);
/* Return a tensor's name in its source, without the groups that it is in; borrowed. */
const char *bundle_name(const struct tensor *t);
/* Can the file hold the tensor?  It can hold numbers, complex64 and booleans,
 * little-endian. */
bool bundle_takes(const struct tensor *t);

/*
 * The header and the tensors' offsets are computed when they are first needed, and
 * kept: about 100 bytes for each tensor.  Tensors lie in the order that Hugging Face's
 * writer gives them.
 */
struct bundle;
/* Make a bundle of the tensors `t`, for all of which bundle_takes is true, called
 * `names` (NULL: as in their sources).  The tensors and names are borrowed, the two
 * arrays are copied.  Return NULL without memory. */
struct bundle *bundle_new(struct tensor *const *t, const char *const *names,
			  size_t n);
/* Free a bundle, which may be NULL. */
void bundle_free(struct bundle *b);
/* Set *size to the bytes of the file.  Return 0; -EFBIG if the header would be longer
 * than the format allows; -EEXIST if two names are the same; -ENOMEM. */
int bundle_size(struct bundle *b, uint64_t *size, struct error *err);
/* As prepare and map of files_ops. */
int bundle_prepare(struct bundle *b, uint64_t off, uint64_t len,
		   struct error *err);
int bundle_map(const struct bundle *b, uint64_t off, struct plan *plan,
	       struct error *err);

#endif
