/* SPDX-License-Identifier: BSD-2-Clause */
/* A typed growable array: vec(struct part) parts = VEC_EMPTY. */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#define vec(type)               \
	struct {                \
		type *at;       \
		size_t n, room; \
	}
#define VEC_EMPTY          \
	{                  \
		NULL, 0, 0 \
	}

/* Make room for one more element of `size` bytes.  Return false if memory is out. */
static inline bool vec_grow(void **at, size_t n, size_t *room, size_t size)
{
	size_t want = *room ? *room * 2 : 8;
	void *p;

	if (n < *room)
		return true;
	if (want < *room || want > (size_t)-1 / size)
		return false;
	p = realloc(*at, want * size);
	if (!p)
		return false;
	*at = p;
	*room = want;
	return true;
}
/* Append a value.  False if memory is out. */
#define vec_push(v, value)                                                \
	(vec_grow((void **)&(v)->at, (v)->n, &(v)->room, sizeof *(v)->at) \
		 ? ((v)->at[(v)->n++] = (value), true)                    \
		 : false)
#define vec_free(v) (free((v)->at), (v)->at = NULL, (v)->n = (v)->room = 0)

#endif
