/* SPDX-License-Identifier: BSD-2-Clause */
/* Interface: the blocks of bzip2 streams, which begin at any bit. */
#ifndef STREAM_BZIP2_BLOCK_H
#define STREAM_BZIP2_BLOCK_H

#include "stream/slide.h"

/* Places are counted in bits from the beginning of the file. */
enum bzip2_item {
	BZIP2_END = 0,   /* of the data, or what follows is no bzip2 */
	BZIP2_STREAM,    /* the header of a stream: 32 bits, whole bytes */
	BZIP2_BLOCK,     /* a block, whose CRC is *crc */
	BZIP2_STREAM_END /* the CRC of the stream is *crc; 80 bits */
};
#define BZIP2_STREAM_BITS 32
#define BZIP2_STREAM_END_BITS 80
/* No block is longer, in bytes: 900 000 symbols of 20 bits, and tables. */
#define BZIP2_BLOCK_MOST ((size_t)5 << 19)
/* What a block decodes to at most: runs of 259 in 5 bytes. */
#define BZIP2_DECODED_MOST ((size_t)900000 / 5 * 259 + 260)

/* What is at `bit`, where a block or the end of a stream has to be, or, with
 * `header`, a stream.  *level: of a stream, '1' to '9'.  -EIO, -EBADMSG. */
int bzip2_look(struct slide *f, uint64_t bit, bool header, uint32_t *crc,
	       char *level, struct error *err);
/* Where the block that begins at `bit` may end: the first place from `from` on that
 * looks like the beginning of a block or the end of a stream.  1; 0: the data ends
 * before, at *end, or the block is too long; -errno. */
int bzip2_find_end(struct slide *f, uint64_t bit, uint64_t from, uint64_t *end,
		   struct error *err);
/* The same where the block did not decode with `end`: another one, by decoding. */
int bzip2_real_end(struct slide *f, uint64_t bit, char level, uint64_t *end,
		   struct error *err);

/* Where what is decoded goes: grows to `most` when it is `own`. */
struct bzip2_out {
	unsigned char *at;
	size_t n, room, most;
	bool own;
};
/*
 * Decode the block of `bits` bits from bit `skip` of `p` on, and check its CRC.  It
 * has to end there; with `tail` it may end earlier, because the data ends there.
 * -EBADMSG, -ENOMEM.
 */
int bzip2_decode_block(const unsigned char *p, unsigned skip, uint64_t bits,
		       char level, uint32_t crc, bool tail,
		       struct bzip2_out *out, struct error *err);
/* The bytes from that of `bit` on: `n`, or as many as there are, *r.  NULL: *r is 0
 * or -errno. */
const unsigned char *bzip2_bytes(struct slide *f, uint64_t bit, size_t n,
				 ssize_t *r, struct error *err);

#endif
