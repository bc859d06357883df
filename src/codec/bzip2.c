/* SPDX-License-Identifier: BSD-2-Clause */
/* Filter 307, bzip2: one bzip2 stream, by libbz2. */
/*
 * HDF5's plugin and PyTables write one stream, and do not read a second one.  Each block
 * of a stream, and the stream, has a CRC, which libbz2 checks. libbz2 counts in 32 bits
 * what it takes and gives at a time, so both sides go in pieces.
 *
 * When libbz2 asks for more room than there is, only one byte more of output tells
 * whether the data is too long or its end was cut off.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "codec/codec.h"

#if HAVE_BZIP2
#include <bzlib.h>
#include <errno.h>

#include "base/number.h"

#define PIECE ((size_t)1 << 30)

/* Input and room that libbz2 has not been given yet. */
struct ends {
	char *in;
	size_t in_len;
	char *out;
	size_t room;
	char spare; /* room for one byte more than allowed */
	bool spared;
};

/* Give the stream more input or room where it has used up its own.  Return false if there
 * is no more. */
static bool refill(bz_stream *s, struct ends *e)
{
	bool more = false;

	if (!s->avail_in && e->in_len) {
		s->next_in = e->in;
		s->avail_in = (unsigned)min_u64(e->in_len, PIECE);
		e->in += s->avail_in;
		e->in_len -= s->avail_in;
		more = true;
	}
	if (!s->avail_out && e->room) {
		s->next_out = e->out;
		s->avail_out = (unsigned)min_u64(e->room, PIECE);
		e->out += s->avail_out;
		e->room -= s->avail_out;
		more = true;
	} else if (!s->avail_out && !e->spared) {
		s->next_out = &e->spare;
		s->avail_out = 1;
		e->spared = true;
		more = true;
	}
	return more;
}

/* Decompress the stream.  Bytes of both sides that were not used stay in `s` and `e`. */
static int bzip2_decompress(bz_stream *s, struct ends *e, struct error *err)
{
	int r = BZ_OK;

	while (r == BZ_OK && refill(s, e))
		r = BZ2_bzDecompress(s);
	if (e->spared && !s->avail_out)
		return error_set(err, -ENOSPC,
				 "bzip2: the stream decodes to more than the "
				 "expected bytes");
	if (r == BZ_MEM_ERROR)
		return error_no_memory(err, "a bzip2 decompressor");
	if (r == BZ_OK)
		return error_set(err, -EBADMSG, "bzip2: the stream is cut off");
	if (r != BZ_STREAM_END)
		return error_set(
			err, -EBADMSG,
			"bzip2: the stream is damaged (libbz2 error %d)", r);
	if (s->avail_in || e->in_len)
		return error_set(err, -EBADMSG,
				 "bzip2: %zu bytes follow the stream",
				 s->avail_in + e->in_len);
	return 0;
}

static int bzip2_decode(const struct codec_params *p, const void *in,
			size_t in_len, void *out, size_t out_cap,
			size_t *out_len, struct error *err)
{
	/* libbz2's interface has no const, but it only reads the input. */
	struct ends e = {.in = (char *)in,
			 .in_len = in_len,
			 .out = out,
			 .room = out_cap};
	bz_stream s = {.bzalloc = NULL};
	int r;

	(void)p;
	if (BZ2_bzDecompressInit(&s, 0, 0) != BZ_OK)
		return error_no_memory(err, "a bzip2 decompressor");
	r = bzip2_decompress(&s, &e, err);
	BZ2_bzDecompressEnd(&s);
	if (r == 0)
		*out_len = out_cap - e.room - (e.spared ? 0 : s.avail_out);
	return r;
}

const struct codec codec_bzip2 = {
	.name = "bzip2",
	.has_checksum = true,
	.id = 307,
	.kind = CODEC_COMPRESS,
	.decode = bzip2_decode,
};
#endif
