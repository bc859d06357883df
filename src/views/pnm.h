/* SPDX-License-Identifier: BSD-2-Clause */
/* Netpbm's images: PGM and PPM, plain and raw. */
#ifndef VIEWS_PNM_H
#define VIEWS_PNM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Longer headers (comments count) are refused. */
#define PNM_HEADER_MOST (UINT32_C(1) << 16)

/* Source: pgm(5) and ppm(5) of Netpbm. */
struct pnm {
	bool plain;        /* P2, P3: numbers as text; else P5, P6: as bytes */
	unsigned channels; /* 1: grey; 3: red, green, blue side by side */
	uint64_t width, height; /* 1 to 2^31 - 1 */
	uint32_t maxval;        /* 1 to 65535 */
	unsigned depth; /* bytes of a number: 1 to 255, else 2, big-endian */
	uint64_t bytes; /* of all numbers, row by row from the top */
	uint64_t data;  /* where the raster begins */
};
/* `n` bytes from the beginning of a file, all of it or at least PNM_HEADER_MOST.
 * -EBADMSG: no PGM or PPM, or damaged; -ENOTSUP: PBM, PAM.  The sentence names no
 * file. */
int pnm_read(const void *data, size_t n, struct pnm *out, struct error *err);

/* The raster of a plain image, in pieces.  Begin with zeros. */
struct pnm_plain {
	uint32_t value;
	bool digits, comment;
	uint64_t done; /* bytes made */
};
/* The next `n` bytes of text; the numbers that end in it come out as those of a raw
 * image, *made bytes, at most n + 2.  -EBADMSG: no number, too large a one, too many. */
int pnm_plain_take(struct pnm_plain *p, const struct pnm *image,
		   const void *text, size_t n, void *out, size_t *made,
		   struct error *err);
/* That was all text: the last number, 0 to 2 bytes.  -EBADMSG: too few. */
int pnm_plain_end(struct pnm_plain *p, const struct pnm *image, void *out,
		  size_t *made, struct error *err);

#endif
