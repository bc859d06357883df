/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes as a sparse map of tar: runs that are accepted are right. */
/*
 * The first byte chooses the spelling of the map, the next twelve the file's size,
 * the position and the number of the stored bytes.
 */
#include <errno.h>

#include "fuzz.h"
#include "formats/tar/private.h"

static int read_map(struct tar_sparse *m, unsigned kind, struct fuzz_input *in)
{
	struct tar_sparse_lines lines = {0};
	const char *text = (const char *)in->data;
	struct tar_header h;
	int64_t size;
	bool more;

	if (kind == 0)
		return tar_sparse_list(m, text, in->size);
	if (kind == 1) {
		size_t half = in->size / 2;
		int r = tar_sparse_text(m, &lines, text, half);

		return r ? r
			 : tar_sparse_text(m, &lines, text + half,
					   in->size - half);
	}
	if (in->size < sizeof h)
		return 0;
	if (kind == 2)
		return tar_sparse_more(m, text, &more);
	memcpy(&h, text, sizeof h);
	return tar_sparse_header(m, &h, &size, &more);
}

static void check(const struct tar_sparse *m, uint64_t size, uint64_t pos,
		  uint64_t stored)
{
	uint64_t at = 0, sum = 0;

	FUZZ_CHECK(m->run.n > 0 && m->run.at[0].off == m->run.n - 1);
	for (size_t i = 1; i < m->run.n; i++) {
		const struct member_extent *x = &m->run.at[i];

		FUZZ_CHECK(x->len > 0 && x->off >= at);
		FUZZ_CHECK(x->off <= size && x->len <= size - x->off);
		FUZZ_CHECK(x->pos >= pos && x->len <= stored &&
			   x->pos - pos <= stored - x->len);
		at = x->off + x->len;
		sum += x->len;
	}
	FUZZ_CHECK(sum <= stored);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	struct tar_sparse m = {VEC_EMPTY, false};
	unsigned kind = fuzz_u8(&in) % 4;
	uint64_t real = fuzz_u32(&in), pos = fuzz_u32(&in);
	uint64_t stored = fuzz_u32(&in);
	int r = read_map(&m, kind, &in);

	FUZZ_CHECK(r != -ENOMEM && (r >= 0 || m.bad));
	r = tar_sparse_place(&m, real, pos, stored);
	FUZZ_CHECK(r == 0 || r == -EBADMSG);
	if (r == 0)
		check(&m, real, pos, stored);
	vec_free(&m.run);
	return 0;
}
