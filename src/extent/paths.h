/* SPDX-License-Identifier: BSD-2-Clause */
/* A growing set of paths, numbered from 0 in the order they came. */
#ifndef EXTENT_PATHS_H
#define EXTENT_PATHS_H

#include <stddef.h>
#include <stdint.h>

#define PATHS_NONE UINT32_MAX

/* Zeros are an empty set.  Not thread-safe: handles.c guards it. */
struct paths {
	char **at; /* by number; each string stays where it is */
	size_t n, room;
	uint32_t *slots; /* hash table: number + 1, 0: free */
	size_t nslots;   /* a power of two, or 0 */
};

/* The number of `path`, which is copied if it is new; PATHS_NONE: no memory. */
uint32_t paths_add(struct paths *p, const char *path);
void paths_free(struct paths *p);

#endif
