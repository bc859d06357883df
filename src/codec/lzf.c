/* SPDX-License-Identifier: BSD-2-Clause */
/* Filter 32000, lzf: LZF bytes without header or checksum. */
/*
 * There is no header, no checksum and no length.  A chunk is a list of
 *
 *	000nnnnn		n + 1 bytes follow as they are
 *	lllooooo oooooooo	repeat l + 2 bytes from o + 1 bytes back
 *	111ooooo llllllll oooooooo	as above, 7 + l for l
 *
 * The decoder finds out how many bytes come out, the pipeline knows how many there must
 * be, and the size that h5py writes into the third client value is not needed. liblzf
 * decodes this, too, but byte by byte.  Here bytes move in blocks of BLOCK bytes as long
 * as there is room for a whole block behind the copy on both sides: surplus bytes are
 * overwritten by those that follow.  That is twice as fast on counts and three times as
 * fast on shuffled counts.  The tests compare it with liblzf.
 */
#include "codec/codec.h"

#include <errno.h>
#include <liblzf/lzf.h>
#include <limits.h>
#include <string.h>

#define BLOCK 16u

/* Copy n bytes in whole blocks: up to BLOCK - 1 bytes more are read and written.  If the
 * two overlap, `to` is at least a block ahead of `from`. */
static inline void copy_blocks(unsigned char *to, const unsigned char *from,
			       size_t n)
{
	unsigned char block[BLOCK];

	for (size_t i = 0; i < n; i += BLOCK) {
		memcpy(block, from + i, BLOCK);
		memcpy(to + i, block, BLOCK);
	}
}

/* Repeat n bytes from `back` bytes before `to`; there must be room for n + BLOCK
 * bytes. */
static inline void repeat_blocks(unsigned char *to, size_t back, size_t n)
{
	if (back == 1) {
		unsigned char block[BLOCK];

		memset(block, to[-1], BLOCK);
		for (size_t i = 0; i < n; i += BLOCK)
			memcpy(to + i, block, BLOCK);
		return;
	}
	/* The first `back` bytes of a copied block are right.  Each copy doubles the
	 * period, until a whole block is right. */
	while (back < BLOCK && n > back) {
		unsigned char block[BLOCK];

		memcpy(block, to - back, BLOCK);
		memcpy(to, block, BLOCK);
		to += back;
		n -= back;
		back *= 2;
	}
	copy_blocks(to, to - back, n);
}

/*
 * Decode; the bytes left on both sides are `end - at`, and every length is checked
 * against them before a byte moves.  Return 0, -EBADMSG or -ENOSPC.
 */
static int lzf_undo(const unsigned char *in, const unsigned char *in_end,
		    unsigned char *const out, unsigned char *out_end,
		    size_t *out_len)
{
	unsigned char *to = out;

	while (in < in_end) {
		size_t n = *in++, back, room = (size_t)(out_end - to);

		if (n < 32) {
			n++;
			if (n > (size_t)(in_end - in))
				return -EBADMSG;
			if (n > room)
				return -ENOSPC;
			if (room >= n + BLOCK &&
			    (size_t)(in_end - in) >= n + BLOCK)
				copy_blocks(to, in, n);
			else
				memcpy(to, in, n);
			in += n;
			to += n;
			continue;
		}
		back = (n & 31) << 8;
		n >>= 5;
		if (n == 7) {
			if (in == in_end)
				return -EBADMSG;
			n += *in++;
		}
		if (in == in_end)
			return -EBADMSG;
		back += *in++;
		back++;
		n += 2;
		if (back > (size_t)(to - out))
			return -EBADMSG;
		if (n > room)
			return -ENOSPC;
		if (room >= n + BLOCK)
			repeat_blocks(to, back, n);
		else
			for (size_t i = 0; i < n; i++)
				to[i] = *(to + i - back);
		to += n;
	}
	*out_len = (size_t)(to - out);
	return 0;
}

static int lzf_decode(const struct codec_params *p, const void *in,
		      size_t in_len, void *out, size_t out_cap, size_t *out_len,
		      struct error *err)
{
	const unsigned char *from = in;
	unsigned char *to = out;
	int r;

	(void)p;
	if (!in_len)
		return error_set(err, -EBADMSG,
				 "lzf: the chunk has no stored bytes");
	r = lzf_undo(from, from + in_len, to, to + out_cap, out_len);
	if (r == -ENOSPC)
		return error_set(err, r,
				 "lzf: %zu stored bytes decode to more than "
				 "%zu bytes",
				 in_len, out_cap);
	if (r < 0)
		return error_set(err, r, "lzf: %zu stored bytes are damaged",
				 in_len);
	return 0;
}

/* Encode with liblzf, whose lengths have 32 bits. */
static int lzf_encode(const struct codec_params *p, const void *in,
		      size_t in_len, void *out, size_t out_cap, size_t *out_len,
		      struct error *err)
{
	unsigned n;

	(void)p, (void)err;
	if (in_len > UINT_MAX)
		return 1;
	n = lzf_compress(in, (unsigned)in_len, out,
			 out_cap < UINT_MAX ? (unsigned)out_cap : UINT_MAX);
	*out_len = n;
	return n ? 0 : 1;
}

const struct codec codec_lzf = {
	.name = "lzf",
	.id = 32000,
	.kind = CODEC_COMPRESS,
	.decode = lzf_decode,
	.encode = lzf_encode,
};
