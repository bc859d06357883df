/* SPDX-License-Identifier: BSD-2-Clause */
/* Equal bytes kept once: what a thousand parts have in common. */
#ifndef BASE_INTERN_H
#define BASE_INTERN_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

struct intern_entry;
struct intern_slab;
struct intern {
	pthread_mutex_t lock; /* protects everything below */
	struct intern_entry **bucket;
	size_t buckets; /* 0 or a power of two */
	size_t entries;
	struct intern_slab *slabs; /* memory of entries, the open one first */
	size_t memory;             /* bytes taken from malloc */
	uint64_t key[2];           /* of SipHash */
};
void intern_init(struct intern *in);
/* Return a copy of these bytes (8-aligned) that is valid until intern_free, or NULL if
 * memory is out.  Equal bytes have one address.  Padding counts: clear structures before
 * filling them in.  Thread-safe. */
const void *intern_bytes(struct intern *in, const void *data, size_t n);
/* As intern_bytes for a string, its NUL included. */
const char *intern_text(struct intern *in, const char *text);
/* The bytes of memory that the table takes. */
size_t intern_memory(struct intern *in);
void intern_free(struct intern *in);

#endif
