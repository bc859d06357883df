/* SPDX-License-Identifier: BSD-2-Clause */
/* Global heaps of HDF5: whatever a file holds, values lie within it. */
/*
 * The input is a short head and then a file: bytes of an address and of a length,
 * the size of an item, where addresses count from, and how many elements the file
 * begins with (16 each, or as long as the addresses make them).  Each is looked
 * up twice: what was remembered has to be what was read.
 */
#include <errno.h>

#include "fuzz.h"
#include "formats/hdf5/file/heap.h"

struct file {
	const uint8_t *data;
	size_t size;
};

static int read_file(void *ctx, uint64_t pos, void *buf, size_t n,
		     struct error *err)
{
	const struct file *f = ctx;

	if (pos > f->size || n > f->size - pos)
		return error_set(err, -EIO, "beyond the end");
	memcpy(buf, f->data + pos, n);
	return 0;
}

/* A value is somewhere in the file as it is; its object says its size. */
static void check_value(const struct hdf5_heap_file *h, const uint8_t *data,
			uint64_t n)
{
	const struct file *f = h->ctx;
	size_t at = 0;

	FUZZ_CHECK(n > 0 && n <= f->size);
	while (at <= f->size - n && memcmp(f->data + at, data, n))
		at++;
	FUZZ_CHECK(at <= f->size - n);
}

static void check_element(struct hdf5_heap *heap,
			  const struct hdf5_heap_file *h, const uint8_t *from,
			  uint64_t each)
{
	uint8_t *element = malloc(HDF5_HEAP_REFERENCE(h->address));
	const unsigned char *first, *again;
	uint64_t count = 0, same = 0;
	struct error err = {0};
	uint8_t *copy = NULL;
	int r;

	FUZZ_CHECK(element); /* of its own, so that nothing behind it is read */
	memcpy(element, from, HDF5_HEAP_REFERENCE(h->address));
	r = hdf5_heap_get(heap, element, each, &first, &count, &err);
	FUZZ_CHECK(r == 0 || (r == err.code && *err.text));
	FUZZ_CHECK(r == 0 || r == -EBADMSG || r == -EIO || r == -ENOTSUP);
	if (r == 0 && count > 0) {
		check_value(h, first, count * each);
		copy = malloc(count * each);
		FUZZ_CHECK(copy);
		memcpy(copy, first, count * each);
	}
	FUZZ_CHECK(hdf5_heap_get(heap, element, each, &again, &same, &err) ==
		   r);
	FUZZ_CHECK(r < 0 || same == count);
	FUZZ_CHECK(!copy || !memcmp(copy, again, count * each));
	free(copy);
	free(element);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const unsigned widths[] = {8, 8, 4, 2, 16, 32, 1, 0};
	struct fuzz_input in = {data, size};
	struct file f;
	struct hdf5_heap_file h = {.read = read_file, .ctx = &f};
	struct hdf5_heap *heap;
	uint64_t each;
	size_t n, width;

	h.address = widths[fuzz_u8(&in) % 8];
	h.length = widths[fuzz_u8(&in) % 8];
	each = 1 + fuzz_u8(&in) % 32;
	h.base = fuzz_u8(&in) % 4 * 256;
	n = fuzz_u8(&in);
	f = (struct file){in.data, in.size};
	width = HDF5_HEAP_REFERENCE(h.address);
	heap = hdf5_heap_new(&h);
	FUZZ_CHECK(heap);
	for (size_t i = 0; i < n && (i + 1) * width <= f.size; i++)
		check_element(heap, &h, f.data + i * width, each);
	hdf5_heap_free(heap);
	return 0;
}
