/* SPDX-License-Identifier: BSD-2-Clause */
/* Equal bytes kept once: what a thousand parts have in common. */
#include "base/intern.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"

/*
 * A hash table with chains.  Entries are never removed, so they are cut one behind the
 * other from slabs: an entry costs 16 bytes and rounding to 8 in addition to its bytes,
 * and half a pointer in the table.  A large entry gets a slab of its own.
 *
 * Interned bytes are names and shapes out of untrusted files.  The hash is therefore
 * SipHash-1-3 with a key that is new in every table: a file cannot be made so that its
 * hundred thousand names all meet in one chain.
 */
#define SLAB ((size_t)32 << 10)
#define LARGE (SLAB / 8)

struct intern_entry {
	struct intern_entry *next;
	uint32_t hash;
	uint32_t n;
	_Alignas(8) unsigned char bytes[];
};
struct intern_slab {
	struct intern_slab *next;
	size_t used, size; /* in bytes */
	_Alignas(8) unsigned char bytes[];
};

void intern_init(struct intern *in)
{
	memset(in, 0, sizeof *in);
	pthread_mutex_init(&in->lock, NULL);
	/* Without random numbers the address is the key: slower at worst. */
	if (getrandom(in->key, sizeof in->key, GRND_NONBLOCK) !=
	    (ssize_t)sizeof in->key)
		in->key[0] = (uint64_t)(uintptr_t)in;
}

static uint64_t rotate_left(uint64_t x, unsigned by)
{
	return x << by | x >> (64 - by);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotate_left(v[1], 13) ^ v[0];
	v[0] = rotate_left(v[0], 32);
	v[2] += v[3];
	v[3] = rotate_left(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotate_left(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotate_left(v[1], 17) ^ v[2];
	v[2] = rotate_left(v[2], 32);
}

/* SipHash-1-3: one round for each word, three at the end.  Words are in the machine's
 * byte order. */
static uint32_t intern_hash(const uint64_t key[2], const unsigned char *p,
			    size_t n)
{
	uint64_t v[4] = {key[0] ^ UINT64_C(0x736f6d6570736575),
			 key[1] ^ UINT64_C(0x646f72616e646f6d),
			 key[0] ^ UINT64_C(0x6c7967656e657261),
			 key[1] ^ UINT64_C(0x7465646279746573)};
	uint64_t word;
	size_t left = n;

	for (; left >= 8; left -= 8, p += 8) {
		memcpy(&word, p, 8);
		v[3] ^= word;
		sip_round(v);
		v[0] ^= word;
	}
	word = 0;
	if (left)
		memcpy(&word, p, left);
	word |= (uint64_t)n << 56;
	v[3] ^= word;
	sip_round(v);
	v[0] ^= word;
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(v);
	word = v[0] ^ v[1] ^ v[2] ^ v[3];
	return (uint32_t)(word ^ word >> 32);
}

/* Take `size` bytes from the open slab, or from a new one if they do not fit. */
static void *intern_cut_from_slab(struct intern *in, size_t size)
{
	struct intern_slab *s = in->slabs;
	size_t room = size > LARGE ? size : SLAB - sizeof *s;

	if (!s || s->size - s->used < size) {
		s = malloc(sizeof *s + room);
		if (!s)
			return NULL;
		in->memory += sizeof *s + room;
		s->used = 0;
		s->size = room;
		/* A slab that is full at once goes behind the open one. */
		if (size > LARGE && in->slabs) {
			s->next = in->slabs->next;
			in->slabs->next = s;
		} else {
			s->next = in->slabs;
			in->slabs = s;
		}
	}
	s->used += size;
	return s->bytes + s->used - size;
}

/* Double the buckets.  Without memory for them chains get longer instead. */
static void intern_double_buckets(struct intern *in)
{
	size_t n = in->buckets ? in->buckets * 2 : 16;
	struct intern_entry **bucket = calloc(n, sizeof *bucket);

	if (!bucket)
		return;
	for (size_t i = 0; i < in->buckets; i++)
		while (in->bucket[i]) {
			struct intern_entry *e = in->bucket[i];

			in->bucket[i] = e->next;
			e->next = bucket[e->hash & (n - 1)];
			bucket[e->hash & (n - 1)] = e;
		}
	in->memory += (n - in->buckets) * sizeof *bucket;
	free(in->bucket);
	in->bucket = bucket;
	in->buckets = n;
}

static const void *intern_add(struct intern *in, uint32_t hash,
			      const void *data, size_t n)
{
	struct intern_entry *e, **at;

	if (in->entries >= in->buckets)
		intern_double_buckets(in);
	if (!in->buckets)
		return NULL;
	e = intern_cut_from_slab(in, (sizeof *e + n + 7) & ~(size_t)7);
	if (!e)
		return NULL;
	at = &in->bucket[hash & (in->buckets - 1)];
	e->next = *at;
	e->hash = hash;
	e->n = (uint32_t)n;
	if (n)
		memcpy(e->bytes, data, n);
	*at = e;
	in->entries++;
	return e->bytes;
}

const void *intern_bytes(struct intern *in, const void *data, size_t n)
{
	uint32_t hash;

	if (n > UINT32_MAX / 2)
		return NULL;
	hash = intern_hash(in->key, data, n);
	lock_scope(&in->lock);
	if (in->buckets)
		for (struct intern_entry *e =
			     in->bucket[hash & (in->buckets - 1)];
		     e; e = e->next)
			if (e->hash == hash && e->n == n &&
			    (!n || !memcmp(e->bytes, data, n)))
				return e->bytes;
	return intern_add(in, hash, data, n);
}

const char *intern_text(struct intern *in, const char *text)
{
	return intern_bytes(in, text, strlen(text) + 1);
}

size_t intern_memory(struct intern *in)
{
	lock_scope(&in->lock);
	return in->memory;
}

void intern_free(struct intern *in)
{
	while (in->slabs) {
		struct intern_slab *s = in->slabs;

		in->slabs = s->next;
		free(s);
	}
	free(in->bucket);
	in->bucket = NULL;
	in->buckets = in->entries = in->memory = 0;
	pthread_mutex_destroy(&in->lock);
}
