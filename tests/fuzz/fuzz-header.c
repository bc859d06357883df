/* SPDX-License-Identifier: BSD-2-Clause */
/* Object headers of HDF5: what is hidden in one is hidden, and nothing else changes. */
/*
 * The input is a short head and then a file: bytes of an address and of a length,
 * where addresses count from, which attributes are to be hidden (bit i % 8 for
 * attribute i), the address of the object.  The file is read, and once more as the
 * library would see it: with all attributes but those that were hidden.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "extent/handles.h"
#include "fuzz.h"
#include "formats/hdf5/file/header.h"

static uint32_t add_file(struct handles *h, const uint8_t *data, size_t size,
			 const char *name)
{
	int fd = memfd_create("fuzz-header", MFD_CLOEXEC);
	uint32_t file;

	FUZZ_CHECK(fd >= 0);
	FUZZ_CHECK(write(fd, data, size) == (ssize_t)size);
	file = handles_add_open(h, fd, name);
	FUZZ_CHECK(file != UINT32_MAX);
	return file;
}

/* Blocks lie within the file, apart from each other; messages within blocks. */
static void check_blocks(const struct hdf5_header *x, size_t size)
{
	for (size_t i = 0; i < x->blocks.n; i++) {
		const struct hdf5_header_block *b = &x->blocks.at[i];

		FUZZ_CHECK(b->pos <= size && b->size <= size - b->pos);
		for (size_t k = 0; k < i; k++)
			FUZZ_CHECK(b->pos >= x->blocks.at[k].pos +
						     x->blocks.at[k].size ||
				   x->blocks.at[k].pos >= b->pos + b->size);
	}
	for (size_t i = 0; i < x->attributes.n; i++) {
		const struct hdf5_header_attribute *a = &x->attributes.at[i];

		FUZZ_CHECK(a->block < x->blocks.n);
		FUZZ_CHECK(a->at < x->blocks.at[a->block].size);
	}
}

static bool in_block(const struct hdf5_header *x, size_t pos)
{
	for (size_t i = 0; i < x->blocks.n; i++)
		if (pos >= x->blocks.at[i].pos &&
		    pos - x->blocks.at[i].pos < x->blocks.at[i].size)
			return true;
	return false;
}

/* The file with the header's bytes over its own, put there in pieces. */
static uint8_t *overlaid(const struct hdf5_header *x, const uint8_t *data,
			 size_t size)
{
	uint8_t *copy = malloc(size + 1);

	FUZZ_CHECK(copy);
	memcpy(copy, data, size);
	for (size_t at = 0, n = 1; at < size; at += n, n = n * 2 % 97 + 1) {
		n = n < size - at ? n : size - at;
		hdf5_header_overlay(x, at, copy + at, n);
	}
	for (size_t i = 0; i < size; i++)
		FUZZ_CHECK(copy[i] == data[i] || in_block(x, i));
	return copy;
}

static void check_again(struct handles *h, const struct hdf5_header *x,
			uint64_t object, const uint8_t *data, size_t size)
{
	uint8_t *copy = overlaid(x, data, size);
	uint32_t file = add_file(h, copy, size, "hidden");
	struct hdf5_header again;
	struct error err = {0};
	size_t k = 0;

	FUZZ_CHECK(hdf5_header_read(h, file, x->base, x->addr, x->len, object,
				    &again, &err) == 0);
	FUZZ_CHECK(again.blocks.n == x->blocks.n);
	for (size_t i = 0; i < x->attributes.n; i++) {
		const struct hdf5_header_attribute *a = &x->attributes.at[i];

		if (a->hidden)
			continue;
		FUZZ_CHECK(k < again.attributes.n);
		FUZZ_CHECK(again.attributes.at[k].block == a->block &&
			   again.attributes.at[k].at == a->at);
		k++;
	}
	FUZZ_CHECK(k == again.attributes.n);
	hdf5_header_free(&again);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const unsigned widths[] = {8, 8, 4, 2, 3, 16, 1, 0};
	struct fuzz_input in = {data, size};
	unsigned addr = widths[fuzz_u8(&in) % 8];
	unsigned len = widths[fuzz_u8(&in) % 8];
	uint64_t base = fuzz_u8(&in) % 4 * 256;
	uint8_t hide = fuzz_u8(&in);
	uint64_t object = fuzz_u32(&in);
	struct hdf5_header x;
	struct error err = {0};
	struct handles *h;
	uint32_t file;
	int r;

	FUZZ_CHECK(handles_new(&h, 4, 1, &err) == 0);
	file = add_file(h, in.data, in.size, "file");
	r = hdf5_header_read(h, file, base, addr, len, object, &x, &err);
	FUZZ_CHECK(r == 0 || (r == err.code && *err.text));
	FUZZ_CHECK(r == 0 || r == -EBADMSG || r == -EIO || r == -ENOMEM);
	if (r == 0) {
		check_blocks(&x, in.size);
		for (size_t i = 0; i < x.attributes.n; i++)
			x.attributes.at[i].hidden = hide >> i % 8 & 1;
		hdf5_header_hide(&x);
		check_again(h, &x, object, in.data, in.size);
	}
	hdf5_header_free(&x);
	handles_free(h);
	return 0;
}
