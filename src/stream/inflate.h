/* SPDX-License-Identifier: BSD-2-Clause */
/* A decoder of deflate data (RFC 1951) that can start before any code and stop after
 * any. */
#ifndef STREAM_INFLATE_H
#define STREAM_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How far back a match may reach. */
#define INFLATE_HISTORY 32768
/* A block's header has fewer bytes than this. */
#define INFLATE_HEADER_MAX 320
/* Entries of a table for 288 codes of at most 15 bits, looked up by 11 bits. */
#define INFLATE_LIT_ROOM 2342
#define INFLATE_DIST_ROOM 402 /* the same for 32 codes, looked up by 8 bits */

enum inflate_block { INFLATE_BETWEEN, INFLATE_STORED, INFLATE_CODED };

/* A decoder.  Its user sets the first fields. */
struct inflate {
	/* Set by the user: compressed bytes that were not taken yet, whether more of
	 * them will follow, and the offset of `end` in the file. */
	const unsigned char *in, *end;
	bool more;
	uint64_t end_at;

	uint64_t bits; /* bits taken from `in`; the lowest is the next one */
	unsigned n_bits;
	enum inflate_block block;
	bool final;         /* the block is the last one of the data */
	bool fixed;         /* the tables have the fixed codes */
	uint32_t stored;    /* bytes that are left of a stored block */
	uint64_t header_at; /* offset of the block's header, in bits */
	const char *fault;  /* what INFLATE_BAD was returned for */
	uint32_t lit[INFLATE_LIT_ROOM], dist[INFLATE_DIST_ROOM];
};

/* Where decoded bytes go: from `next` to `end`.  Matches may reach back to `start`,
 * and into the n_before bytes at `before`, which precede it. */
struct inflate_out {
	unsigned char *next, *end;
	const unsigned char *start, *before;
	size_t n_before;
	/* NULL, or a flag for each of the INFLATE_HISTORY bytes before `since`: it
	 * is set when a match copies the byte. */
	unsigned char *used;
	const unsigned char *since;
};

enum inflate_end {
	INFLATE_INPUT,  /* more input is needed; call inflate_unread first */
	INFLATE_OUTPUT, /* the next bytes do not fit into the output */
	/* The last block has ended; `in` is the byte after it. */
	INFLATE_DONE,
	INFLATE_CUT, /* the input ends early */
	INFLATE_BAD  /* not valid deflate data: see `fault` */
};

/* Forget the block and the bits that were taken.  The input stays. */
void inflate_reset(struct inflate *x);
/* Decode until one of the above.  It stops only between codes, so the next bit
 * begins a code or a header, and all decoded bytes are before o->next. */
enum inflate_end inflate_run(struct inflate *x, struct inflate_out *o);
/* Give whole bytes that were taken as bits back to the input, so that fewer than 8
 * bits stay. */
void inflate_unread(struct inflate *x);
/* Return the offset of the next bit. */
uint64_t inflate_bit(const struct inflate *x);
/* Skip n bits, at most 7.  Return false if there are fewer. */
bool inflate_skip(struct inflate *x, unsigned n);
/* Read the header of a block, to continue in the middle of the block.  The input
 * must begin with the header.  Return false if it is not valid. */
bool inflate_header(struct inflate *x);

#endif
