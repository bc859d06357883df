/* SPDX-License-Identifier: BSD-2-Clause */
/* Deflate data (RFC 1951), decoded from any code on and stopped behind any. */
#ifndef STREAM_INFLATE_H
#define STREAM_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How far back a match may reach. */
#define INFLATE_HISTORY 32768
/* A block's header has fewer bytes. */
#define INFLATE_HEADER_MAX 320
#define INFLATE_LIT_ROOM 2342 /* 288 codes of 15 bits at most, by 11 bits */
#define INFLATE_DIST_ROOM 402 /* 32 of them, by 8 */

enum inflate_block { INFLATE_BETWEEN, INFLATE_STORED, INFLATE_CODED };

/* The caller sets what is said to be its. */
struct inflate {
	/* The caller's: compressed bytes that were not taken yet, whether more
	 * of them will follow, and the offset of `end` in the whole. */
	const unsigned char *in, *end;
	bool more;
	uint64_t end_at;

	uint64_t bits; /* taken; the lowest is the next one */
	unsigned n_bits;
	enum inflate_block block;
	bool final;         /* the block is the last one */
	bool fixed;         /* the codes are the fixed ones */
	uint32_t stored;    /* bytes left of a stored block */
	uint64_t header_at; /* where the block's header is, in bits */
	const char *fault;  /* what INFLATE_BAD means */
	uint32_t lit[INFLATE_LIT_ROOM], dist[INFLATE_DIST_ROOM];
};

/* Where decoded bytes go: from `next` to `end`.  Matches reach back to `start`, and
 * into `n_before` bytes that came before that. */
struct inflate_out {
	unsigned char *next, *end;
	const unsigned char *start, *before;
	size_t n_before;
	/* NULL, or a flag for each of the INFLATE_HISTORY bytes before `since`:
	 * set when a match has taken it. */
	unsigned char *used;
	const unsigned char *since;
};

enum inflate_end {
	INFLATE_INPUT,  /* more of it is needed; call inflate_unread first */
	INFLATE_OUTPUT, /* what comes next does not fit */
	INFLATE_DONE,   /* the last block is over; `in` is the byte behind it */
	INFLATE_CUT,    /* the input ends early */
	INFLATE_BAD     /* no deflate data: see fault */
};

/* Forget the block and the bits taken; the input stays. */
void inflate_reset(struct inflate *x);
/* Decode until one of the above.  It stops between codes only, so the next bit
 * begins a code, or a header, and what was decoded is as much as `next` says. */
enum inflate_end inflate_run(struct inflate *x, struct inflate_out *o);
/* Give whole bytes that were taken back to the input: fewer than 8 bits stay. */
void inflate_unread(struct inflate *x);
/* Offset of the next bit. */
uint64_t inflate_bit(const struct inflate *x);
/* Pass over n (at most 7) bits; false: there are none. */
bool inflate_skip(struct inflate *x, unsigned n);
/* Read the header of a block, for going on in the middle of it: the input is the
 * header.  False: it is none. */
bool inflate_header(struct inflate *x);

#endif
