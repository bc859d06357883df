/* SPDX-License-Identifier: BSD-2-Clause */
/* Filter 3, fletcher32: a checksum of four bytes behind the data. */
/*
 * The sum is over 16-bit big-endian words, an odd last byte being the high one of a word,
 * modulo 65535 in ones' complement (so a sum is 0 only when all words are).  It is stored
 * as a little-endian number: sum of sums, then sum.  Before 1.6.3 HDF5 wrote both halves
 * byte-swapped on little-endian machines; like HDF5 we accept either form.
 *
 * Eight words are summed at a time, each in a lane of its own.  With A the lane's sum of
 * m words and B its sum of sums, lane l stands for the words l, l + 8, ..., and counting
 * how often each word enters the sum of sums gives
 *
 *	a' = a + sum of A		b' = b + 8 m a + sum of (8 B - l A)
 *
 * B stays below 2^32 for m up to LANE_WORDS: 256 * 257 / 2 * 65535.
 */
#include "codec/codec.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"

#define LANES 8u
#define LANE_WORDS 256u

typedef uint16_t words __attribute__((vector_size(2 * LANES)));
typedef uint32_t sums __attribute__((vector_size(4 * LANES)));

static uint64_t fold_to_16_bits(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* Add m * LANES words to both sums; m <= LANE_WORDS. */
static void add_lanes(const unsigned char *data, size_t m, uint64_t *a,
		      uint64_t *b)
{
	sums lane_a = {0}, lane_b = {0};

	*b += LANES * m * *a;
	for (size_t i = 0; i < m; i++) {
		words w;

		memcpy(&w, data + i * sizeof w, sizeof w);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
		w = w << 8 | w >> 8;
#endif
		lane_a += __builtin_convertvector(w, sums);
		lane_b += lane_a;
	}
	for (unsigned l = 0; l < LANES; l++) {
		*a += lane_a[l];
		*b += (uint64_t)LANES * lane_b[l] - (uint64_t)l * lane_a[l];
	}
	*a = fold_to_16_bits(*a);
	*b = fold_to_16_bits(*b);
}

static uint32_t fletcher32(const unsigned char *data, size_t len)
{
	uint64_t a = 0, b = 0;

	while (len >= 2 * LANES) {
		size_t m = len / (2 * LANES);

		if (m > LANE_WORDS)
			m = LANE_WORDS;
		add_lanes(data, m, &a, &b);
		data += m * 2 * LANES;
		len -= m * 2 * LANES;
	}
	for (; len; data += 2, len -= 2) {
		a = fold_to_16_bits(
			a + ((uint32_t)data[0] << 8 | (len > 1 ? data[1] : 0)));
		b = fold_to_16_bits(b + a);
		if (len == 1)
			break;
	}
	return (uint32_t)(b << 16 | a);
}

static int fletcher32_verify(const void *in, size_t in_len, struct error *err)
{
	const unsigned char *t;
	uint32_t stored, swapped, sum;

	if (in_len < 4)
		return error_set(err, -EBADMSG,
				 "fletcher32: %zu stored bytes have no room "
				 "for the checksum",
				 in_len);
	t = (const unsigned char *)in + in_len - 4;
	stored = load_le32(t);
	swapped = (uint32_t)load_be16(t + 2) << 16 | load_be16(t);
	sum = fletcher32(in, in_len - 4);
	if (sum != stored && sum != swapped)
		return error_set(err, -EBADMSG,
				 "fletcher32: checksum is %08x, stored is %08x",
				 sum, stored);
	return 0;
}

static int fletcher32_decode(const struct codec_params *p, const void *in,
			     size_t in_len, void *out, size_t out_cap,
			     size_t *out_len, struct error *err)
{
	int r = fletcher32_verify(in, in_len, err);

	(void)p;
	if (r < 0)
		return r;
	in_len -= 4;
	if (in_len > out_cap)
		return error_set(err, -ENOSPC,
				 "fletcher32: %zu bytes, expected at most %zu",
				 in_len, out_cap);
	if (in_len)
		memcpy(out, in, in_len);
	*out_len = in_len;
	return 0;
}

static int fletcher32_encode(const struct codec_params *p, const void *in,
			     size_t in_len, void *out, size_t out_cap,
			     size_t *out_len, struct error *err)
{
	(void)p, (void)err;
	if (out_cap < 4)
		return 1;
	store_le32(out, fletcher32(in, in_len));
	*out_len = 4;
	return 0;
}

const struct codec codec_fletcher32 = {
	.name = "fletcher32",
	.has_checksum = true,
	.id = 3,
	.kind = CODEC_TRAILER,
	.trailer = 4,
	.decode = fletcher32_decode,
	.encode = fletcher32_encode,
	.verify = fletcher32_verify,
};
