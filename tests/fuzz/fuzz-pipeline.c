/* SPDX-License-Identifier: BSD-2-Clause */
/* Fuzz target: any bytes through any list of filters and any skip mask. */
/*
 * Input: u8 number of filters (mod 9), for each u8 which (mod one more than we
 * decode: the last is unknown) and u8 element size; u8 skip mask, u16 size of
 * the chunk; the rest is what is stored.
 */
#include <errno.h>

#include "codec/pipeline.h"
#include "fuzz.h"

static void add_filter(struct pipeline *p, struct fuzz_input *in)
{
	size_t codecs = 0, which;
	uint32_t id, cd;

	while (codec_table[codecs])
		codecs++;
	which = fuzz_u8(in) % (codecs + 1);
	id = which < codecs ? codec_table[which]->id : 4242;
	cd = fuzz_u8(in);
	pipeline_add(p, id, NULL, &cd, 1, 2, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	struct error err = {0, ""};
	struct pipeline p = {0};
	uint8_t *a, *b;
	uint32_t mask;
	size_t chunk;
	int r;

	for (unsigned n = fuzz_u8(&in) % 9; n; n--)
		add_filter(&p, &in);
	mask = fuzz_u8(&in);
	chunk = fuzz_u16(&in);
	a = malloc(chunk ? chunk : 1);
	b = malloc(chunk ? chunk : 1);
	FUZZ_CHECK(a && b);
	memset(a, 0, chunk);
	memset(b, 0xff, chunk);
	r = pipeline_decode(&p, mask, in.data, in.size, a, chunk, &err);
	FUZZ_CHECK(r == 0 || r == -EBADMSG || r == -ENOTSUP);
	FUZZ_CHECK(err.code == r && (r == 0) == !err.text[0]);
	FUZZ_CHECK((r == -ENOTSUP) == (pipeline_missing(&p, mask) != NULL));
	/* Again, over other bytes: whatever succeeds wrote every byte. */
	FUZZ_CHECK(pipeline_decode(&p, mask, in.data, in.size, b, chunk,
				   NULL) == r);
	FUZZ_CHECK(r < 0 || !memcmp(a, b, chunk));
	if (r == 0 && pipeline_is_verbatim(&p, mask))
		FUZZ_CHECK(in.size == chunk && !memcmp(a, in.data, chunk));
	free(a);
	free(b);
	return 0;
}
