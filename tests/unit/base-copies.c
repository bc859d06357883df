/* SPDX-License-Identifier: BSD-2-Clause */
/* Boxes of random shapes, strides and orders of axes, against a loop by bytes. */
#include "base/copies.h"

#include "test.h"

#define ROOM ((size_t)64 << 10)
#define GUARD 64

static unsigned char in[ROOM], out[ROOM + GUARD], want[ROOM + GUARD];
static uint64_t state = 88172645463325252u;

static unsigned pick(unsigned n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)((state >> 11) % n);
}

/* Strides for the axes in a random order, with a gap now and then; the bytes of all. */
static size_t lay_out(size_t *steps, const struct copy_axis *a, unsigned rank,
		      size_t len, bool sorted)
{
	unsigned order[COPY_AXES_MAX];
	size_t step = len;

	for (unsigned i = 0; i < rank; i++) {
		unsigned k = sorted ? i : pick(i + 1);

		order[i] = order[k];
		order[k] = i;
	}
	for (unsigned i = rank; i-- > 0;) {
		if (pick(3) == 0)
			step += pick(9);
		steps[order[i]] = step;
		step *= a[order[i]].n + (pick(4) == 0 ? pick(3) : 0);
	}
	return step;
}

static void naive(const struct copy_axis *a, unsigned rank, size_t len,
		  unsigned char *to, const unsigned char *from)
{
	if (!rank) {
		for (size_t i = 0; i < len; i++)
			to[i] = from[i];
		return;
	}
	for (size_t i = 0; i < a->n; i++)
		naive(a + 1, rank - 1, len, to + i * a->out, from + i * a->in);
}

static void compare(const struct copy_axis *a, unsigned rank, size_t len)
{
	memset(out, 0xee, sizeof out);
	memset(want, 0xee, sizeof want);
	naive(a, rank, len, want, in);
	copy_box(out, in, a, rank, len);
	CHECK_MEM(out, want, sizeof out);
}

/* A box of at most this rank; false: it has no room. */
static bool try_box(unsigned rank, unsigned most, size_t len)
{
	struct copy_axis a[COPY_AXES_MAX];
	size_t to[COPY_AXES_MAX], from[COPY_AXES_MAX];

	for (unsigned i = 0; i < rank; i++)
		a[i].n = pick(4) == 0 ? 1 : 1 + pick(most);
	if (lay_out(to, a, rank, len, pick(2)) > ROOM ||
	    lay_out(from, a, rank, len, pick(2)) > ROOM)
		return false;
	for (unsigned i = 0; i < rank; i++) {
		a[i].out = to[i];
		a[i].in = from[i];
	}
	compare(a, rank, len);
	return true;
}

TEST(random_boxes)
{
	static const unsigned most[] = {4000, 1000, 120, 30, 12, 7};
	unsigned done[6] = {0};

	for (unsigned i = 0; i < test_rounds(20000); i++) {
		unsigned rank = i % 6;
		size_t len = pick(4) ? (size_t)1 << pick(5) : 1 + pick(200);

		done[rank] += try_box(rank, most[rank], len);
	}
	for (unsigned i = 0; i < 6; i++)
		CHECK(done[i] > test_rounds(300));
}
/* Every length, every alignment. */
TEST(rows)
{
	for (size_t len = 0; len < 300; len++)
		for (size_t gap = 0; gap < 3; gap++) {
			struct copy_axis a = {7, len + gap, len + 2 * gap};

			memset(out, 0xee, sizeof out);
			memset(want, 0xee, sizeof want);
			naive(&a, 1, len, want, in + gap);
			copy_rows(out, a.out, in + gap, a.in, a.n, len);
			CHECK_MEM(out, want, sizeof out);
		}
}
/* Squares of every width, and what is left beside them. */
TEST(turned)
{
	static const size_t lens[] = {1, 2, 3, 4, 8, 12, 16, 40};

	for (size_t i = 0; i < sizeof lens / sizeof *lens; i++)
		for (size_t n = 1; n < 140; n += 1 + n / 5)
			for (size_t m = 1; n * m * lens[i] < ROOM && m < 140;
			     m += 1 + m / 4) {
				const struct copy_axis a[] = {
					{n, m * lens[i], lens[i]},
					{m, lens[i], n * lens[i]}};

				compare(a, 2, lens[i]);
			}
}
TEST(nothing)
{
	const struct copy_axis a[] = {{3, 8, 8}, {0, 4, 4}, {2, 4, 4}};

	compare(a, 3, 4);
	compare(a, 1, 0);
}

int main(void)
{
	for (size_t i = 0; i < ROOM; i++)
		in[i] = (unsigned char)(i * 2654435761u >> 11);
	RUN(random_boxes);
	RUN(rows);
	RUN(turned);
	RUN(nothing);
	return test_done();
}
