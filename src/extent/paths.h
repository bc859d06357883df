/* SPDX-License-Identifier: BSD-2-Clause */
/* A growing set of paths, numbered from 0 in the order of their addition. */
#ifndef EXTENT_PATHS_H
#define EXTENT_PATHS_H

#include <stddef.h>
#include <stdint.h>

#define PATHS_NONE UINT32_MAX

/* Zeros are an empty set.  Not thread-safe: handles.c guards it. */
struct paths {
	/* By number; strings are never moved or freed before paths_free. */
	char **at;
	size_t n, room;
	uint32_t *slots; /* hash table of number + 1; 0 is a free slot */
	size_t nslots;   /* a power of two, or 0 */
};

/* Return the number of `path`, which is copied if it is new; PATHS_NONE if memory ran
 * out. */
uint32_t paths_add(struct paths *p, const char *path);
void paths_free(struct paths *p);

#endif
