/* SPDX-License-Identifier: BSD-2-Clause */
/* Filter 5, n-bit: numbers without the bits that their type does not use. */
/*
 * A chunk is one stream of bits, elements one after the other without gaps.  An integer
 * or float has only its `precision` bits there, the highest first, whatever the byte
 * order of the type; the bits around them are 0.  Values of other types are there byte by
 * byte.  Padding in compounds is left out and reads as 0.
 *
 * The client data describe the type, as numbers in a row:
 *
 *	how many numbers there are, whether nothing was packed, elements,
 *	and the type of one:
 *
 *	type	  1 size order precision offset		integer, float
 *		| 2 size type				array
 *		| 3 size members { offset type } ...	compound
 *		| 4 size				anything else
 *
 * (from H5Z__set_parms_* of H5Znbit.c in HDF5; `order` is 1 for big-endian.  All sizes
 * and offsets are in bytes, but precision and an atomic's offset are in bits.  The writer
 * counts bytes as bits / 8 + 1, so a stream that ends with a whole byte is one byte
 * longer than necessary.)
 *
 * Neither the type nor the stream can be trusted.  So the type is walked once to measure
 * it: each of its numbers is checked, every part must lie within the whole, and the
 * result is the number of bits of an element.  If the stream has as many bits as all
 * elements need, decoding has nothing left to check.
 *
 * After an array of arrays or compounds the library goes on reading at the description of
 * the array's base (H5Z__nbit_compress_one_array), takes it for the next member's, and
 * writes something else or nothing, if it does not crash.  What such a chunk should have
 * held is lost, and the error says so.
 *
 * Parts of a compound may overlap, but together they are not larger than it, and none is
 * empty: the work is bounded by the size of the output.  The depth is bounded by the
 * parameters: every level takes two of them.
 */
#include "codec/codec.h"

#include <errno.h>
#include <string.h>

#include "base/number.h"
#include "codec/bits.h"

enum { NBIT_ATOMIC = 1, NBIT_ARRAY, NBIT_COMPOUND, NBIT_OTHER };
enum { CD_COUNT, CD_VERBATIM, CD_ELEMENTS, CD_CLASS, CD_SIZE };

/* A position in the description of a type; `at` beyond `n` means that it was too
 * short. */
struct cursor {
	const uint32_t *cd;
	uint32_t n, at;
	bool lost; /* libhdf5 lost what follows while writing */
};

struct atomic {
	uint32_t size, big_endian, precision, offset;
};

/* The size of a type in bytes, and in bits of the stream, at most 8 for each byte. */
struct extent {
	uint64_t size, bits;
};

static uint32_t cursor_peek(const struct cursor *c)
{
	return c->at < c->n ? c->cd[c->at] : 0;
}

static uint32_t cursor_next(struct cursor *c)
{
	uint32_t v = cursor_peek(c);

	c->at++;
	return v;
}

static struct atomic next_atomic(struct cursor *c)
{
	struct atomic a;

	a.size = cursor_next(c);
	a.big_endian = cursor_next(c);
	a.precision = cursor_next(c);
	a.offset = cursor_next(c);
	return a;
}

static int cursor_check_end(const struct cursor *c, struct error *err)
{
	if (c->at <= c->n)
		return 0;
	return error_set(err, -EBADMSG,
			 "nbit: the description of the type ends after %u "
			 "numbers",
			 c->n);
}

static int measure_type(struct cursor *c, uint32_t class, uint64_t room,
			struct extent *e, struct error *err);

static int measure_atomic(struct cursor *c, struct extent *e, struct error *err)
{
	struct atomic a = next_atomic(c);

	e->bits = a.precision;
	if (a.big_endian > 1)
		return error_set(err, -EBADMSG, "nbit: unknown byte order %u",
				 a.big_endian);
	if (!a.precision || (uint64_t)a.precision + a.offset > 8 * e->size)
		return error_set(err, -EBADMSG,
				 "nbit: %u bits from bit %u on do not fit in a "
				 "number of %u bytes",
				 a.precision, a.offset, a.size);
	return cursor_check_end(c, err);
}

static int measure_array(struct cursor *c, struct extent *e, struct error *err)
{
	struct extent base = {0, 0};
	uint32_t class;
	int r;

	cursor_next(c); /* skip its size */
	class = cursor_next(c);
	if (class == NBIT_OTHER) { /* its own size need not be right: skip it */
		cursor_next(c);
		e->bits = 8 * e->size;
		return cursor_check_end(c, err);
	}
	c->lost = false;
	r = measure_type(c, class, e->size, &base, err);
	if (r < 0)
		return r;
	c->lost = class != NBIT_ATOMIC;
	if (e->size % base.size)
		return error_set(err, -EBADMSG,
				 "nbit: elements of %llu bytes do not fill an "
				 "array of %llu",
				 (unsigned long long)base.size,
				 (unsigned long long)e->size);
	e->bits = e->size / base.size * base.bits;
	return 0;
}

static int measure_compound(struct cursor *c, struct extent *e,
			    struct error *err)
{
	uint64_t left = e->size;
	uint32_t members;

	cursor_next(c); /* skip its size */
	members = cursor_next(c);
	e->bits = 0;
	for (uint32_t i = 0; i < members; i++) {
		uint32_t offset = cursor_next(c), class = cursor_next(c);
		struct extent part = {0, 0};
		int r;

		if (c->lost)
			return error_set(
				err, -EBADMSG,
				"nbit: members that follow an array "
				"of arrays or compounds were not stored, "
				"because of a defect of libhdf5 in the writer");
		if (offset > e->size)
			return error_set(err, -EBADMSG,
					 "nbit: member %u is outside its "
					 "compound of %llu bytes",
					 i, (unsigned long long)e->size);
		r = measure_type(c, class, min_u64(left, e->size - offset),
				 &part, err);
		if (r < 0)
			return r;
		left -= part.size;
		e->bits += part.bits;
	}
	return cursor_check_end(c, err);
}

/* Check a type that must fit into `room` bytes, and measure it. */
static int measure_type(struct cursor *c, uint32_t class, uint64_t room,
			struct extent *e, struct error *err)
{
	int r;

	e->size = cursor_peek(c);
	if (c->at >= c->n) {
		cursor_next(c);
		return cursor_check_end(c, err);
	}
	if (!e->size || e->size > room)
		return error_set(err, -EBADMSG,
				 "nbit: a part of %llu bytes does not fit in "
				 "the %llu that are left",
				 (unsigned long long)e->size,
				 (unsigned long long)room);
	switch (class) {
	case NBIT_ATOMIC:
		r = measure_atomic(c, e, err);
		break;
	case NBIT_ARRAY:
		r = measure_array(c, e, err);
		break;
	case NBIT_COMPOUND:
		r = measure_compound(c, e, err);
		break;
	case NBIT_OTHER:
		cursor_next(c);
		e->bits = 8 * e->size;
		r = 0;
		break;
	default:
		r = error_set(err, -EBADMSG, "nbit: unknown class %u of a type",
			      class);
	}
	return r;
}

/*
 * Unpack `n` numbers of `size` bytes, at most 8, all of which are written; `size` is a
 * constant in every call.  Type and stream are copies, because the compiler must assume
 * that bytes stored through `out` could change the originals.  Returns the new position
 * in the stream.
 */
static inline uint64_t unpack_numbers(struct bits in, struct atomic a,
				      unsigned size, uint64_t n,
				      unsigned char *out)
{
	for (uint64_t i = 0; i < n; i++)
		bits_store(out + size * i,
			   bits_take(&in, a.precision) << a.offset, size,
			   a.big_endian);
	return in.at;
}

/* Unpack a number of any size, highest byte first; only bytes that hold bits are
 * written. */
static void unpack_wide_number(struct bits *in, const struct atomic *a,
			       unsigned char *out)
{
	uint64_t low = a->offset, high = low + a->precision;

	while (high > low) {
		uint64_t byte = (high - 1) / 8;
		uint64_t from = max_u64(low, 8 * byte);
		uint64_t v = bits_take(in, (unsigned)(high - from));

		out[a->big_endian ? a->size - 1 - byte : byte] =
			(unsigned char)(v << (from - 8 * byte));
		high = from;
	}
}

/* Unpack `n` numbers in a row. */
static void unpack_atomics(struct bits *in, const struct atomic *a, uint64_t n,
			   unsigned char *out)
{
	switch (a->size) {
	case 1:
		in->at = unpack_numbers(*in, *a, 1, n, out);
		break;
	case 2:
		in->at = unpack_numbers(*in, *a, 2, n, out);
		break;
	case 4:
		in->at = unpack_numbers(*in, *a, 4, n, out);
		break;
	case 8:
		in->at = unpack_numbers(*in, *a, 8, n, out);
		break;
	default:
		for (uint64_t i = 0; i < n; i++)
			unpack_wide_number(in, a, out + a->size * i);
	}
}

static void unpack_bytes(struct bits *in, uint64_t n, unsigned char *out)
{
	if (in->at % 8 == 0) {
		memcpy(out, in->in + in->at / 8, n);
		in->at += 8 * n;
		return;
	}
	for (uint64_t i = 0; i < n; i++)
		out[i] = (unsigned char)bits_take(in, 8);
}

static void unpack_type(struct cursor *c, uint32_t class, uint64_t n,
			struct bits *in, unsigned char *out);

static void unpack_array(struct cursor *c, struct bits *in, unsigned char *out)
{
	uint32_t size = cursor_next(c), class = cursor_next(c),
		 base = cursor_peek(c);

	if (class == NBIT_OTHER) {
		c->at++;
		unpack_bytes(in, size, out);
		return;
	}
	unpack_type(c, class, size / base, in, out);
}

static void unpack_compound(struct cursor *c, struct bits *in,
			    unsigned char *out)
{
	uint32_t members;

	cursor_next(c); /* skip its size */
	members = cursor_next(c);
	for (uint32_t i = 0; i < members; i++) {
		uint32_t offset = cursor_next(c), class = cursor_next(c);

		unpack_type(c, class, 1, in, out + offset);
	}
}

/* Unpack `n` (> 0) elements of one type into bytes that are 0. */
static void unpack_type(struct cursor *c, uint32_t class, uint64_t n,
			struct bits *in, unsigned char *out)
{
	uint32_t start = c->at, size = cursor_peek(c);
	struct atomic a;

	if (class == NBIT_ATOMIC) {
		a = next_atomic(c);
		unpack_atomics(in, &a, n, out);
		return;
	}
	if (class == NBIT_OTHER) {
		c->at++;
		unpack_bytes(in, n * size, out);
		return;
	}
	for (uint64_t i = 0; i < n; i++) {
		c->at = start;
		if (class == NBIT_ARRAY)
			unpack_array(c, in, out + i * size);
		else
			unpack_compound(c, in, out + i * size);
	}
}

static bool nbit_is_identity(const struct codec_params *p)
{
	return p->n > CD_VERBATIM && p->cd[CD_VERBATIM];
}

/* Measure one element; its extent is 0 if nothing is packed. */
static int measure_element(const struct codec_params *p, struct extent *e,
			   struct error *err)
{
	struct cursor c = {.cd = p->cd, .n = p->n, .at = CD_SIZE};
	int r;

	if (p->n <= CD_VERBATIM || p->n > CODEC_CD_MAX ||
	    p->cd[CD_COUNT] != p->n)
		return error_set(
			err, -EBADMSG,
			"nbit: %u parameters, but the first one says %u", p->n,
			p->n ? p->cd[CD_COUNT] : 0);
	if (nbit_is_identity(p))
		return 0;
	if (p->n <= CD_SIZE)
		return error_set(
			err, -EBADMSG,
			"nbit: %u parameters are too few to describe a type",
			p->n);
	r = measure_type(&c, p->cd[CD_CLASS], UINT32_MAX, e, err);
	if (r == 0 && c.at != p->n)
		return error_set(err, -EBADMSG,
				 "nbit: %u numbers follow the description of "
				 "the type",
				 p->n - c.at);
	return r;
}

static int nbit_check(const struct codec_params *p, struct error *err)
{
	struct extent e = {0, 0};

	return measure_element(p, &e, err);
}

/* Check that there are all the bytes that `n` elements take, and no more. */
static int nbit_check_length(size_t in_len, uint64_t n, uint64_t element_bits,
			     struct error *err)
{
	uint64_t bits;

	if (mul_overflows(n, element_bits, &bits) || bits_bytes(bits) > in_len)
		return error_set(err, -EBADMSG,
				 "nbit: %zu bytes are too few for %llu "
				 "elements of %llu bits",
				 in_len, (unsigned long long)n,
				 (unsigned long long)element_bits);
	if (in_len > bits / 8 + 1)
		return error_set(err, -EBADMSG,
				 "nbit: %llu bytes follow the last element",
				 (unsigned long long)(in_len - bits / 8 - 1));
	return 0;
}

static int nbit_decode(const struct codec_params *p, const void *in,
		       size_t in_len, void *out, size_t out_cap,
		       size_t *out_len, struct error *err)
{
	struct bits stream = {.in = in, .len = in_len, .at = 0};
	struct cursor c = {.cd = p->cd, .n = p->n, .at = CD_SIZE};
	struct extent e = {0, 0};
	uint64_t total, n;
	int r = measure_element(p, &e, err);

	if (r < 0)
		return r;
	n = nbit_is_identity(p) ? 0 : p->cd[CD_ELEMENTS];
	total = nbit_is_identity(p) ? in_len : n * e.size;
	if (total > out_cap)
		return error_set(err, -ENOSPC,
				 "nbit: %llu bytes, expected at most %zu",
				 (unsigned long long)total, out_cap);
	if (nbit_is_identity(p)) {
		if (in_len)
			memcpy(out, in, in_len);
	} else {
		r = nbit_check_length(in_len, n, e.bits, err);
		if (r < 0)
			return r;
		if (p->cd[CD_CLASS] != NBIT_ATOMIC || e.size > 8 ||
		    e.size & (e.size - 1))
			memset(out, 0, (size_t)total);
		if (n)
			unpack_type(&c, p->cd[CD_CLASS], n, &stream, out);
	}
	*out_len = (size_t)total;
	return 0;
}

const struct codec codec_nbit = {
	.name = "nbit",
	.id = 5,
	.kind = CODEC_COMPRESS,
	.check = nbit_check,
	.decode = nbit_decode,
	.is_identity = nbit_is_identity,
};
