/* SPDX-License-Identifier: BSD-2-Clause */
/* Equal bytes kept once: what a thousand parts have in common. */
#include "base/intern.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

struct intern_entry {
	struct intern_entry *next;
	size_t n;
	_Alignas(8) unsigned char bytes[];
};

void intern_init(struct intern *in)
{
	pthread_mutex_init(&in->lock, NULL);
	in->first = NULL;
}

/* A list, with what was found moved to its front: there are few kinds, and the
 * next part is mostly like the last one. */
const void *intern_bytes(struct intern *in, const void *data, size_t n)
{
	struct intern_entry **at, *e;

	lock_scope(&in->lock);
	for (at = &in->first; (e = *at); at = &e->next)
		if (e->n == n && !memcmp(e->bytes, data, n))
			break;
	if (e) {
		*at = e->next;
	} else {
		e = malloc(sizeof *e + n);
		if (!e)
			return NULL;
		e->n = n;
		memcpy(e->bytes, data, n);
	}
	e->next = in->first;
	in->first = e;
	return e->bytes;
}

void intern_free(struct intern *in)
{
	while (in->first) {
		struct intern_entry *e = in->first;

		in->first = e->next;
		free(e);
	}
	pthread_mutex_destroy(&in->lock);
}
