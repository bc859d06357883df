/* SPDX-License-Identifier: BSD-2-Clause */
/* Fuzz target: any bytes through any one filter, into a buffer of any size. */
/*
 * Input: u8 which of `ids`, u8 element size, u16 room for the output, u8 number
 * of parameters (mod 21), u32 each; the rest is what is stored.
 */
#include <errno.h>
#include <liblzf/lzf.h>

#include "codec/codec.h"
#include "fuzz.h"

/* Not by the place in codec_table, which differs between builds: an input of
 * the corpus means the same in all.  New ones go to the end. */
static const uint32_t ids[] = {1,     2, 3, 32000, 32004, 32015,
			       32008, 5, 6, 4,     307,   32001};

/* All loops agree, and the output is a permutation of the input. */
static void check_shuffle(const struct codec_params *p,
			  const struct fuzz_input *in, const uint8_t *out)
{
	uint32_t elem = p->n ? p->cd[0] : p->elem_size;
	uint8_t *other = malloc(in->size + 1);

	FUZZ_CHECK(other);
	for (unsigned path = 0; path <= shuffle_best_path(); path++) {
		shuffle_undo(path, in->data, in->size, elem, other);
		FUZZ_CHECK(!memcmp(out, other, in->size));
	}
	free(other);
}

/* liblzf agrees, and says so by as many bytes (0: an error). */
static void check_lzf(const struct fuzz_input *in, const uint8_t *out,
		      size_t cap, size_t len)
{
	uint8_t *other = malloc(cap + 1);

	FUZZ_CHECK(other);
	FUZZ_CHECK(lzf_decompress(in->data, (unsigned)in->size, other,
				  (unsigned)cap) == len);
	FUZZ_CHECK(!memcmp(out, other, len));
	free(other);
}

/*
 * Once more, into other bytes: whatever succeeds wrote every byte, and did not
 * take one from somewhere else.  A byte less of room does not suffice.
 */
static void check_again(const struct codec *c, const struct codec_params *p,
			const struct fuzz_input *in, const uint8_t *out,
			size_t len)
{
	uint8_t *other = malloc(len ? len : 1);
	size_t again = 0;

	FUZZ_CHECK(other);
	memset(other, 0x5a, len);
	FUZZ_CHECK(c->decode(p, in->data, in->size, other, len, &again, NULL) ==
		   0);
	FUZZ_CHECK(again == len && !memcmp(out, other, len));
	if (len)
		FUZZ_CHECK(c->decode(p, in->data, in->size, other, len - 1,
				     &again, NULL) < 0);
	free(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	struct error err = {0, ""};
	struct codec_params p = {0};
	const struct codec *c;
	size_t cap, len = 0;
	uint8_t *out;
	int r;

	c = codec_by_id(ids[fuzz_u8(&in) % (sizeof ids / sizeof *ids)]);
	if (!c) /* built without its library */
		return 0;
	p.elem_size = fuzz_u8(&in);
	cap = fuzz_u16(&in);
	p.n = fuzz_u8(&in) % 21;
	for (uint32_t i = 0; i < p.n; i++)
		p.cd[i] = fuzz_u32(&in);
	if (c->check && c->check(&p, NULL) < 0)
		return 0;
	out = malloc(cap ? cap : 1);
	FUZZ_CHECK(out);
	memset(out, 0xa5, cap);
	r = c->decode(&p, in.data, in.size, out, cap, &len, &err);
	FUZZ_CHECK(r == 0 || r == -EBADMSG || r == -ENOSPC);
	FUZZ_CHECK(err.code == r && (r == 0) == !err.text[0]);
	FUZZ_CHECK(len <= cap);
	if (r == 0)
		check_again(c, &p, &in, out, len);
	if (c == &codec_shuffle && r == 0)
		check_shuffle(&p, &in, out);
	if (c == &codec_lzf && in.size)
		check_lzf(&in, out, cap, r == 0 ? len : 0);
	free(out);
	return 0;
}
