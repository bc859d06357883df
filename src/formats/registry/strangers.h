/* SPDX-License-Identifier: BSD-2-Clause */
/* Recognise files that are not sources by their first bytes: what they are, and what to
 * do instead. */
#ifndef FORMATS_REGISTRY_STRANGERS_H
#define FORMATS_REGISTRY_STRANGERS_H

#include <stddef.h>

struct stranger {
	const char *is; /* "a PNG image" */
	/* The remedy: "convert it to HDF5 with ..."; NULL: none. */
	const char *then;
};
/* Return what these first bytes are, or what the suffix of `path` says where bytes do not
 * tell; NULL if they are unknown. */
const struct stranger *stranger_of(const unsigned char *head, size_t n,
				   const char *path);

#endif
