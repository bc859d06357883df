/* SPDX-License-Identifier: BSD-2-Clause */
/* Loops in vector registers against the plain ones and the definitions. */
/*
 * It needs shuffle*.c, bitplane.c and error.c, no library: contrib/check builds it for
 * aarch64, too, and runs it there in an emulator.
 */
#include "codec/bitplane.h"
#include "codec_test.h"

/* By every loop this CPU has, there and back. */
static void check_shuffle(const unsigned char *in, size_t n, uint32_t elem)
{
	unsigned char *naive = malloc(n ? n : 1), *out = malloc(n ? n : 1);
	size_t count = n / elem;

	CHECK(naive && out);
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < elem; j++)
			naive[i * elem + j] = in[j * count + i];
	for (size_t i = count * elem; i < n; i++)
		naive[i] = in[i];
	for (unsigned path = 0; path <= shuffle_best_path(); path++) {
		memset(out, 0x5a, n);
		shuffle_undo(path, in, n, elem, out);
		CHECK_MEM(out, naive, n);
		memset(out, 0xa5, n);
		shuffle_do(path, naive, n, elem, out);
		CHECK_MEM(out, in, n);
	}
	free(naive);
	free(out);
}

TEST(shuffle_sizes)
{
	static const uint32_t large[] = {31, 64, 255, 5000, 9000, 4000000000u};

	for (uint32_t elem = 1; elem <= 50; elem++)
		for (unsigned i = 0; i < 70; i++) {
			size_t n = i < 60 ? i * (elem + 4) / 3
					  : test_random() % 40000;
			unsigned char *in = codec_test_random(n, 1);

			check_shuffle(in, n, elem);
			free(in);
		}
	for (size_t i = 0; i < sizeof large / sizeof *large; i++)
		for (size_t n = 0; n < 60000; n = n * 2 + 13) {
			unsigned char *in = codec_test_random(n, 1);

			check_shuffle(in, n, large[i]);
			free(in);
		}
}

TEST(bitshuffle_sizes)
{
	static const unsigned elems[] = {1,  2,  3,  4,  5,   8,    12,
					 16, 33, 64, 65, 300, 2048, 9000};

	for (unsigned e = 0; e < sizeof elems / sizeof *elems; e++)
		for (unsigned round = 0; round < 12; round++) {
			size_t elem = elems[e], most = 60000 / elem / 8 + 1;
			size_t n = 8 * (1 + test_random() % most);
			size_t size = n * elem;
			unsigned char *plain = codec_test_random(size, elem);
			unsigned char *bits = malloc(size);
			unsigned char *out = malloc(size);

			CHECK(bits && out);
			codec_test_shuffle_bits(plain, n, elem, bits);
			for (unsigned path = 0; path <= shuffle_best_path();
			     path++) {
				memset(out, 0xee, size);
				bitplane_undo(path, bits, n, elem, out);
				CHECK_MEM(out, plain, size);
			}
			free(plain);
			free(bits);
			free(out);
		}
}

int main(void)
{
	RUN(shuffle_sizes);
	RUN(bitshuffle_sizes);
	/* On these the plain loops alone would not be a test. */
#if defined(__x86_64__) || defined(__aarch64__)
	CHECK(shuffle_best_path() >= SHUFFLE_V128);
#endif
	return test_done();
}
