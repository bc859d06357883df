/* SPDX-License-Identifier: BSD-2-Clause */
/* Global heaps of HDF5, in which text and sequences of variable length are stored. */

/*
 * HDF5 file format 3.0, section III.E:
 *
 *   element:  count (4) | address of a collection | index in it (4)
 *
 *   collection:  "GCOL" | version 1, 3 unused | its size   (a header of 8 n bytes)
 *     object:    index (2) | references (2) | unused (4) | size   (8 n as well)
 *                its bytes, padded to 8 n
 *     ...
 *     object 0:  the free rest; or nothing where no header fits
 *
 * None of it has a checksum.  libhdf5 trusts the indexes and sizes: it copies an
 * object of any size into a buffer for `count` items, or leaves the rest of that
 * buffer as it was.  This code checks that each object lies within its collection,
 * that the collection lies within the file, that an index occurs once, and that an
 * object has the size that the count says.  If a collection contradicts itself, the
 * objects before that place can still be used.
 */
#include "formats/hdf5/file/heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

#define COLLECTION_MAX (UINT64_C(1) << 30)
/* The most collections that are cached, and the most bytes of them. */
#define SLOTS 64
#define REMEMBERED ((size_t)16 << 20)

struct collection {
	uint64_t address;
	size_t size, cost;
	unsigned char *bytes;
	size_t n;   /* entries of `at`: larger indexes do not exist */
	size_t *at; /* by index: where the object is in `bytes`; 0: none */
};
struct hdf5_heap {
	struct hdf5_heap_file f;
	size_t cost;
	struct collection *slot[SLOTS];
};

/* Read a little-endian number of `n` bytes.  Return UINT64_MAX, which is too large for
 * any use, if it has more than 64 bits. */
static uint64_t heap_number(const unsigned char *p, unsigned n)
{
	uint64_t v = 0;

	while (n-- > 0) {
		if (v >> 56)
			return UINT64_MAX;
		v = v << 8 | p[n];
	}
	return v;
}

static size_t heap_align(uint64_t n)
{
	return (size_t)(n + 7) & ~(size_t)7;
}

/* Return the size in bytes of the header of a collection, which is also that of an
 * object: 8 bytes and a length, padded. */
static size_t heap_head_size(const struct hdf5_heap *h)
{
	return heap_align(8 + h->f.length);
}

/* ---- a collection -------------------------------------------------------- */

static void collection_free(struct collection *c)
{
	if (!c)
		return;
	free(c->bytes);
	free(c->at);
	free(c);
}

static int collection_make_room(struct collection *c, size_t index)
{
	size_t n = index + 1 + index / 2, *at;

	if (index < c->n)
		return 0;
	at = realloc(c->at, n * sizeof *at);
	if (!at)
		return -ENOMEM;
	memset(at + c->n, 0, (n - c->n) * sizeof *at);
	c->at = at;
	c->n = n;
	return 0;
}

/* Find the objects of a collection, up to the first that contradicts the format. */
static int collection_scan(const struct hdf5_heap *h, struct collection *c)
{
	size_t head = heap_head_size(h), pos = head;

	while (c->size - pos >= head) {
		const unsigned char *p = c->bytes + pos;
		size_t index = heap_number(p, 2);
		uint64_t size = heap_number(p + 8, h->f.length);
		int r;

		pos += head;
		if (index == 0 || size > c->size - pos)
			return 0;
		r = collection_make_room(c, index);
		if (r < 0)
			return r;
		if (c->at[index])
			return 0;
		c->at[index] = pos;
		if (heap_align(size) > c->size - pos)
			return 0;
		pos += heap_align(size);
	}
	return 0;
}

static int heap_damaged(struct error *err, uint64_t address, const char *how)
{
	return error_set(err, -EBADMSG, "the heap at %llu is damaged: %s",
			 (unsigned long long)address, how);
}

static int collection_read(const struct hdf5_heap *h, struct collection *c,
			   struct error *err)
{
	unsigned char head[48];
	uint64_t pos, size, end;
	int r;

	if (add_overflows(h->f.base, c->address, &pos))
		return heap_damaged(err, c->address,
				    "it is beyond the end of any file");
	r = h->f.read(h->f.ctx, pos, head, heap_head_size(h), err);
	if (r < 0)
		return r;
	if (memcmp(head, "GCOL\1", 5))
		return heap_damaged(err, c->address, "no heap begins there");
	size = heap_number(head + 8, h->f.length);
	if (size < heap_head_size(h) || add_overflows(pos, size, &end))
		return heap_damaged(err, c->address, "its size is impossible");
	r = h->f.read(h->f.ctx, end - 1, head, 1, err); /* is it all there? */
	if (r < 0)
		return r;
	if (size > COLLECTION_MAX)
		return error_set(err, -ENOTSUP,
				 "the heap at %llu has more than 1 GiB",
				 (unsigned long long)c->address);
	c->size = (size_t)size;
	c->bytes = malloc(c->size);
	if (!c->bytes)
		return error_no_memory(err, "a heap of an HDF5 file");
	r = h->f.read(h->f.ctx, pos, c->bytes, c->size, err);
	if (r < 0)
		return r;
	r = collection_scan(h, c);
	c->cost = sizeof *c + c->size + c->n * sizeof *c->at;
	return r < 0 ? error_no_memory(err, "a heap of an HDF5 file") : 0;
}

/* ---- those used last ----------------------------------------------------- */

static void heap_forget_slot(struct hdf5_heap *h, struct collection **slot)
{
	if (*slot)
		h->cost -= (*slot)->cost;
	collection_free(*slot);
	*slot = NULL;
}

static int collection_get(struct hdf5_heap *h, uint64_t address,
			  struct collection **out, struct error *err)
{
	struct collection **slot, *c;
	int r;

	slot = &h->slot[(address ^ address >> 12 ^ address >> 18) % SLOTS];
	*out = *slot;
	if (*slot && (*slot)->address == address)
		return 0;
	heap_forget_slot(h, slot);
	c = calloc(1, sizeof *c);
	if (!c)
		return error_no_memory(err, "a heap of an HDF5 file");
	c->address = address;
	r = collection_read(h, c, err);
	if (r < 0) {
		collection_free(c);
		return r;
	}
	for (size_t i = 0; i < SLOTS && h->cost + c->cost > REMEMBERED; i++)
		heap_forget_slot(h, &h->slot[i]);
	h->cost += c->cost;
	*slot = *out = c;
	return 0;
}

struct hdf5_heap *hdf5_heap_new(const struct hdf5_heap_file *f)
{
	struct hdf5_heap *h = NULL;

	if (f->address <= HDF5_HEAP_ADDRESS_MAX && f->length <= 32)
		h = calloc(1, sizeof *h);
	if (h)
		h->f = *f;
	return h;
}

void hdf5_heap_free(struct hdf5_heap *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < SLOTS; i++)
		heap_forget_slot(h, &h->slot[i]);
	free(h);
}

/* ---- an element ---------------------------------------------------------- */

int hdf5_heap_get(struct hdf5_heap *h, const unsigned char *reference,
		  uint64_t each, const unsigned char **data, uint64_t *count,
		  struct error *err)
{
	uint64_t n = heap_number(reference, 4), want, size;
	uint64_t address = heap_number(reference + 4, h->f.address);
	uint64_t index = heap_number(reference + 4 + h->f.address, 4);
	struct collection *c;
	int r;

	*data = NULL;
	*count = n;
	if (n == 0)
		return 0;
	if (address == 0)
		return error_set(err, -EBADMSG,
				 "a value of length %llu has no address",
				 (unsigned long long)n);
	r = collection_get(h, address, &c, err);
	if (r < 0)
		return r;
	if (index >= c->n || !c->at[index])
		return error_set(
			err, -EBADMSG, "the heap at %llu has no object %llu",
			(unsigned long long)address, (unsigned long long)index);
	size = heap_number(c->bytes + c->at[index] - heap_head_size(h) + 8,
			   h->f.length);
	if (mul_overflows(n, each, &want) || want != size)
		return error_set(
			err, -EBADMSG,
			"a value has length %llu, %llu bytes each, but "
			"its object in a heap has %llu bytes",
			(unsigned long long)n, (unsigned long long)each,
			(unsigned long long)size);
	*data = c->bytes + c->at[index];
	return 0;
}
