/* SPDX-License-Identifier: BSD-2-Clause */
/* Copy boxes of elements from one array in memory to another. */
/*
 * A box is first made as flat as possible: axes of one element are dropped, axes that
 * follow each other without a gap on both sides are joined, and a run that is contiguous
 * on both sides becomes one longer element.  A plane remains, repeated along the other
 * axes.  Its rows are those of the output:
 *
 *	in   aaaa....bbbb....cccc       rows: one loop, of a known width
 *	out  aaaabbbbcccc
 *
 *	in   adgbehcfi                  turned: neighbours of the input are far
 *	out  abcdefghi                  apart in the output; square by square
 *
 * Neither case calls a function for each element: the compiler knows the widths of
 * numbers, and other short runs are two moves that may overlap.
 */
#include "base/copies.h"

#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"

/* Bytes a side of a square: it is read and written within the first-level cache. */
#define SQUARE 64

/* ---- rows ---------------------------------------------------------------- */

#define EACH_ROW(body)                                          \
	for (; rows; rows--, to += out_step, from += in_step) { \
		body;                                           \
	}                                                       \
	break
/* Copy `len` bytes, w <= len <= 2 w, as two moves that may overlap. */
#define ENDS(w)                \
	memcpy(to, from, (w)); \
	memcpy(to + len - (w), from + len - (w), (w))

void copy_rows(void *out, size_t out_step, const void *in, size_t in_step,
	       size_t rows, size_t len)
{
	unsigned char *restrict to = out;
	const unsigned char *restrict from = in;

	if (len == out_step && len == in_step) {
		len *= rows;
		rows = len ? 1 : 0;
	}
	switch (len) {
	case 0:
		break;
	case 1:
		EACH_ROW(*to = *from);
	case 2:
		EACH_ROW(memcpy(to, from, 2));
	case 3:
		EACH_ROW(ENDS(2));
	case 4:
		EACH_ROW(memcpy(to, from, 4));
	case 5:
	case 6:
	case 7:
		EACH_ROW(ENDS(4));
	case 8:
		EACH_ROW(memcpy(to, from, 8));
	case 16:
		EACH_ROW(memcpy(to, from, 16));
	default:
		if (len < 16) {
			EACH_ROW(ENDS(8));
		} else if (len <= 32) {
			EACH_ROW(ENDS(16));
		} else if (len <= 64) {
			EACH_ROW(ENDS(32));
		} else if (len <= 128) {
			EACH_ROW(ENDS(64));
		}
		EACH_ROW(memcpy(to, from, len));
	}
}

/* ---- turned -------------------------------------------------------------- */

/* Rows of the output are along x; neighbours of the input along y. */
struct plane {
	struct copy_axis x, y;
};

static inline __attribute__((always_inline)) void
turn_square(const struct plane *p, unsigned char *restrict to,
	    const unsigned char *restrict from, size_t nx, size_t ny,
	    size_t len)
{
	const size_t to_x = p->x.out, to_y = p->y.out;
	const size_t from_x = p->x.in, from_y = p->y.in;

	for (; ny; ny--, to += to_y, from += from_y)
		for (size_t x = 0; x < nx; x++)
			memcpy(to + x * to_x, from + x * from_x, len);
}

/*
 * Where the neighbours of both sides are contiguous, elements of one and two bytes are
 * turned in words.  Word i has elements of row i, and pairs of words exchange what is on
 * the wrong side of the diagonal: first the halves of blocks, then the halves of these
 * halves.
 */
static inline void exchange_corners(uint64_t *a, uint64_t *b, unsigned bits,
				    uint64_t mask)
{
	uint64_t t = (*a >> bits ^ *b) & mask;

	*a ^= t << bits;
	*b ^= t;
}

#define FOURS UINT64_C(0x00000000ffffffff)
#define TWOS UINT64_C(0x0000ffff0000ffff)
#define ONES UINT64_C(0x00ff00ff00ff00ff)

/* Transpose a tile of 8 x 8 bytes. */
static inline void turn_bytes(unsigned char *restrict to, size_t to_step,
			      const unsigned char *restrict from)
{
	uint64_t w0 = load_le64(from), w1 = load_le64(from + SQUARE);
	uint64_t w2 = load_le64(from + 2 * SQUARE);
	uint64_t w3 = load_le64(from + 3 * SQUARE);
	uint64_t w4 = load_le64(from + 4 * SQUARE);
	uint64_t w5 = load_le64(from + 5 * SQUARE);
	uint64_t w6 = load_le64(from + 6 * SQUARE);
	uint64_t w7 = load_le64(from + 7 * SQUARE);

	exchange_corners(&w0, &w4, 32, FOURS);
	exchange_corners(&w1, &w5, 32, FOURS);
	exchange_corners(&w2, &w6, 32, FOURS);
	exchange_corners(&w3, &w7, 32, FOURS);
	exchange_corners(&w0, &w2, 16, TWOS);
	exchange_corners(&w1, &w3, 16, TWOS);
	exchange_corners(&w4, &w6, 16, TWOS);
	exchange_corners(&w5, &w7, 16, TWOS);
	exchange_corners(&w0, &w1, 8, ONES);
	exchange_corners(&w2, &w3, 8, ONES);
	exchange_corners(&w4, &w5, 8, ONES);
	exchange_corners(&w6, &w7, 8, ONES);
	store_le64(to, w0);
	store_le64(to + to_step, w1);
	store_le64(to + 2 * to_step, w2);
	store_le64(to + 3 * to_step, w3);
	store_le64(to + 4 * to_step, w4);
	store_le64(to + 5 * to_step, w5);
	store_le64(to + 6 * to_step, w6);
	store_le64(to + 7 * to_step, w7);
}

/* Turn a square of 4 elements of two bytes a side. */
static inline void turn_pairs(unsigned char *restrict to, size_t to_step,
			      const unsigned char *restrict from)
{
	uint64_t w0 = load_le64(from), w1 = load_le64(from + SQUARE);
	uint64_t w2 = load_le64(from + 2 * SQUARE);
	uint64_t w3 = load_le64(from + 3 * SQUARE);

	exchange_corners(&w0, &w2, 32, FOURS);
	exchange_corners(&w1, &w3, 32, FOURS);
	exchange_corners(&w0, &w1, 16, TWOS);
	exchange_corners(&w2, &w3, 16, TWOS);
	store_le64(to, w0);
	store_le64(to + to_step, w1);
	store_le64(to + 2 * to_step, w2);
	store_le64(to + 3 * to_step, w3);
}

/* Turn a square by way of a packed copy, so that cache lines of the input are read once:
 * they are often apart by powers of two and would then evict each other.  The edges that
 * are not whole squares of words are turned element by element. */
static inline __attribute__((always_inline)) void
turn_packed(const struct plane *p, unsigned char *restrict to,
	    const unsigned char *restrict from, size_t nx, size_t ny,
	    size_t len)
{
	unsigned char packed[SQUARE * SQUARE];
	const size_t words = 8 / len, wx = nx - nx % words;
	const size_t wy = ny - ny % words, step = p->y.out;
	const struct plane rest = {{nx, len, SQUARE}, {ny, step, len}};

	copy_rows(packed, SQUARE, from, p->x.in, nx, ny * len);
	for (size_t y = 0; y < wy; y += words)
		for (size_t x = 0; x < wx; x += words)
			if (len == 1)
				turn_bytes(to + x + y * step, step,
					   packed + x * SQUARE + y);
			else
				turn_pairs(to + x * 2 + y * step, step,
					   packed + x * SQUARE + y * 2);
	if (wx < nx)
		turn_square(&rest, to + wx * len, packed + wx * SQUARE, nx - wx,
			    wy, len);
	if (wy < ny)
		turn_square(&rest, to + wy * step, packed + wy * len, nx,
			    ny - wy, len);
}

static inline __attribute__((always_inline)) void
turn_squares(const struct plane *p, unsigned char *restrict out,
	     const unsigned char *restrict in, size_t len, size_t side)
{
	bool packed = len <= 2 && p->x.out == len && p->y.in == len;

	for (size_t y = 0; y < p->y.n; y += side)
		for (size_t x = 0; x < p->x.n; x += side) {
			size_t nx = p->x.n - x, ny = p->y.n - y;
			unsigned char *to = out + x * p->x.out + y * p->y.out;
			const unsigned char *from =
				in + x * p->x.in + y * p->y.in;

			nx = nx < side ? nx : side;
			ny = ny < side ? ny : side;
			if (packed)
				turn_packed(p, to, from, nx, ny, len);
			else
				turn_square(p, to, from, nx, ny, len);
		}
}

static void turn_plane(const struct plane *p, void *out, const void *in,
		       size_t len)
{
	switch (len) {
	case 1:
		turn_squares(p, out, in, 1, SQUARE);
		break;
	case 2:
		turn_squares(p, out, in, 2, SQUARE / 2);
		break;
	case 4:
		turn_squares(p, out, in, 4, SQUARE / 4);
		break;
	case 8:
		turn_squares(p, out, in, 8, SQUARE / 8);
		break;
	case 16:
		turn_squares(p, out, in, 16, SQUARE / 8);
		break;
	default:
		turn_squares(p, out, in, len, SQUARE / 8);
	}
}

/* ---- boxes --------------------------------------------------------------- */

/* Collect in `a` the axes of more than one element, the outermost of the output first.
 * Return false if there is nothing to copy. */
static bool sort_axes(const struct copy_axis *axes, unsigned *rank,
		      struct copy_axis *a)
{
	unsigned n = 0;

	for (unsigned i = 0; i < *rank; i++) {
		unsigned k = n;

		if (!axes[i].n)
			return false;
		if (axes[i].n == 1)
			continue;
		for (n++; k && a[k - 1].out < axes[i].out; k--)
			a[k] = a[k - 1];
		a[k] = axes[i];
	}
	*rank = n;
	return true;
}

/* Join axes and elements that follow each other without a gap; return the new rank. */
static unsigned join_axes(struct copy_axis *a, unsigned rank, size_t *len)
{
	unsigned n = 0;

	while (rank && a[rank - 1].out == *len && a[rank - 1].in == *len)
		*len *= a[--rank].n;
	for (unsigned i = 0; i < rank; i++) {
		struct copy_axis *before = n ? &a[n - 1] : NULL;

		if (before && before->out == a[i].n * a[i].out &&
		    before->in == a[i].n * a[i].in) {
			before->n *= a[i].n;
			before->out = a[i].out;
			before->in = a[i].in;
		} else {
			a[n++] = a[i];
		}
	}
	return n;
}

/* Choose the axis that makes a plane together with the last one: the axis along which the
 * input is contiguous, or the one before the last if that is the last itself. */
static unsigned choose_other(const struct copy_axis *a, unsigned rank,
			     bool *turned)
{
	unsigned last = rank - 1, best = last;

	for (unsigned i = 0; i < last; i++)
		if (a[i].in < a[best].in)
			best = i;
	*turned = best != last;
	return *turned ? best : last - 1;
}

/* Move to the next place of the outer axes; return false after the last one. */
static bool next_place_of_box(const struct copy_axis *a, unsigned rank,
			      size_t *at, unsigned char **to,
			      const unsigned char **from)
{
	for (unsigned i = rank; i-- > 0;) {
		*to += a[i].out;
		*from += a[i].in;
		if (++at[i] < a[i].n)
			return true;
		*to -= a[i].n * a[i].out;
		*from -= a[i].n * a[i].in;
		at[i] = 0;
	}
	return false;
}

void copy_box(void *out, const void *in, const struct copy_axis *axes,
	      unsigned rank, size_t len)
{
	struct copy_axis a[COPY_AXES_MAX];
	size_t at[COPY_AXES_MAX] = {0};
	const unsigned char *from = in;
	unsigned char *to = out;
	struct plane p;
	unsigned other;
	bool turned;

	if (!len || !sort_axes(axes, &rank, a))
		return;
	rank = join_axes(a, rank, &len);
	if (rank < 2) {
		copy_rows(out, rank ? a[0].out : len, in, rank ? a[0].in : len,
			  rank ? a[0].n : 1, len);
		return;
	}
	p.x = a[rank - 1];
	other = choose_other(a, rank, &turned);
	p.y = a[other];
	memmove(&a[other], &a[other + 1], (rank - 1 - other) * sizeof *a);
	rank -= 2;
	do {
		if (turned) {
			turn_plane(&p, to, from, len);
			continue;
		}
		for (size_t i = 0; i < p.y.n; i++)
			copy_rows(to + i * p.y.out, p.x.out, from + i * p.y.in,
				  p.x.in, p.x.n, len);
	} while (next_place_of_box(a, rank, at, &to, &from));
}
