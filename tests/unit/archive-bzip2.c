/* SPDX-License-Identifier: BSD-2-Clause */
/* bzip2 blocks that contain what looks like the beginning of another one. */
/*
 * A block begins with a table of selectors, which may be longer than the block needs:
 * libbz2 ignores the rest.  Written in unary, selectors can spell any bits without long
 * runs of ones, the magic numbers among them.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "formats_test.h"

#if HAVE_BZIP2
#include <bzlib.h>

#define BLOCK_MAGIC UINT64_C(0x314159265359)
#define END_MAGIC UINT64_C(0x177245385090)

struct bitbuf {
	unsigned char *p;
	uint64_t n;
};

static unsigned take(struct bitbuf *b, uint64_t *at, unsigned count)
{
	unsigned v = 0;

	for (unsigned i = 0; i < count; i++, ++*at)
		v = v << 1 | (b->p[*at / 8] >> (7 - *at % 8) & 1);
	return v;
}
static void put(struct bitbuf *b, uint64_t v, unsigned count)
{
	for (unsigned i = count; i-- > 0; b->n++) {
		unsigned char bit = (unsigned char)(0x80 >> b->n % 8);

		b->p[b->n / 8] = (unsigned char)((b->p[b->n / 8] & ~bit) |
						 (v >> i & 1 ? bit : 0));
	}
}
static void copy(struct bitbuf *to, struct bitbuf *from, uint64_t *at,
		 uint64_t count)
{
	for (; count; count--)
		put(to, take(from, at, 1), 1);
}

/* How many selectors these bits and a zero are. */
static unsigned selectors(uint64_t magic)
{
	unsigned n = 1;

	for (unsigned i = 0; i < 48; i++)
		n += !(magic >> i & 1);
	return n;
}

/* The one block of `packed` again, with `times` false magic numbers of a kind. */
static struct bytes disguise(const struct bytes *packed, uint64_t magic,
			     unsigned times)
{
	struct bitbuf from = {packed->at, 8 * (uint64_t)packed->n};
	struct bitbuf to = {calloc(1, packed->n + 8 * times + 8), 0};
	uint64_t at = 0, end;
	unsigned map, n;

	CHECK(to.p != NULL);
	copy(&to, &from, &at, 32 + 48 + 32 + 1 + 24);
	map = take(&from, &at, 16);
	put(&to, map, 16);
	for (unsigned i = 0; i < 16; i++)
		if (map >> i & 1)
			copy(&to, &from, &at, 16);
	CHECK(take(&from, &at, 3) == 6);
	put(&to, 6, 3);
	n = take(&from, &at, 15);
	put(&to, n + times * selectors(magic), 15);
	while (n) {
		unsigned bit = take(&from, &at, 1);

		put(&to, bit, 1);
		n -= !bit;
	}
	for (unsigned i = 0; i < times; i++) {
		put(&to, magic, 48);
		put(&to, 0, 1);
	}
	/* The end of the stream, less what it was padded with. */
	for (end = from.n; end > at; end--) {
		uint64_t look = end - 80;
		uint64_t high = take(&from, &look, 24);

		if ((high << 24 | take(&from, &look, 24)) == END_MAGIC)
			break;
	}
	copy(&to, &from, &at, end - at);
	return (struct bytes){to.p, (size_t)((to.n + 7) / 8)};
}

static struct bytes pack(const struct bytes *data)
{
	unsigned n = (unsigned)data->n + 10000;
	struct bytes b = {malloc(n), 0};

	CHECK_EQ_I(BZ2_bzBuffToBuffCompress((char *)b.at, &n, (char *)data->at,
					    (unsigned)data->n, 1, 0, 0),
		   BZ_OK);
	b.n = n;
	return b;
}

/* Two streams of one block, the false numbers in either. */
static void check(uint64_t magic, unsigned times, unsigned threads)
{
	struct bytes data = make_data(TEXT, 80000);
	struct bytes packed = pack(&data), false_one, twice, all;

	false_one = disguise(&packed, magic, times);
	twice = (struct bytes){malloc(3 * data.n), 3 * data.n};
	for (unsigned i = 0; i < 3; i++)
		memcpy(twice.at + i * data.n, data.at, data.n);
	all = (struct bytes){malloc(2 * false_one.n + packed.n),
			     2 * false_one.n + packed.n};
	memcpy(all.at, false_one.at, false_one.n);
	memcpy(all.at + false_one.n, packed.at, packed.n);
	memcpy(all.at + false_one.n + packed.n, false_one.at, false_one.n);
	put_file("packed", all.at, all.n);
	check_file("packed", "bzip2", &twice, threads);
	free(all.at);
	free(twice.at);
	free(false_one.at);
	free(packed.at);
	free(data.at);
}

TEST(none)
{
	check(BLOCK_MAGIC, 0, 1);
}
TEST(block)
{
	check(BLOCK_MAGIC, 1, 1);
	check(BLOCK_MAGIC, 1, 3);
	check(BLOCK_MAGIC, 50, 2);
}
TEST(end)
{
	check(END_MAGIC, 1, 1);
	check(END_MAGIC, 1, 3);
	check(END_MAGIC, 50, 2);
}

/* Many false numbers, and a damaged block: an error, soon. */
TEST(damaged)
{
	struct bytes data = make_data(TEXT, 80000);
	struct bytes packed = pack(&data), many;
	uint64_t good;

	many = disguise(&packed, BLOCK_MAGIC, 500);
	many.at[many.n - 5000] ^= 4;
	put_file("packed", many.at, many.n);
	CHECK(check_damaged("packed", "bzip2", &data, 2, &good) < 0);
	CHECK_EQ_U(good, 0);
	free(many.at);
	free(packed.at);
	free(data.at);
}
#endif

int main(void)
{
#if HAVE_BZIP2
	stream_dir_make();
	RUN(none);
	RUN(block);
	RUN(end);
	RUN(damaged);
	stream_dir_remove();
	return test_done();
#else
	return test_skip("libbz2");
#endif
}
