/* SPDX-License-Identifier: BSD-2-Clause */
/* Filter 6, scale-offset: small numbers above a minimum, bit-packed. */
/*
 *	u32 LE		bits of each value
 *	u8		bytes of the minimum that count (the size of the writer's
 *			long long: 8)
 *	16 bytes	the minimum, LE; 8 of them are always 0
 *	bits, most significant first: one value after the other
 *
 * (from H5Z__filter_scaleoffset of H5Zscaleoffset.c in HDF5.  The writer counts bytes as
 * bits / 8 + 1, so a stream that ends with a whole byte is one byte longer than
 * necessary.)
 *
 * An integer is value + minimum, modulo its size.  A float is value divided by 10^D, plus
 * the minimum, which is then the float's own bytes; the writer has rounded it to D
 * decimals.  Each step is done in the precision of the type, as the library does it, or
 * the last bit would differ.  If the dataset has a fill value, the largest value (all
 * bits set) stands for it.
 *
 * Two things are stored verbatim: everything, if a file's integers were to have all their
 * bits (the filter then changes nothing at all), and the values of a chunk whose range
 * needed all bits.  Such a chunk still has the header, and its values are little-endian
 * whatever the dataset, as the writer's memory was.
 */
#include "codec/codec.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "codec/bits.h"
#include "codec/pipeline.h"

#define HEADER 21u

enum {
	CD_SCALE_TYPE,
	CD_SCALE_FACTOR, /* integers: bits, 0: as needed; floats: D, signed */
	CD_ELEMENTS,
	CD_CLASS,
	CD_SIZE,
	CD_SIGN, /* of integers; for floats libhdf5 leaves any number there */
	CD_ORDER,
	CD_HAS_FILL,
	CD_FILL, /* up to three values, lowest bytes first */
	CD_COUNT = 20
};
enum { SCALE_FLOAT_D, SCALE_FLOAT_E, SCALE_INTEGER };
enum { CLASS_INTEGER, CLASS_FLOAT };

/* How the values of a chunk become elements. */
struct rule {
	uint64_t n;
	unsigned bits; /* bits of a value */
	unsigned size; /* bytes of an element */
	bool big_endian, has_fill;
	uint64_t fill, minimum;
	int32_t decimals;
};

/* Integers that were to be stored with all their bits are unchanged. */
static bool scaleoffset_is_identity(const struct codec_params *p)
{
	return p->n == CD_COUNT && p->cd[CD_CLASS] == CLASS_INTEGER &&
	       p->cd[CD_SCALE_TYPE] == SCALE_INTEGER && p->cd[CD_SIZE] &&
	       p->cd[CD_SCALE_FACTOR] == 8 * (uint64_t)p->cd[CD_SIZE] &&
	       p->cd[CD_SCALE_FACTOR] <= INT32_MAX;
}

static int check_integer(const struct codec_params *p, struct error *err)
{
	uint32_t size = p->cd[CD_SIZE], factor = p->cd[CD_SCALE_FACTOR];

	if (p->cd[CD_SIGN] > 1)
		return error_set(err, -EBADMSG,
				 "scaleoffset: sign %u of integers is neither "
				 "0 nor 1",
				 p->cd[CD_SIGN]);
	if (p->cd[CD_SCALE_TYPE] != SCALE_INTEGER)
		return error_set(
			err, -EBADMSG,
			"scaleoffset: unknown scale type %u of integers",
			p->cd[CD_SCALE_TYPE]);
	if (size != 1 && size != 2 && size != 4 && size != 8)
		return error_set(err, -EBADMSG,
				 "scaleoffset: integers cannot have %u bytes",
				 size);
	if (factor > 8 * size && factor <= INT32_MAX) /* negative: as needed */
		return error_set(err, -EBADMSG,
				 "scaleoffset: %u bits for integers of %u "
				 "bytes",
				 factor, size);
	return 0;
}

static int check_float(const struct codec_params *p, struct error *err)
{
	uint32_t size = p->cd[CD_SIZE];

	if (p->cd[CD_SCALE_TYPE] != SCALE_FLOAT_D)
		return error_set(err, -EBADMSG,
				 "scaleoffset: scale type %u of floats, which "
				 "no library writes",
				 p->cd[CD_SCALE_TYPE]);
	if (size != sizeof(float) && size != sizeof(double))
		return error_set(err, -EBADMSG,
				 "scaleoffset: floats cannot have %u bytes",
				 size);
	return 0;
}

static int scaleoffset_check(const struct codec_params *p, struct error *err)
{
	if (p->n != CD_COUNT)
		return error_set(err, -EBADMSG,
				 "scaleoffset: %u parameters instead of %u",
				 p->n, (unsigned)CD_COUNT);
	if (scaleoffset_is_identity(p))
		return 0;
	if (p->cd[CD_CLASS] > CLASS_FLOAT || p->cd[CD_ORDER] > 1 ||
	    p->cd[CD_HAS_FILL] > 1)
		return error_set(err, -EBADMSG,
				 "scaleoffset: class %u, byte order %u and "
				 "fill value %u are not all 0 or 1",
				 p->cd[CD_CLASS], p->cd[CD_ORDER],
				 p->cd[CD_HAS_FILL]);
	return p->cd[CD_CLASS] == CLASS_FLOAT ? check_float(p, err)
					      : check_integer(p, err);
}

/* Combine the chunk's header and all that the parameters say about its values. */
static struct rule read_rule(const struct codec_params *p,
			     const unsigned char *header)
{
	unsigned minimum_size = header[4] < 8 ? header[4] : 8;
	struct rule r = {
		.n = p->cd[CD_ELEMENTS],
		.bits = (uint32_t)load_le(header, 4),
		.size = p->cd[CD_SIZE],
		.big_endian = p->cd[CD_ORDER],
		.has_fill = p->cd[CD_HAS_FILL],
		.fill = p->cd[CD_FILL] | (uint64_t)p->cd[CD_FILL + 1] << 32,
		.minimum = load_le(header + 5, minimum_size),
		.decimals = (int32_t)p->cd[CD_SCALE_FACTOR],
	};

	return r;
}

/* Check that there are as many bytes as the values take, and no more. */
static int scaleoffset_check_length(const struct rule *r, size_t in_len,
				    struct error *err)
{
	uint64_t bits = r->n * r->bits;

	if (r->bits > 8 * r->size)
		return error_set(err, -EBADMSG,
				 "scaleoffset: values of %u bits for elements "
				 "of %u bytes; libhdf5 writes such a chunk, "
				 "without its values, when floats are NaN",
				 r->bits, r->size);
	if (bits_bytes(bits) > in_len)
		return error_set(err, -EBADMSG,
				 "scaleoffset: %zu bytes are too few for %llu "
				 "values of %u bits",
				 in_len, (unsigned long long)r->n, r->bits);
	if (in_len > bits / 8 + 1)
		return error_set(err, -EBADMSG,
				 "scaleoffset: %llu bytes follow the last "
				 "value",
				 (unsigned long long)(in_len - bits / 8 - 1));
	return 0;
}

static inline uint64_t next_value(unsigned bits, struct bits *in)
{
	return bits ? bits_take(in, bits) : 0;
}

/*
 * Rule and stream are copies here, because the compiler must assume that bytes stored
 * through `out` could change the originals.  `size` is r.size, a constant in every call.
 */
static inline void unpack_integers(struct rule r, struct bits in, unsigned size,
				   unsigned char *out)
{
	uint64_t fill_code = ((uint64_t)1 << r.bits) - 1;

	for (uint64_t i = 0; i < r.n; i++) {
		uint64_t v = next_value(r.bits, &in);

		v = r.has_fill && v == fill_code ? r.fill : v + r.minimum;
		bits_store(out + size * i, v, size, r.big_endian);
	}
}

static void unpack_floats(struct rule r, struct bits in, unsigned char *out)
{
	float scale = powf(10.0f, (float)r.decimals), minimum, v;
	uint32_t fill_code = ((uint32_t)1 << r.bits) - 1;
	uint32_t raw = (uint32_t)r.minimum;

	memcpy(&minimum, &raw, sizeof minimum);
	for (uint64_t i = 0; i < r.n; i++) {
		uint32_t code = (uint32_t)next_value(r.bits, &in);

		v = (float)(int32_t)code / scale + minimum;
		memcpy(&raw, &v, sizeof raw);
		if (r.has_fill && code == fill_code)
			raw = (uint32_t)r.fill;
		bits_store(out + 4 * i, raw, 4, r.big_endian);
	}
}

static void unpack_doubles(struct rule r, struct bits in, unsigned char *out)
{
	double scale = pow(10.0, r.decimals), minimum, v;
	uint64_t fill_code = ((uint64_t)1 << r.bits) - 1;
	uint64_t raw = r.minimum;

	memcpy(&minimum, &raw, sizeof minimum);
	for (uint64_t i = 0; i < r.n; i++) {
		uint64_t code = next_value(r.bits, &in);

		v = (double)(int64_t)code / scale + minimum;
		memcpy(&raw, &v, sizeof raw);
		if (r.has_fill && code == fill_code)
			raw = r.fill;
		bits_store(out + 8 * i, raw, 8, r.big_endian);
	}
}

static void unpack_values(const struct rule *r, bool is_float,
			  const unsigned char *in, size_t in_len,
			  unsigned char *out)
{
	struct bits b = {.in = in, .len = in_len, .at = 0};

	if (r->bits == 8 * r->size) {
		if (r->n)
			memcpy(out, in, r->n * r->size);
		if (r->big_endian)
			swap_bytes(out, r->n * r->size, r->size);
	} else if (is_float && r->size == 4) {
		unpack_floats(*r, b, out);
	} else if (is_float) {
		unpack_doubles(*r, b, out);
	} else if (r->size == 1) {
		unpack_integers(*r, b, 1, out);
	} else if (r->size == 2) {
		unpack_integers(*r, b, 2, out);
	} else if (r->size == 4) {
		unpack_integers(*r, b, 4, out);
	} else {
		unpack_integers(*r, b, 8, out);
	}
}

static int scaleoffset_decode(const struct codec_params *p, const void *in,
			      size_t in_len, void *out, size_t out_cap,
			      size_t *out_len, struct error *err)
{
	const unsigned char *stored = in;
	uint64_t total = in_len;
	struct rule rule;
	int r = scaleoffset_check(p, err);

	if (r < 0)
		return r;
	if (!scaleoffset_is_identity(p))
		total = (uint64_t)p->cd[CD_ELEMENTS] * p->cd[CD_SIZE];
	if (total > out_cap)
		return error_set(err, -ENOSPC,
				 "scaleoffset: %llu bytes, expected at most "
				 "%zu",
				 (unsigned long long)total, out_cap);
	if (scaleoffset_is_identity(p)) {
		if (in_len)
			memcpy(out, in, in_len);
		*out_len = in_len;
		return 0;
	}
	if (in_len < HEADER)
		return error_set(err, -EBADMSG,
				 "scaleoffset: %zu stored bytes are less than "
				 "a header",
				 in_len);
	rule = read_rule(p, stored);
	r = scaleoffset_check_length(&rule, in_len - HEADER, err);
	if (r < 0)
		return r;
	unpack_values(&rule, p->cd[CD_CLASS] == CLASS_FLOAT, stored + HEADER,
		      in_len - HEADER, out);
	*out_len = (size_t)total;
	return 0;
}

const struct codec codec_scaleoffset = {
	.name = "scaleoffset",
	.id = 6,
	.kind = CODEC_COMPRESS,
	.check = scaleoffset_check,
	.decode = scaleoffset_decode,
	.is_identity = scaleoffset_is_identity,
};
