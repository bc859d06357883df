/* SPDX-License-Identifier: BSD-2-Clause */
/* The attribute messages of an object header, and hiding some of them from libhdf5. */

/*
 * HDF5 file format 3.0, section IV.A.1: an object header is a list of messages, in
 * a first block and in others that continuation messages lead to.
 *
 *	version 1   16 bytes: version, number of messages, references, size;
 *	            message: type (2), size (2), flags (1), 3 unused, data
 *	version 2   "OHDR", version, flags, times, limits, size; messages; checksum.
 *	            Other blocks: "OCHK", messages, checksum;
 *	            message: type (1), size (2), flags (1), order (2, optional), data
 *
 * The library lists no attribute of an object if it cannot decode one.  It skips
 * messages of unknown types, so it is shown a header in which the message of that
 * attribute has an unknown type.  (NIL would not do: the library
 * joins neighbouring NIL messages.)
 */
#include "formats/hdf5/file/header.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/number.h"

#define BLOCKS_MAX 1024u
#define BLOCK_MAX (UINT32_C(16) << 20) /* of a block, and of all of an object */
#define ATTRIBUTES_MAX 65536u

/* No message type has this number: the library skips messages of unknown types. */
enum { TYPE_HIDDEN = 0x7f };
enum { TYPE_ATTRIBUTE = 0x0c, TYPE_CONTINUATION = 0x10 };
enum { FLAG_SHARED = 2 };                                /* flag of a message */
enum { HAS_ORDER = 4, HAS_LIMITS = 16, HAS_TIMES = 32 }; /* flags of a header */

static int header_damaged(struct error *err)
{
	return error_set(err, -EBADMSG, "its object header is damaged");
}

void hdf5_header_free(struct hdf5_header *x)
{
	for (size_t i = 0; i < x->blocks.n; i++)
		free(x->blocks.at[i].bytes);
	for (size_t i = 0; i < x->attributes.n; i++)
		free(x->attributes.at[i].name);
	vec_free(&x->blocks);
	vec_free(&x->attributes);
}

/* ---- checksums ----------------------------------------------------------- */

static uint32_t rotate(uint32_t x, unsigned k)
{
	return x << k | x >> (32 - k);
}

/* Bob Jenkins' lookup3 (hashlittle, initial value 0), as the format asks for. */
static uint32_t lookup3(const unsigned char *p, size_t n)
{
	static const unsigned mix[] = {4, 6, 8, 16, 19, 4};
	static const unsigned end[] = {14, 11, 25, 16, 4, 14, 24};
	uint32_t v[3];
	unsigned char last[12] = {0};

	v[0] = v[1] = v[2] = 0xdeadbeef + (uint32_t)n;
	for (; n > 12; n -= 12, p += 12) {
		for (unsigned i = 0; i < 3; i++)
			v[i] += load_le32(p + 4 * i);
		for (unsigned i = 0; i < 6; i++) {
			uint32_t *a = &v[i % 3], *b = &v[(i + 1) % 3];
			uint32_t *c = &v[(i + 2) % 3];

			*a -= *c;
			*a ^= rotate(*c, mix[i]);
			*c += *b;
		}
	}
	if (!n)
		return v[2];
	memcpy(last, p, n);
	for (unsigned i = 0; i < 3; i++)
		v[i] += load_le32(last + 4 * i);
	for (unsigned i = 0; i < 7; i++) {
		uint32_t *to = &v[(i + 2) % 3], from = v[(i + 1) % 3];

		*to ^= from;
		*to -= rotate(from, end[i]);
	}
	return v[2];
}

static uint32_t block_sum(const struct hdf5_header_block *b)
{
	return lookup3(b->bytes, b->size - 4);
}

/* ---- blocks -------------------------------------------------------------- */

/* May a block be added?  No byte of a header may be in two blocks: a continuation that
 * leads back to a block would be read again and again, and a message hidden in one
 * copy would be visible in the other.  All blocks together have a limit. */
static bool header_fits_block(const struct hdf5_header *x, uint64_t pos,
			      uint64_t size)
{
	uint64_t all = size;

	for (size_t i = 0; i < x->blocks.n; i++) {
		const struct hdf5_header_block *b = &x->blocks.at[i];

		if (pos < b->pos + b->size && b->pos < pos + size)
			return false;
		all += b->size;
	}
	return all <= BLOCK_MAX;
}

/* Read the block of `size` bytes at `pos` and add it to the header. */
static int header_add_block(struct handles *h, struct hdf5_header *x,
			    uint64_t pos, uint64_t size, bool summed,
			    struct error *err)
{
	struct hdf5_header_block b = {.pos = pos, .summed = summed};
	int r;

	if (x->blocks.n >= BLOCKS_MAX || size > BLOCK_MAX ||
	    size < (summed ? 8u : 1u) || pos > INT64_MAX - size ||
	    !header_fits_block(x, pos, size))
		return header_damaged(err);
	b.size = (uint32_t)size;
	b.bytes = malloc(b.size);
	if (!b.bytes || !vec_push(&x->blocks, b)) {
		free(b.bytes);
		return error_no_memory(err, "an object header");
	}
	r = handles_read(h, x->file, pos, b.bytes, b.size, err);
	if (r < 0)
		return r;
	if (summed && load_le32(b.bytes + b.size - 4) != block_sum(&b))
		return header_damaged(err);
	return 0;
}

/* ---- messages ------------------------------------------------------------ */

/* Return the name in an attribute message (malloc'ed), or NULL if it cannot be read.
 * Section IV.A.2.m: version (1), flags (1), sizes of name, type and space (2 each),
 * from version 3 on the name's character set (1), the name. */
static char *header_attribute_name(const unsigned char *data, size_t n,
				   unsigned flags)
{
	size_t at = n && data[0] >= 3 ? 9 : 8, len;

	if (flags & FLAG_SHARED || n < at || data[0] < 1 || data[0] > 3)
		return NULL;
	len = (size_t)load_le(data + 2, 2);
	if (len == 0 || len > n - at || data[at] == '\0')
		return NULL;
	return strndup((const char *)data + at, len);
}

static int header_continue_at(struct handles *h, struct hdf5_header *x,
			      const unsigned char *data, size_t n,
			      struct error *err)
{
	uint64_t pos, size;

	if (n < x->addr + x->len)
		return header_damaged(err);
	pos = load_le(data, x->addr);
	size = load_le(data + x->addr, x->len);
	if (add_overflows(pos, x->base, &pos))
		return header_damaged(err);
	return header_add_block(h, x, pos, size, x->version == 2, err);
}

/* Read the messages in bytes [at, end) of block `i`: note attributes, and add the
 * blocks of continuations. */
static int header_read_messages(struct handles *h, struct hdf5_header *x,
				uint32_t i, uint32_t at, uint32_t end,
				struct error *err)
{
	bool old = x->version == 1;
	int r = 0;

	while (!r && at < end && end - at >= x->head) {
		const unsigned char *p = x->blocks.at[i].bytes + at;
		unsigned type = (unsigned)load_le(p, old ? 2 : 1);
		uint32_t size = (uint32_t)load_le(p + (old ? 2 : 1), 2);
		struct hdf5_header_attribute a = {.block = i, .at = at};

		if (size > end - at - x->head)
			return header_damaged(err);
		if (type == TYPE_CONTINUATION)
			r = header_continue_at(h, x, p + x->head, size, err);
		if (type == TYPE_ATTRIBUTE) {
			if (x->attributes.n >= ATTRIBUTES_MAX)
				return header_damaged(err);
			a.name = header_attribute_name(p + x->head, size,
						       p[old ? 4 : 3]);
			if (!vec_push(&x->attributes, a)) {
				free(a.name);
				return error_no_memory(err, "an object header");
			}
		}
		at += x->head + size;
	}
	return r;
}

/* Read the first block.  Its messages are in bytes [*from, *end). */
static int header_read_first(struct handles *h, struct hdf5_header *x,
			     uint64_t pos, uint32_t *from, uint32_t *end,
			     struct error *err)
{
	unsigned char p[36] = {0};
	unsigned at = 6, bytes;
	uint64_t size;
	int r = handles_read(h, x->file, pos, p, 16, err);

	if (r < 0)
		return r;
	x->version = memcmp(p, "OHDR", 4) ? p[0] : p[4];
	if (x->version == 1) {
		x->head = 8;
		*from = 0;
		*end = load_le32(p + 8);
		return header_add_block(h, x, pos + 16, *end, false, err);
	}
	if (x->version != 2)
		return header_damaged(err);
	x->head = p[5] & HAS_ORDER ? 6 : 4;
	at += (p[5] & HAS_TIMES ? 16 : 0) + (p[5] & HAS_LIMITS ? 4 : 0);
	bytes = 1u << (p[5] & 3);
	r = handles_read(h, x->file, pos, p, at + bytes, err);
	if (r < 0)
		return r;
	size = load_le(p + at, bytes);
	if (size > BLOCK_MAX)
		return header_damaged(err);
	*from = at + bytes;
	*end = *from + (uint32_t)size;
	return header_add_block(h, x, pos, (uint64_t)*end + 4, true, err);
}

int hdf5_header_read(struct handles *h, uint32_t file, uint64_t base,
		     unsigned addr, unsigned len, uint64_t at,
		     struct hdf5_header *out, struct error *err)
{
	uint32_t from = 0, end = 0;
	int r;

	*out = (struct hdf5_header){
		.file = file, .base = base, .addr = addr, .len = len};
	if (addr < 2 || addr > 8 || len < 2 || len > 8 ||
	    add_overflows(at, base, &at) || at > INT64_MAX - BLOCK_MAX)
		return header_damaged(err);
	r = header_read_first(h, out, at, &from, &end, err);
	for (uint32_t i = 0; !r && i < out->blocks.n; i++) {
		const struct hdf5_header_block *b = &out->blocks.at[i];

		if (i && b->summed) {
			from = 4;
			end = b->size - 4;
		} else if (i) {
			from = 0;
			end = b->size;
		}
		if (i && b->summed && memcmp(b->bytes, "OCHK", 4))
			return header_damaged(err);
		r = header_read_messages(h, out, i, from, end, err);
	}
	return r;
}

/* ---- hiding -------------------------------------------------------------- */

void hdf5_header_hide(struct hdf5_header *x)
{
	for (size_t i = 0; i < x->attributes.n; i++) {
		const struct hdf5_header_attribute *a = &x->attributes.at[i];

		/* In version 1 the type has a second byte, which is 0 for both types. */
		x->blocks.at[a->block].bytes[a->at] =
			a->hidden ? TYPE_HIDDEN : TYPE_ATTRIBUTE;
	}
	for (size_t i = 0; i < x->blocks.n; i++) {
		struct hdf5_header_block *b = &x->blocks.at[i];

		if (b->summed)
			store_le32(b->bytes + b->size - 4, block_sum(b));
	}
}

void hdf5_header_overlay(const struct hdf5_header *x, uint64_t pos, void *buf,
			 size_t n)
{
	for (size_t i = 0; i < x->blocks.n; i++) {
		const struct hdf5_header_block *b = &x->blocks.at[i];
		uint64_t from = max_u64(pos, b->pos);
		uint64_t to = min_u64(pos + n, b->pos + b->size);

		if (from < to)
			memcpy((char *)buf + (from - pos),
			       b->bytes + (from - b->pos), to - from);
	}
}
