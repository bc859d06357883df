/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that are no source, by their first bytes: what they are, and what to do. */
#ifndef FORMATS_REGISTRY_STRANGERS_H
#define FORMATS_REGISTRY_STRANGERS_H

#include <stddef.h>

struct stranger {
	const char *is; /* "a PNG image" */
	const char
		*then; /* "convert it to HDF5 with ..."; NULL: nothing to say */
};
/* NULL: nobody knows these bytes.  `path` is looked at where bytes do not say it. */
const struct stranger *stranger_of(const unsigned char *head, size_t n,
				   const char *path);

#endif
