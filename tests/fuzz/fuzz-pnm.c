/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes as an image: the same numbers however the text is cut. */
#include <errno.h>

#include "fuzz.h"
#include "views/pnm.h"

#define ROOM 65536

/* The raster in pieces of `piece` bytes: what comes out, and whether it is right. */
static int take(const struct pnm *f, const uint8_t *text, size_t n,
		size_t piece, uint8_t *out, size_t *made)
{
	struct pnm_plain p = {0};
	struct error err = {0};
	size_t got;
	int r = 0;

	*made = 0;
	for (size_t at = 0; at < n && r == 0; at += piece) {
		size_t want = n - at < piece ? n - at : piece;
		uint8_t *from = malloc(want), *to = malloc(want + 2);

		memcpy(from, text + at, want);
		r = pnm_plain_take(&p, f, from, want, to, &got, &err);
		FUZZ_CHECK(got <= want + 2);
		if (r == 0) {
			memcpy(out + *made, to, got);
			*made += got;
		}
		free(from);
		free(to);
	}
	if (r == 0) {
		r = pnm_plain_end(&p, f, out + *made, &got, &err);
		*made += r == 0 ? got : 0;
	}
	FUZZ_CHECK(r == 0 || (r == -EBADMSG && *err.text));
	FUZZ_CHECK(p.done <= f->bytes);
	FUZZ_CHECK(r < 0 || (p.done == f->bytes && *made == f->bytes));
	return r;
}

static void check_raster(const struct pnm *f, const uint8_t *data, size_t size)
{
	static uint8_t whole[2 * ROOM + 8], pieces[2 * ROOM + 8];
	size_t n, again;
	int r = take(f, data + f->data, size - f->data, ROOM, whole, &n);

	for (size_t piece = 1; piece < 8; piece += 3) {
		FUZZ_CHECK(take(f, data + f->data, size - f->data, piece,
				pieces, &again) == r);
		FUZZ_CHECK(r < 0 || (n == again && !memcmp(whole, pieces, n)));
	}
	for (size_t i = 0; r == 0 && i < n; i += f->depth) {
		uint32_t v = f->depth == 2
				     ? (uint32_t)whole[i] << 8 | whole[i + 1]
				     : whole[i];

		FUZZ_CHECK(v <= f->maxval);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = {0};
	struct pnm f;
	uint8_t *copy;

	if (size > ROOM)
		size = ROOM;
	copy = malloc(size ? size : 1);
	if (size)
		memcpy(copy, data, size);
	if (pnm_read(copy, size, &f, &err) < 0) {
		FUZZ_CHECK((err.code == -EBADMSG || err.code == -ENOTSUP) &&
			   *err.text);
	} else {
		FUZZ_CHECK(f.data <= size && f.width && f.height);
		FUZZ_CHECK(f.maxval && f.maxval <= 65535);
		FUZZ_CHECK(f.depth == (f.maxval > 255 ? 2 : 1));
		FUZZ_CHECK(f.bytes / f.depth / f.channels / f.width ==
			   f.height);
		FUZZ_CHECK(f.bytes <= INT64_MAX - f.data);
		if (f.plain)
			check_raster(&f, copy, size);
	}
	free(copy);
	return 0;
}
