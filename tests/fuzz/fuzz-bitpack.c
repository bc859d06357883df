/* SPDX-License-Identifier: BSD-2-Clause */
/* Fuzz target: any parameters and bytes through the filters that count bits. */
/*
 * Input: u8 codec, u16 room for the output, u8 number of parameters (mod 33),
 * u32 each; the rest is what is stored.
 */
#include <errno.h>

#include "codec/bitplane.h"
#include "codec/codec.h"
#include "fuzz.h"

static const struct codec *const codecs[] = {&codec_bitshuffle, &codec_nbit,
					     &codec_scaleoffset};

/* All loops agree, whatever the bits. */
static void check_paths(const struct codec_params *p,
			const struct fuzz_input *in)
{
	size_t elem = p->cd[2], n = in->size / elem / 8 * 8, size = n * elem;
	uint8_t *plain = malloc(size + 1), *other = malloc(size + 1);

	FUZZ_CHECK(plain && other);
	bitplane_undo(SHUFFLE_PLAIN, in->data, n, elem, plain);
	for (unsigned path = 1; path <= shuffle_best_path(); path++) {
		bitplane_undo(path, in->data, n, elem, other);
		FUZZ_CHECK(!memcmp(plain, other, size));
	}
	free(plain);
	free(other);
}

/* Decoding again, over other bytes, gives the same: nothing was left unset. */
static void check_repeats(const struct codec *c, const struct codec_params *p,
			  const struct fuzz_input *in, const uint8_t *out,
			  size_t cap, size_t len)
{
	uint8_t *again = malloc(cap ? cap : 1);
	size_t n = 0;

	FUZZ_CHECK(again);
	memset(again, 0x5a, cap);
	FUZZ_CHECK(c->decode(p, in->data, in->size, again, cap, &n, NULL) == 0);
	FUZZ_CHECK(n == len && !memcmp(out, again, len));
	free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	struct error err = {0, ""};
	struct codec_params p = {0};
	const struct codec *c = codecs[fuzz_u8(&in) % 3];
	size_t cap = fuzz_u16(&in), len = 0;
	uint8_t *out;
	int checked, r;

	p.n = fuzz_u8(&in) % (CODEC_CD_MAX + 1);
	for (uint32_t i = 0; i < p.n; i++)
		p.cd[i] = fuzz_u32(&in);
	out = malloc(cap ? cap : 1);
	FUZZ_CHECK(out);
	memset(out, 0xa5, cap);
	checked = c->check(&p, NULL);
	r = c->decode(&p, in.data, in.size, out, cap, &len, &err);
	FUZZ_CHECK(r == 0 || r == -EBADMSG || r == -ENOSPC);
	FUZZ_CHECK(err.code == r && (r == 0) == !err.text[0]);
	FUZZ_CHECK(checked == 0 || r == -EBADMSG);
	FUZZ_CHECK(len <= cap);
	if (r == 0)
		check_repeats(c, &p, &in, out, cap, len);
	if (c == &codec_bitshuffle && checked == 0)
		check_paths(&p, &in);
	free(out);
	return 0;
}
