/* SPDX-License-Identifier: BSD-2-Clause */
/* Read Netpbm's images: PGM and PPM, plain and raw. */
#ifndef VIEWS_PNM_H
#define VIEWS_PNM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Longest header in bytes, comments included; longer ones are refused. */
#define PNM_HEADER_MOST (UINT32_C(1) << 16)

/* Source: pgm(5) and ppm(5) of Netpbm. */
struct pnm {
	bool plain;             /* P2, P3: numbers as text; P5, P6: as bytes */
	unsigned channels;      /* 1: grey; 3: red, green, blue side by side */
	uint64_t width, height; /* 1 to 2^31 - 1 */
	uint32_t maxval;        /* 1 to 65535 */
	/* bytes of a number: 1 up to maxval 255, else 2, big-endian */
	unsigned depth;
	uint64_t bytes; /* bytes of all numbers, row by row from the top */
	uint64_t data;  /* offset of the raster in the file */
};
/* Read a header from `n` bytes of the beginning of a file: the whole file, or at least
 * PNM_HEADER_MOST bytes.  Return 0; -EBADMSG if it is not a PGM or PPM, or damaged;
 * -ENOTSUP for PBM and PAM.  The sentence does not name the file. */
int pnm_read(const void *data, size_t n, struct pnm *out, struct error *err);

/* State of reading the raster of a plain image in pieces.  Start with all zeros. */
struct pnm_plain {
	uint32_t value;
	bool digits, comment;
	uint64_t done; /* bytes written */
};
/* Read the next `n` bytes of text and write the numbers that end in them as in a raw
 * image: *made bytes, at most n + 2.  Return 0; -EBADMSG for something that is not a
 * number, a number that is too large, or too many numbers. */
int pnm_plain_take(struct pnm_plain *p, const struct pnm *image,
		   const void *text, size_t n, void *out, size_t *made,
		   struct error *err);
/* Finish after the last text: write the last number, 0 to 2 bytes.  Return 0; -EBADMSG
 * if there were too few numbers. */
int pnm_plain_end(struct pnm_plain *p, const struct pnm *image, void *out,
		  size_t *made, struct error *err);

#endif
