/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface: the blocks of bzip2 streams, which begin at any bit. */
#ifndef STREAM_BZIP2_BLOCK_H
#define STREAM_BZIP2_BLOCK_H

#include "stream/slide.h"

/* Places are counted in bits from the beginning of the file. */
enum bzip2_item {
	BZIP2_END = 0, /* the end of the data, or what follows is not bzip2 */
	BZIP2_STREAM,  /* the header of a stream: 32 bits, at a whole byte */
	BZIP2_BLOCK,   /* a block; *crc is its CRC */
	/* The end of a stream: 80 bits; *crc is the CRC of the stream. */
	BZIP2_STREAM_END
};
#define BZIP2_STREAM_BITS 32
#define BZIP2_STREAM_END_BITS 80
/* The longest block, in bytes: 900 000 symbols of 20 bits, and tables. */
#define BZIP2_BLOCK_MOST ((size_t)5 << 19)
/* Most bytes that a block decodes to: each 5 bytes can stand for a run of 259. */
#define BZIP2_DECODED_MOST ((size_t)900000 / 5 * 259 + 260)

/* Return what is at `bit`, as an enum bzip2_item: a block or the end of a stream,
 * or, with `header`, the header of a stream, whose level '1' to '9' goes to *level.
 * Return -EIO if the data ends early, -EBADMSG if something else is there, or
 * -errno. */
int bzip2_look(struct slide *f, uint64_t bit, bool header, uint32_t *crc,
	       char *level, struct error *err);
/* Find where the block that begins at `bit` may end: the first place from `from` on
 * that looks like the beginning of a block or the end of a stream.  Return 1 and set
 * *end, or 0 if the data ends before (then at *end) or the block is too long, or
 * -errno. */
int bzip2_find_end(struct slide *f, uint64_t bit, uint64_t from, uint64_t *end,
		   struct error *err);
/* Find where a block really ends that did not decode up to *end, by decoding it.
 * Return 0 and set *end, or -errno. */
int bzip2_real_end(struct slide *f, uint64_t bit, char level, uint64_t *end,
		   struct error *err);

/* Where decoded bytes go.  With `own` the memory is malloc'ed and grows up to `most`
 * bytes. */
struct bzip2_out {
	unsigned char *at;
	size_t n, room, most;
	bool own;
};
/*
 * Decode the block of `bits` bits from bit `skip` of `p` on, and check its CRC.  The
 * block has to end there; with `tail` it may end earlier, because the data ends there.
 * Return 0, -EBADMSG or -ENOMEM.
 */
int bzip2_decode_block(const unsigned char *p, unsigned skip, uint64_t bits,
		       char level, uint32_t crc, bool tail,
		       struct bzip2_out *out, struct error *err);
/* Return the bytes from the one that has `bit` on.  *r is their number: n, or fewer
 * at the end of the data.  Return NULL if there are none; *r is then 0 or -errno.
 * They are valid until the next call with `f`. */
const unsigned char *bzip2_bytes(struct slide *f, uint64_t bit, size_t n,
				 ssize_t *r, struct error *err);

#endif
