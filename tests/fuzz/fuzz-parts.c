/* SPDX-License-Identifier: BSD-2-Clause */
/* Fuzz target: very large chunks, cut at their blocks for a team and not cut: alike. */
/*
 * Input: u8 which of `ids`, u8 element size, u8 room for the output above PARTS_LEAST, in
 * 32 KiB, u8 number of parameters (mod 6), u32 each; the rest is what is stored.
 */
#include <errno.h>

#include "base/team.h"
#include "codec/codec.h"
#include "codec/parts.h"
#include "fuzz.h"

#define HELPERS 2

/* New ones go to the end. */
static const uint32_t ids[] = {32004, 32008, 32001};

struct result {
	uint8_t *bytes;
	size_t len;
	int r;
};

static struct result decode(const struct codec *c, const struct codec_params *p,
			    const struct fuzz_input *in, size_t room)
{
	struct result out = {.bytes = malloc(room)};
	struct error err = {0, ""};

	FUZZ_CHECK(out.bytes);
	memset(out.bytes, 0xa5, room);
	out.r = c->decode(p, in->data, in->size, out.bytes, room, &out.len,
			  &err);
	FUZZ_CHECK(out.r == 0 || out.r == -EBADMSG || out.r == -ENOSPC);
	FUZZ_CHECK(err.code == out.r && (out.r == 0) == !err.text[0]);
	FUZZ_CHECK(out.len <= room);
	return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	struct codec_params p = {0};
	struct result one, many;
	const struct codec *c;
	size_t room;

	c = codec_by_id(ids[fuzz_u8(&in) % (sizeof ids / sizeof *ids)]);
	if (!c) /* built without its library */
		return 0;
	p.elem_size = fuzz_u8(&in);
	room = PARTS_LEAST + fuzz_u8(&in) * ((size_t)32 << 10);
	p.n = fuzz_u8(&in) % 6;
	for (uint32_t i = 0; i < p.n; i++)
		p.cd[i] = fuzz_u32(&in);
	if (c->check && c->check(&p, NULL) < 0)
		return 0;
	one = decode(c, &p, &in, room);
	FUZZ_CHECK(team_start(HELPERS, NULL) == 0);
	many = decode(c, &p, &in, room);
	team_stop();
	FUZZ_CHECK(one.r == many.r);
	if (one.r == 0)
		FUZZ_CHECK(one.len == many.len &&
			   !memcmp(one.bytes, many.bytes, one.len));
	free(one.bytes);
	free(many.bytes);
	return 0;
}
