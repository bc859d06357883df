/* SPDX-License-Identifier: BSD-2-Clause */
/* Equal bytes kept once: what a thousand parts have in common. */
#ifndef BASE_INTERN_H
#define BASE_INTERN_H

#include <pthread.h>
#include <stddef.h>

struct intern_entry;
struct intern {
	pthread_mutex_t lock; /* protects `first` */
	struct intern_entry *first;
};
void intern_init(struct intern *in);
/* A kept copy of these bytes (8-aligned), valid until intern_free; NULL when
 * memory is out.  Padding counts: clear structures before filling them in. */
const void *intern_bytes(struct intern *in, const void *data, size_t n);
void intern_free(struct intern *in);

#endif
