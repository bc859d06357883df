/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers of either byte order, at addresses of any alignment. */
#include "base/bytes.h"

#include "test.h"

TEST(loads)
{
	static const unsigned char digits[] = {0xf1, 0xe2, 0xd3, 0xc4,
					       0xb5, 0xa6, 0x97, 0x88};
	unsigned char room[16];

	for (size_t i = 0; i < 8; i++) {
		const unsigned char *p = memcpy(room + i, digits, 8);

		CHECK_EQ_U(load_le16(p), 0xe2f1);
		CHECK_EQ_U(load_be16(p), 0xf1e2);
		CHECK_EQ_U(load_le32(p), 0xc4d3e2f1);
		CHECK_EQ_U(load_be32(p), 0xf1e2d3c4);
		CHECK_EQ_U(load_le64(p), UINT64_C(0x8897a6b5c4d3e2f1));
		CHECK_EQ_U(load_be64(p), UINT64_C(0xf1e2d3c4b5a69788));
	}
}
TEST(lengths)
{
	static const unsigned char digits[] =
		"\x81\x82\x83\x84\x85\x86\x87\x88";
	static const uint64_t want[] = {0,
					0x81,
					0x8281,
					0x838281,
					0x84838281,
					UINT64_C(0x8584838281),
					UINT64_C(0x868584838281),
					UINT64_C(0x87868584838281),
					UINT64_C(0x8887868584838281)};

	for (unsigned n = 0; n <= 8; n++)
		CHECK_EQ_U(load_le(digits, n), want[n]);
}
TEST(stores)
{
	unsigned char room[16] = {0};

	for (size_t i = 0; i < 8; i++) {
		store_le64(room + i, UINT64_C(0x8897a6b5c4d3e2f1));
		CHECK_MEM(room + i, "\xf1\xe2\xd3\xc4\xb5\xa6\x97\x88", 8);
		store_le32(room + i, 0x04030201);
		CHECK_MEM(room + i, "\1\2\3\4\xb5\xa6\x97\x88", 8);
	}
}

int main(void)
{
	RUN(loads);
	RUN(lengths);
	RUN(stores);
	return test_done();
}
