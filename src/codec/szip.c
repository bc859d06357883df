/* SPDX-License-Identifier: BSD-2-Clause */
/* Filter 4, szip: CCSDS 121 adaptive entropy coding, by libaec. */
/*
 * HDF5 stores how many bytes there were (u32, little-endian), then what szip's
 * SZ_BufftoBuffCompress made of them:
 *
 *	bytes -> words of 4 or 8 bytes are shuffled, and coded as single bytes
 *	      -> cut into lines of "pixels per scanline", the last may be short
 *	      -> each line is filled up to whole blocks, as the last one is to a
 *		 whole line
 *	      -> coded; a line is a "reference sample interval" (CCSDS 121.0)
 *
 * libaec has a function for the way back.  But it takes two numbers from the file
 * unchecked (a block of 0 pixels is a division by zero, one of an odd number runs over a
 * buffer), and where coded bytes are missing it returns memory that was never written.
 * So the lines are decoded here, a window of them at a time, and go from there to their
 * places; the decoder keeps its state between two windows.
 *
 * There is no checksum.  All that can be checked is that the code ends where the last
 * line does.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "codec/codec.h"

#if HAVE_SZIP
#include <errno.h>
#include <libaec.h>
#include <string.h>

#include "base/bytes.h"
#include "base/number.h"

#define HEADER 4u
#define PARAMS 4u

/* Options that say how a line was coded; the others concern szip's encoder only. */
#define OPTION_MSB 16u
#define OPTION_NN 32u

#define BLOCK_MAX 32u  /* pixels, the limit of H5Pset_szip */
#define LINE_MAX 4096u /* pixels, szip's limit */
#define WINDOW 32768u
_Static_assert((LINE_MAX + BLOCK_MAX) * 4 <= WINDOW, "a line fits");

/*
 * libaec counts the zero bits of a code in 32 bits and multiplies the count, unchecked:
 * 2^27 of them make it write beyond its buffer.  No block is that long.  Every run of
 * twice this many zero bytes contains an aligned run of this many, and shorter runs are
 * harmless.
 */
#define ZEROS ((size_t)1 << 20)

struct lines {
	size_t plain;  /* bytes in all */
	size_t line;   /* bytes of a line */
	size_t padded; /* bytes of a line as coded */
	size_t word;   /* bytes of a shuffled word, or 1 */
	size_t done;   /* bytes put in place */
};

/* This is not the codec's `check`: where every chunk skips the filter (strings), the
 * library leaves incomplete parameters behind. */
static int check_params(const struct codec_params *p, struct error *err)
{
	uint32_t block = p->cd[1], bits = p->cd[2], line = p->cd[3];

	if (p->n != PARAMS)
		return error_set(err, -EBADMSG,
				 "szip: %u parameters instead of %u", p->n,
				 PARAMS);
	if (!block || block % 2 || block > BLOCK_MAX)
		return error_set(err, -EBADMSG,
				 "szip: %u pixels per block, expected an even "
				 "number up to %u",
				 block, BLOCK_MAX);
	if (!bits || (bits > 32 && bits != 64))
		return error_set(
			err, -EBADMSG,
			"szip: %u bits per pixel, expected 1 to 32, or 64",
			bits);
	if (!line || line > LINE_MAX)
		return error_set(err, -EBADMSG,
				 "szip: %u pixels per line, expected 1 to %u",
				 line, LINE_MAX);
	return 0;
}

/* Set up the decoder from parameters that were checked. */
static int set_up_decoder(const struct codec_params *p, struct aec_stream *s,
			  struct lines *l, struct error *err)
{
	uint32_t block = p->cd[1], bits = p->cd[2], line = p->cd[3];
	size_t pixel;

	l->word = 1;
	if (bits == 32 || bits == 64) {
		l->word = bits / 8;
		bits = 8;
	}
	pixel = bits > 16 ? 4 : bits > 8 ? 2 : 1;
	if (l->plain % pixel || l->plain % l->word)
		return error_set(err, -EBADMSG,
				 "szip: %zu bytes are not a whole number of "
				 "%zu-byte pixels",
				 l->plain, pixel * l->word);
	s->bits_per_sample = bits;
	s->block_size = block;
	s->rsi = (unsigned)div_up(line, block);
	if (p->cd[0] & OPTION_MSB)
		s->flags |= AEC_DATA_MSB;
	if (p->cd[0] & OPTION_NN)
		s->flags |= AEC_DATA_PREPROCESS;
	l->line = line * pixel;
	l->padded = (size_t)s->rsi * block * pixel;
	return 0;
}

static bool has_zeros(const unsigned char *in, size_t in_len)
{
	for (; in_len >= ZEROS; in += ZEROS, in_len -= ZEROS)
		if (!in[0] && !memcmp(in, in + 1, ZEROS - 1))
			return true;
	return false;
}

/* Put the next n coded bytes in place, at l->done of the plain ones: the first bytes of
 * all words are followed by all second bytes, and so on. */
static void place_coded_bytes(struct lines *l, const unsigned char *from,
			      size_t n, unsigned char *out)
{
	size_t count = l->plain / l->word;

	if (l->word == 1) {
		memcpy(out + l->done, from, n);
		l->done += n;
		return;
	}
	while (n) {
		size_t i = l->done % count, j = l->done / count;
		size_t run = min_u64(n, count - i);
		unsigned char *to = out + i * l->word + j;

		for (size_t k = 0; k < run; k++)
			to[k * l->word] = from[k];
		from += run;
		n -= run;
		l->done += run;
	}
}

/* Put the lines of a window in place, without their padding.  Return -EBADMSG if the
 * `made` bytes are not all that is needed. */
static int place_lines(struct lines *l, size_t lines,
		       const unsigned char *window, size_t made,
		       unsigned char *out)
{
	for (size_t i = 0; i < lines; i++) {
		size_t n = min_u64(l->line, l->plain - l->done);

		if (made < n)
			return -EBADMSG;
		place_coded_bytes(l, window, n, out);
		window += l->padded;
		made -= min_u64(made, l->padded);
	}
	return 0;
}

static int decode_lines(struct aec_stream *s, struct lines *l,
			unsigned char *out, struct error *err)
{
	unsigned char window[WINDOW];
	size_t room = WINDOW / l->padded;

	while (l->done < l->plain) {
		size_t lines = div_up(l->plain - l->done, l->line);
		size_t want;

		lines = min_u64(lines, room);
		want = lines * l->padded;
		s->next_out = window;
		s->avail_out = want;
		if (aec_decode(s, AEC_FLUSH) != AEC_OK)
			return error_set(err, -EBADMSG,
					 "szip: the code is damaged after %zu "
					 "of %zu bytes",
					 l->done, l->plain);
		if (place_lines(l, lines, window, want - s->avail_out, out) < 0)
			return error_set(err, -EBADMSG,
					 "szip: the code ends after %zu of "
					 "%zu bytes",
					 l->done, l->plain);
	}
	if (s->avail_in)
		return error_set(err, -EBADMSG,
				 "szip: %zu bytes follow the code of %zu",
				 s->avail_in, l->plain);
	return 0;
}

static int szip_decode(const struct codec_params *p, const void *in,
		       size_t in_len, void *out, size_t out_cap,
		       size_t *out_len, struct error *err)
{
	const unsigned char *from = in;
	struct lines l = {.plain = 0};
	struct aec_stream s = {.flags = 0};
	int r = check_params(p, err);

	if (r < 0)
		return r;
	if (in_len < HEADER)
		return error_set(
			err, -EBADMSG,
			"szip: %zu stored bytes are less than a header",
			in_len);
	l.plain = load_le32(from);
	if (l.plain > out_cap)
		return error_set(err, -ENOSPC,
				 "szip: the header promises %zu bytes, "
				 "expected at most %zu",
				 l.plain, out_cap);
	r = set_up_decoder(p, &s, &l, err);
	if (r < 0)
		return r;
	s.next_in = from + HEADER;
	s.avail_in = in_len - HEADER;
	if (has_zeros(s.next_in, s.avail_in))
		return error_set(err, -EBADMSG,
				 "szip: the code has %zu zero bytes in a row",
				 ZEROS);
	if (aec_decode_init(&s) != AEC_OK)
		return error_no_memory(err, "an szip decompressor");
	r = decode_lines(&s, &l, out, err);
	aec_decode_end(&s);
	if (r == 0)
		*out_len = l.plain;
	return r;
}

const struct codec codec_szip = {
	.name = "szip",
	.id = 4,
	.kind = CODEC_COMPRESS,
	.decode = szip_decode,
};
#endif
