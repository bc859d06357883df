/* SPDX-License-Identifier: BSD-2-Clause */
/* Filters of numcodecs that compute: differences, checksums. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include <errno.h>
#include <libdeflate.h>
#include <pthread.h>
#include <string.h>

#include "base/bytes.h"
#include "base/number.h"
#include "codec/numcodecs.h"

/* ---- delta --------------------------------------------------------------- */
/*
 * The first number is followed by differences, which may be of another type.  Decoding is
 * numpy.cumsum of them into an array of the decoded type: integers wrap around, floats
 * are added one after the other in their own precision.
 */

static bool delta_type_is_right(uint32_t t)
{
	uint32_t n = t & DELTA_BYTES, kind = t & ~(DELTA_BYTES | DELTA_BIG);

	if (kind == DELTA_FLOAT)
		return n == 4 || n == 8;
	return (kind == DELTA_INT || kind == DELTA_UINT) &&
	       (n == 1 || n == 2 || n == 4 || n == 8);
}

static int delta_check(const struct codec_params *p, struct error *err)
{
	if (p->n != 2 || !delta_type_is_right(p->cd[0]) ||
	    !delta_type_is_right(p->cd[1]) ||
	    ((p->cd[0] | p->cd[1]) & DELTA_FLOAT &&
	     (p->cd[0] ^ p->cd[1]) & ~DELTA_BIG))
		return error_set(err, -EBADMSG, "delta: impossible parameters");
	return 0;
}

static uint64_t load_number(const unsigned char *p, uint32_t type)
{
	unsigned n = type & DELTA_BYTES, shift = 64 - 8 * n;
	uint64_t v = 0;

	if (type & DELTA_BIG)
		for (unsigned i = 0; i < n; i++)
			v = v << 8 | p[i];
	else
		v = load_le(p, n);
	if (type & DELTA_INT) /* extend its sign */
		v = (uint64_t)((int64_t)(v << shift) >> shift);
	return v;
}

static void store_number(unsigned char *p, uint64_t v, uint32_t type)
{
	unsigned n = type & DELTA_BYTES;

	for (unsigned i = 0; i < n; i++) {
		p[type & DELTA_BIG ? n - 1 - i : i] = (unsigned char)v;
		v >>= 8;
	}
}

static void add_up_integers(const unsigned char *in, size_t n,
			    unsigned char *out, uint32_t into, uint32_t of)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		sum += load_number(in + i * (of & DELTA_BYTES), of);
		store_number(out + i * (into & DELTA_BYTES), sum, into);
	}
}

static double to_double(uint64_t bits)
{
	double v;

	memcpy(&v, &bits, sizeof v);
	return v;
}

static float to_float(uint64_t bits)
{
	uint32_t low = (uint32_t)bits;
	float v;

	memcpy(&v, &low, sizeof v);
	return v;
}

/* The first number is not added to anything, as in NumPy: a negative zero stays
 * negative. */
static void add_up_floats(const unsigned char *in, size_t n, unsigned char *out,
			  uint32_t into, uint32_t of)
{
	bool is_double = (into & DELTA_BYTES) == 8;
	uint64_t bits = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t x = load_number(in + i * (of & DELTA_BYTES), of);

		if (i && is_double) {
			double sum = to_double(bits) + to_double(x);

			memcpy(&bits, &sum, sizeof sum);
		} else if (i) {
			float sum = to_float(bits) + to_float(x);
			uint32_t low;

			memcpy(&low, &sum, sizeof sum);
			bits = low;
		} else {
			bits = x;
		}
		store_number(out + i * (into & DELTA_BYTES), bits, into);
	}
}

static int delta_decode(const struct codec_params *p, const void *in,
			size_t in_len, void *out, size_t out_cap,
			size_t *out_len, struct error *err)
{
	uint32_t into, of;
	size_t n;
	int r = delta_check(p, err);

	if (r < 0)
		return r;
	into = p->cd[0];
	of = p->cd[1];
	n = in_len / (of & DELTA_BYTES);
	if (in_len % (of & DELTA_BYTES))
		return error_set(err, -EBADMSG,
				 "delta: %zu bytes are not a whole number of "
				 "%u-byte numbers",
				 in_len, of & DELTA_BYTES);
	if (n > out_cap / (into & DELTA_BYTES))
		return error_set(err, -ENOSPC,
				 "delta: %zu numbers, expected at most %zu", n,
				 out_cap / (into & DELTA_BYTES));
	if (into & DELTA_FLOAT)
		add_up_floats(in, n, out, into, of);
	else
		add_up_integers(in, n, out, into, of);
	*out_len = n * (into & DELTA_BYTES);
	return 0;
}

const struct codec codec_delta = {
	.name = "delta",
	.kind = CODEC_COMPRESS,
	.check = delta_check,
	.decode = delta_decode,
};

/* ---- CRC-32C ------------------------------------------------------------- */

/* Reflected polynomial of Castagnoli (RFC 3720); eight bytes at a time. */
#define CASTAGNOLI UINT32_C(0x82f63b78)
static uint32_t crc_table[8][256];
static pthread_once_t crc_once = PTHREAD_ONCE_INIT;

static void make_crc_table(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (unsigned k = 0; k < 8; k++)
			c = c & 1 ? c >> 1 ^ CASTAGNOLI : c >> 1;
		crc_table[0][i] = c;
	}
	for (uint32_t i = 0; i < 256; i++)
		for (unsigned k = 1; k < 8; k++) {
			uint32_t c = crc_table[k - 1][i];

			crc_table[k][i] = c >> 8 ^ crc_table[0][c & 0xff];
		}
}

uint32_t crc32c(const void *data, size_t n)
{
	const unsigned char *p = data;
	uint32_t c = UINT32_MAX;

	pthread_once(&crc_once, make_crc_table);
	for (; n >= 8; n -= 8, p += 8) {
		uint32_t a = c ^ load_le32(p), b = load_le32(p + 4);

		c = crc_table[7][a & 0xff] ^ crc_table[6][a >> 8 & 0xff] ^
		    crc_table[5][a >> 16 & 0xff] ^ crc_table[4][a >> 24] ^
		    crc_table[3][b & 0xff] ^ crc_table[2][b >> 8 & 0xff] ^
		    crc_table[1][b >> 16 & 0xff] ^ crc_table[0][b >> 24];
	}
	while (n--)
		c = c >> 8 ^ crc_table[0][(c ^ *p++) & 0xff];
	return ~c;
}

/* ---- checksums ----------------------------------------------------------- */

static uint32_t crc32_of(const void *data, size_t n)
{
	return libdeflate_crc32(0, data, n);
}

static uint32_t adler32_of(const void *data, size_t n)
{
	return libdeflate_adler32(1, data, n);
}

static int check_sum(const char *name, uint32_t (*sum)(const void *, size_t),
		     const struct codec_params *p, const void *in,
		     size_t in_len, void *out, size_t out_cap, size_t *out_len,
		     struct error *err)
{
	bool behind = p->n && p->cd[0];
	const unsigned char *data = in;
	uint32_t stored, is;

	if (in_len < 4)
		return error_set(err, -EBADMSG,
				 "%s: %zu stored bytes have no room for the "
				 "checksum",
				 name, in_len);
	stored = load_le32(behind ? data + in_len - 4 : data);
	data += behind ? 0 : 4;
	in_len -= 4;
	is = sum(data, in_len);
	if (is != stored)
		return error_set(err, -EBADMSG,
				 "%s: checksum is %08x, stored is %08x", name,
				 is, stored);
	if (in_len > out_cap)
		return error_set(err, -ENOSPC,
				 "%s: %zu bytes, expected at most %zu", name,
				 in_len, out_cap);
	if (in_len)
		memcpy(out, data, in_len);
	*out_len = in_len;
	return 0;
}

#define CHECKSUM(NAME, SUM)                                                    \
	static int NAME##_decode(const struct codec_params *p, const void *in, \
				 size_t in_len, void *out, size_t out_cap,     \
				 size_t *out_len, struct error *err)           \
	{                                                                      \
		return check_sum(#NAME, SUM, p, in, in_len, out, out_cap,      \
				 out_len, err);                                \
	}                                                                      \
	const struct codec codec_##NAME = {                                    \
		.name = #NAME,                                                 \
		.has_checksum = true,                                          \
		.kind = CODEC_COMPRESS,                                        \
		.decode = NAME##_decode,                                       \
	}

CHECKSUM(crc32, crc32_of);
CHECKSUM(crc32c, crc32c);
CHECKSUM(adler32, adler32_of);
